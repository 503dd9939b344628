//! The vocabulary of a versioned table, and the one protocol for changing it.
//!
//! In reading order: what a state is called ([`version`], [`timeline`]) and how people name it ([`rev`], [`time`]), what
//! is in it ([`table`], [`file`](mod@file), [`scan`], [`expr`], [`prune`], [`listing`]), how it changes ([`change`],
//! [`write`](mod@write), [`conflict`], [`commit`], [`maintain`]), where it lies ([`path`], [`storage`]), who provides it
//! ([`format`](mod@format), [`extension`], [`catalog`]).
pub mod catalog;
pub mod change;
pub mod commit;
pub mod conflict;
pub mod env;
pub mod error;
pub mod expr;
pub mod extension;
pub mod file;
pub mod format;
pub mod lineage;
pub mod listing;
pub mod maintain;
pub mod path;
pub mod prune;
pub mod rev;
pub mod scan;
pub mod storage;
pub mod table;
pub mod time;
pub mod timeline;
pub mod version;
pub mod write;

pub use error::{Error, ErrorKind, Result};
