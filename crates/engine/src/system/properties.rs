//! `t$properties`: the table's properties at a version, by name.
use std::sync::Arc;

use arrow_array::RecordBatch;
use lakebed_core::{Result, table::Snapshot};

use super::rows::Columns;

pub(super) fn rows(snapshot: &Arc<dyn Snapshot>) -> Result<RecordBatch> {
    let properties = snapshot.properties();
    Columns::default().text("key", properties.keys().cloned()).text("value", properties.values().cloned()).batch()
}
