//! The binary as a user meets it: what it prints, where, and how it ends.
#![expect(clippy::unwrap_used, reason = "functions that tests share fail as tests do")]
mod demo;
mod exits;
mod run;
mod shapes;
mod sql;
mod transcripts;
