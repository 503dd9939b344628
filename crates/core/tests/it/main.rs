//! Commit and upkeep on the toy format, against stores that fail.
#![expect(clippy::unwrap_used, reason = "functions that tests share fail as tests do")]

mod commit;
mod maintain;
mod wrapped;
