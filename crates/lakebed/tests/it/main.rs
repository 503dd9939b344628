//! Stores, catalog and configuration put together, against in-process fakes of the clouds; SQL against tables that
//! other engines wrote, and against its own specification.
mod catalog;
mod corpus;
mod fake;
mod slt;
mod stores;
