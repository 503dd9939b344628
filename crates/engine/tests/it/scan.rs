//! The scan against what its rows must be.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod changes;
mod columns;
mod merges;
mod plans;
mod selections;
mod world;
