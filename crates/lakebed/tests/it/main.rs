//! Stores, catalog and configuration put together, against in-process fakes of the clouds; SQL against tables that
//! other engines wrote, and against its own specification.
#![expect(clippy::unwrap_used, reason = "functions that tests share fail as tests do")]
mod catalog;
mod change;
mod corpus;
mod fake;
mod mission;
mod schema_change;
mod slt;
mod stores;
