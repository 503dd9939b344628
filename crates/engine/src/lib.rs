//! Rows: SQL over versioned tables, planned and run by DataFusion.
//!
//! In reading order: [`session`] runs statements; [`sql`] turns text into a plan whose every table has a fixed
//! version; [`provider`] and [`scan`] read rows through [`registry`]'s formats; [`function`] and [`system`] are tables
//! made of metadata. Nothing here knows a format: all of them are `dyn TableFormat`.
mod bounded;
pub mod change_table;
mod dml;
pub mod error;
pub mod function;
pub mod lower;
pub mod provider;
pub mod registry;
pub mod scan;
pub mod session;
pub mod sql;
mod stack;
pub mod system;
mod text;
pub mod variant;
mod write;

pub use registry::Formats;
pub use session::{Access, Locator, Output, OutputKind, Session, SessionOptions};
pub use sql::Statement;
