//! Columns with one value a file.
use std::sync::Arc;

use arrow_schema::{DataType, Schema};
use datafusion::{error::Result, scalar::ScalarValue};
use lakebed_core::{Error, change::ChangeKind, file::DataFile, path::FilePath, storage::Storage, version::Millis};

use super::{error::external, reading::Reading, scalar::to_arrow};

/// What a constant column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Constant {
    /// The value the table's metadata state for a column, by the column's position in the table.
    Partition(usize),
    /// The file's whole location.
    Path,
    /// The last segment of it.
    Name,
    Bytes,
    ModifiedAt,
    FirstRowId,
    RowVersion,
    ChangeKind,
    ChangeVersion,
    ChangeTime,
    /// The number a statement that changes rows knows the file by.
    FileNumber,
}

impl Constant {
    /// The column's name inside the scan; EXPLAIN shows it.
    pub(crate) fn label<'a>(&self, shown: &'a str) -> &'a str {
        match self {
            Self::FirstRowId => "_first_row_id",
            Self::RowVersion => "_first_row_version",
            Self::ChangeKind => "_change_kind",
            _ => shown,
        }
    }

    /// The value for the rows of `file`, or of several files that become rows together when it is `None`.
    pub(crate) fn value(
        &self,
        storage: &Storage,
        table: &Schema,
        reading: &Reading,
        file: Option<&DataFile>,
        kind: &DataType,
    ) -> Result<ScalarValue> {
        let null = || ScalarValue::try_new_null(kind);
        let number = |it: Option<u64>| match it {
            Some(it) => Ok(ScalarValue::Int64(Some(i64::try_from(it).map_err(|_| too_large(it))?))),
            None => null(),
        };
        match (self, file) {
            (Self::Partition(at), _) => {
                // The files of one unit lie in one partition.
                let Some(file) = reading.task.files.first() else { return null() };
                let name = table.field(*at).name();
                match file.partition.iter().find(|(it, _)| it == name) {
                    Some((_, Some(value))) => to_arrow(value, kind),
                    _ => null(),
                }
            }
            (Self::ChangeKind, _) => Ok(match &reading.change {
                Some((ChangeKind::Insert, _)) => text("insert"),
                Some((ChangeKind::Delete, _)) => text("delete"),
                Some((ChangeKind::InColumn(_), _)) | None => return null(),
            }),
            (Self::ChangeVersion, _) => match &reading.change {
                Some((_, version)) => text(version.id.as_str()).cast_to(kind),
                None => null(),
            },
            (Self::ChangeTime, _) => time(reading.change.as_ref().map(|(_, version)| version.committed_at)),
            (Self::FileNumber, _) => Ok(ScalarValue::Int32(reading.number)),
            (_, None) => null(),
            (Self::Path, Some(file)) => Ok(text(&location(storage, &file.path))),
            (Self::Name, Some(file)) => Ok(text(file.path.as_str().rsplit('/').next().unwrap_or_default())),
            (Self::Bytes, Some(file)) => number(Some(file.bytes)),
            (Self::ModifiedAt, Some(file)) => time(file.modified_at),
            (Self::FirstRowId, Some(file)) => number(file.first_row_id),
            (Self::RowVersion, Some(file)) => number(file.row_version),
        }
    }
}

/// The file's location, whole.
pub(crate) fn location(storage: &Storage, path: &FilePath) -> String {
    match path {
        FilePath::Below(below) => format!("{}/{below}", storage.location()),
        FilePath::Outside(location) => location.as_ref().to_owned(),
    }
}

fn text(it: &str) -> ScalarValue {
    ScalarValue::Utf8(Some(it.to_owned()))
}

fn time(at: Option<Millis>) -> Result<ScalarValue> {
    let zone: Arc<str> = "UTC".into();
    let micros = at.map(|it| it.0.checked_mul(1000).ok_or_else(|| too_large(it.0)));
    Ok(ScalarValue::TimestampMicrosecond(micros.transpose()?, Some(zone)))
}

fn too_large(it: impl std::fmt::Display) -> datafusion::error::DataFusionError {
    external(Error::corrupt(format!("{it} is too large for a column of 64 bits")))
}
