//! The binary as a user meets it: what it prints, where, and how it ends.
#![expect(clippy::unwrap_used, reason = "functions that tests share fail as tests do")]
mod demo;
mod exits;
#[path = "../../../lakebed/tests/it/fake.rs"]
#[expect(dead_code, reason = "the clouds of another crate's tests can do more")]
mod fake;
mod interrupted;
mod mission;
mod run;
mod shapes;
mod sql;
mod transcripts;
mod writing;
