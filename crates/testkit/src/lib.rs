//! What tests are made of: a world to play in, a table format to play with, and the obvious answers to compare with.
//!
//! In reading order: chance and time ([`seed`], [`env`](mod@env)), storage that fails on command ([`store`]), rows to compare
//! ([`value`], [`rows`], [`batch`], [`files`]), the slow reader ([`reference`](mod@reference)), the toy format ([`pond`]); then the
//! suites: tables written by other engines ([`corpus`]), what every format must do ([`conformance`]), many actors under
//! faults ([`sim`]), and what the sources must look like ([`tidy`]).
pub mod batch;
pub mod conformance;
pub mod corpus;
pub mod env;
pub mod files;
pub mod pond;
pub mod reference;
pub mod rows;
pub mod seed;
pub mod sim;
pub mod store;
pub mod tidy;
pub mod value;
