//! Names for tables, and who owns their commits.
use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use async_trait::async_trait;

use crate::{
    Error, Result,
    commit::Publisher,
    format::{CreateTable, FormatKind, OpenOptions},
    storage::Storage,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableIdent {
    pub namespace: Vec<String>,
    pub name: String,
}

/// What a catalog knows of a table. Enough to open it; nothing a format could read for itself.
#[derive(Debug, Clone)]
pub struct TableEntry {
    pub ident: TableIdent,
    pub format: FormatKind,
    pub storage: Storage,
    /// Iceberg's metadata location; `None` where the table's directory is the truth.
    pub pointer: Option<String>,
    pub publisher: Arc<dyn Publisher>,
    pub options: OpenOptions,
    pub properties: BTreeMap<String, String>,
}

/// Names match without case and keep theirs. Two tables whose names differ by case only are both listed; loading
/// such a name in a third spelling is an error that names both.
#[async_trait]
pub trait Catalog: Debug + Send + Sync {
    async fn namespaces(&self, parent: &[String]) -> Result<Vec<Vec<String>>>;
    async fn tables(&self, namespace: &[String]) -> Result<Vec<TableIdent>>;
    async fn load(&self, ident: &TableIdent) -> Result<TableEntry>;
    /// Where a table of this name will be, which is not there yet; nothing is made. For a table that comes into being with
    /// its first rows ([`TableFormat::begin_create`](crate::format::TableFormat::begin_create)).
    ///
    /// # Errors
    /// Already exists; not found for the namespace; invalid for a name that this catalog takes for no table.
    async fn place(&self, _ident: &TableIdent, _format: FormatKind) -> Result<TableEntry> {
        Err(Error::unsupported("this catalog takes no new tables"))
    }
    async fn create(&self, ident: &TableIdent, format: FormatKind, table: CreateTable) -> Result<TableEntry>;
    async fn rename(&self, from: &TableIdent, to: &TableIdent) -> Result<()>;
    /// The table and its files cease to be.
    async fn drop(&self, ident: &TableIdent) -> Result<()>;
    async fn create_namespace(&self, _namespace: &[String]) -> Result<()> {
        Err(Error::unsupported("this catalog makes no schemas"))
    }
    /// # Errors
    /// Refused for one that holds anything.
    async fn drop_namespace(&self, _namespace: &[String]) -> Result<()> {
        Err(Error::unsupported("this catalog drops no schemas"))
    }
}
