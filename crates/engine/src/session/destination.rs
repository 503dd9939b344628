//! The table a statement writes to.
//!
//! A target is found by name, like any table, but never becomes a relation by itself: whoever plans the statement puts
//! it into a query of its own under the name [`TARGET`], at the version that its write began on.
use std::sync::Arc;

use datafusion::common::TableReference;
use lakebed_core::{
    Error, Result,
    catalog::{Catalog, TableIdent},
    commit::Publisher,
    table::{Snapshot, Table},
};

use super::Session;
use crate::{
    provider::LakeTable,
    sql::{plan::Loaded, write::Target},
};

/// What the target is called in queries of our own making; no text of a user's can hold it.
pub(crate) const TARGET: &str = "\0target";

/// A table that is written to.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    /// As the statement names it, without quotes.
    pub(crate) name: String,
    /// How its columns are qualified.
    pub(crate) reference: TableReference,
    pub(crate) table: Arc<dyn Table>,
    pub(crate) publisher: Arc<dyn Publisher>,
    /// Who knows the table by name; `None` where it was named by its place.
    pub(crate) entry: Option<(Arc<dyn Catalog>, TableIdent)>,
}

/// A table in place of a name, at a version that somebody chose.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    /// The name's only part: [`TARGET`].
    pub(crate) name: &'static str,
    pub(crate) table: Arc<dyn Table>,
    /// Other references to the table without a version read this one, too.
    pub(crate) snapshot: Arc<dyn Snapshot>,
    pub(crate) loaded: Loaded,
}

impl Destination {
    /// The target of a statement's queries, at `snapshot`.
    pub(crate) fn given(&self, session: &Session, snapshot: Arc<dyn Snapshot>) -> Result<Given> {
        let formats = session.shared.formats.clone();
        let provider = LakeTable::new(&self.name, Arc::clone(&self.table), Arc::clone(&snapshot), formats)?;
        let loaded = Loaded { reference: self.reference.clone(), provider: Arc::new(provider) };
        Ok(Given { name: TARGET, table: Arc::clone(&self.table), snapshot, loaded })
    }
}

impl Session {
    /// The table that a target names.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](lakebed_core::ErrorKind) for a view, a system table, or a name with a version.
    pub(crate) async fn destination(&self, target: &Target) -> Result<Destination> {
        if let [name] = target.name.as_slice()
            && self.mutable_read().views.contains_key(&name.to_lowercase())
        {
            return Err(Error::invalid(format!("`{name}` is a view: it has no rows of its own"))
                .with_hint("write to the tables it reads"));
        }
        let state = self.statement_state();
        self.loader(&state).destination(target).await
    }
}
