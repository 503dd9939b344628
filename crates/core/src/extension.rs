//! What a format adds to SQL and the command line, registered as data: the engine names no format.
use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;

use crate::{Result, expr::Scalar, table::Table, version::AsOf};

/// A format's own names. All are lower case.
#[derive(Debug, Clone, Default)]
pub struct Extensions {
    /// `delta_log('path')`: the first argument is always the table.
    pub functions: Vec<Extension>,
    /// `t$history`: no arguments.
    pub system_tables: Vec<Extension>,
    /// `CALL system.name(…)`.
    pub procedures: Vec<Extension>,
    /// `SET lakebed.<format>.<name>`.
    pub settings: Vec<Setting>,
}

/// One named producer of rows over a table.
#[derive(Debug, Clone)]
pub struct Extension {
    pub name: &'static str,
    /// After the table; positional in this order or by name.
    pub parameters: &'static [Parameter],
    pub schema: SchemaRef,
    pub rows: Arc<dyn RowSource>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    pub name: &'static str,
    pub required: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    pub name: &'static str,
    pub default: &'static str,
    pub description: &'static str,
}

/// The arguments of one call: by parameter name, all known to the extension, required ones present.
#[derive(Debug, Clone, Default)]
pub struct Arguments {
    pub values: BTreeMap<String, Scalar>,
    /// The version the call names, resolved by the caller (`version =>`, `timestamp =>`, `ref =>`).
    pub as_of: Option<AsOf>,
}

#[async_trait]
pub trait RowSource: Debug + Send + Sync {
    /// Batches with exactly the extension's schema.
    async fn rows(&self, table: &Arc<dyn Table>, arguments: &Arguments) -> Result<Vec<RecordBatch>>;
}
