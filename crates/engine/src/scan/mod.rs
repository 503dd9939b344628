//! From a snapshot's scan tasks to rows.
//!
//! 1. [`layout`] sorts the wanted columns into those of files, constants and the row number.
//! 2. [`plan()`] makes one `DataSourceExec` with one file a unit of reading ([`mod@unit`]), its statistics ([`statistics`]),
//!    and decides whether filters run inside the decoder ([`pushdown`]).
//! 3. [`source`] is that plan's file source, [`morsels`] opens units, unless [`early`] knows that nobody wants one: plain Parquet through DataFusion's reader, with
//!    row selections ([`selection`]) or masks ([`masks`]) where rows are gone; merges ([`merge`], [`fold`]) and native files ([`native`]) by
//!    themselves. [`adapt`] and [`shape`] fit a file's columns to the table's.
pub mod error;
pub mod options;
pub mod source;

mod adapt;
mod constants;
mod defaults;
mod early;
mod finish;
mod fold;
mod footers;
mod instants;
mod layout;
mod masks;
mod merge;
mod morsels;
mod native;
mod plan;
mod pushdown;
mod reading;
mod scalar;
mod selection;
mod shape;
mod statistics;
mod unit;

pub use layout::VIRTUAL;

pub(crate) use constants::Constant;
pub(crate) use error::external;
pub(crate) use layout::{Shown, ShownKind};
pub(crate) use plan::{Request, plan};
pub(crate) use reading::{Part, Reading};
pub(crate) use scalar::{from_arrow, to_arrow};
pub(crate) use source::Label;
