//! SQL: from text to a plan whose every table has a fixed version.
//!
//! 1. [`parse`]: tokens in canonical form, then a [`Statement`]. Statements that write are known by name and refused.
//! 2. [`check`]: a clause that nothing below reads is an error, never dropped.
//! 3. [`names`], first walk: every table reference that is not a common table expression gets a slot.
//! 4. [`resolve`]: loads what each slot names, asynchronously. One statement reads one version of a table however
//!    often it names it.
//! 5. [`names`], second walk: names get the case of the schemas in scope, and `*` loses virtual columns.
//! 6. [`plan`]: DataFusion plans the rest; tables come from the slots alone.
pub(crate) mod check;
pub(crate) mod dialect;
pub(crate) mod functions;
pub(crate) mod idents;
mod membership;
pub(crate) mod names;
pub(crate) mod parse;
pub(crate) mod pins;
pub(crate) mod plan;
pub(crate) mod resolve;
pub(crate) mod scope;
pub(crate) mod statement;
pub(crate) mod tokens;
pub(crate) mod wanted;
pub(crate) mod wildcard;
pub(crate) mod write;

pub use parse::{MAX_DEPTH, parse};
pub use statement::Statement;
pub use tokens::{MAX_CHAIN, MAX_SCRIPT_BYTES, MAX_STATEMENT_BYTES};

#[cfg(test)]
mod tests;
