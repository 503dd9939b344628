//! The actions of a checkpoint that are no files: few rows among many.
//!
//! Each is written out as a line of JSON and read as a commit's line is, so that both know the same fields.
use std::sync::Arc;

use arrow_array::{Array, RecordBatch, StructArray, cast::AsArray};
use arrow_buffer::BooleanBuffer;
use arrow_json::LineDelimitedWriter;
use arrow_schema::{ArrowError, Field, Schema};
use bytes::Bytes;
use futures::TryStreamExt;
use lakebed_codec::parquet::Wanted;
use lakebed_core::Result;

use super::{Part, leaves};
use crate::{
    log::actions::{self, Piece, PieceKind, SmallActions},
    spec::LastCheckpointV2,
};

/// Actions with a field that each of them has.
const KINDS: [(&str, &str); 6] = [
    ("protocol", "minReaderVersion"),
    ("metaData", "id"),
    ("txn", "appId"),
    ("domainMetadata", "domain"),
    ("sidecar", "path"),
    ("checkpointMetadata", "version"),
];
const BATCH_ROWS: usize = 64 << 10;

/// Reads the small actions of one Parquet file of a checkpoint.
pub(super) async fn read(part: Part, version: u64) -> Result<SmallActions> {
    let metadata = Arc::clone(part.object.metadata());
    let some = |kind: &&(&str, &str)| {
        leaves::find(&metadata, &[kind.0, kind.1]).is_some_and(|it| !leaves::is_empty_throughout(&metadata, it))
    };
    let kinds: Vec<(&str, &str)> = KINDS.iter().filter(some).copied().collect();
    if kinds.is_empty() {
        return Ok(SmallActions::default());
    }
    let columns =
        leaves::mask(&metadata, |path| kinds.iter().any(|(kind, _)| path.first().is_some_and(|it| it == kind)));
    let groups = metadata.row_groups().iter().enumerate().filter(|(_, group)| {
        let empty = |kind: &(&str, &str)| {
            leaves::find(&metadata, &[kind.0, kind.1]).is_none_or(|it| leaves::is_empty(group, it))
        };
        !kinds.iter().all(empty)
    });
    let wanted = Wanted { columns, row_groups: Some(groups.map(|(at, _)| at).collect()), batch_rows: BATCH_ROWS };
    let mut batches = part.object.clone().read(wanted);
    let mut text = Vec::new();
    while let Some(batch) = batches.try_next().await? {
        for (kind, field) in &kinds {
            write_rows(&batch, kind, field, &mut text).map_err(|it| part.bad(it.to_string()))?;
        }
    }
    parse(text, &part.name, version)
}

/// The small actions as the hint repeats them; `None` where it does not repeat them all.
pub(super) fn from_hint(hint: &LastCheckpointV2, version: u64) -> Option<SmallActions> {
    let actions = hint.non_file_actions.as_ref()?;
    let sidecars = hint.sidecar_files.as_ref()?;
    let text: String = actions.iter().map(|it| format!("{it}\n")).collect();
    let mut small = parse(text.into_bytes(), "_delta_log/_last_checkpoint", version).ok()?;
    small.sidecars = sidecars.clone();
    // With no sidecar the files stand in the checkpoint itself, which must then be read.
    let whole = small.protocol.is_some() && small.metadata.is_some() && !sidecars.is_empty();
    whole.then_some(small)
}

/// Appends the rows of `batch` that hold a `kind`, as JSON lines.
fn write_rows(batch: &RecordBatch, kind: &str, field: &str, text: &mut Vec<u8>) -> Result<(), ArrowError> {
    let Some(column) = batch.column_by_name(kind).and_then(|it| it.as_struct_opt()) else { return Ok(()) };
    let Some(required) = column.column_by_name(field) else { return Ok(()) };
    let has = BooleanBuffer::collect_bool(column.len(), |row| column.is_valid(row) && required.is_valid(row));
    if has.count_set_bits() == 0 {
        return Ok(());
    }
    let rows = arrow_select::filter::filter(column, &has.into())?;
    let rows: &StructArray = rows.as_struct();
    let schema = Schema::new(vec![Field::new(kind, rows.data_type().clone(), true)]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(rows.clone())])?;
    let mut writer = LineDelimitedWriter::new(text);
    writer.write(&batch)?;
    writer.finish()
}

fn parse(text: Vec<u8>, file: &str, version: u64) -> Result<SmallActions> {
    if text.is_empty() {
        return Ok(SmallActions::default());
    }
    let body = Bytes::from(text);
    let range = 0..body.len();
    let piece = Piece { version, file: file.to_owned(), body, range, kind: PieceKind::Commit };
    Ok(actions::parse(&[piece])?.small)
}
