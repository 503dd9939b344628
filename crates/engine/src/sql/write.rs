//! Where statements that write go.
//!
//! Their targets never reach a relation planner, and their predicates never reach the hooks of `TableProvider`:
//! DataFusion drops a predicate that its optimizer made into a join, and no predicate means all rows. So they are
//! taken out here, before any table is loaded, and planned by Lakebed or not at all. This build reads only.
use lakebed_core::{Error, Result};

use super::statement::Write;

/// Refuses a statement that would change something, by name.
pub(crate) fn route<T>(write: &Write) -> Result<T> {
    Err(Error::unsupported(format!("{}: this build only reads tables", write.verb)).with_hint("nothing was changed"))
}
