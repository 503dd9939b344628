//! Errors on their way through DataFusion: a [`Error`] travels inside `DataFusionError::External`, and
//! [`of_datafusion`](crate::error::of_datafusion) finds it again.
use std::error::Error as StdError;

use arrow_schema::ArrowError;
use datafusion::error::DataFusionError;
use lakebed_core::{Error, ErrorKind};
use parquet::errors::ParquetError;

use super::shape::{Misfit, Mismatch};

/// What the scan itself finds wrong.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    #[error("{file}: not readable as Parquet: {source}")]
    Parquet { file: String, source: ParquetError },
    #[error("{file}: {reason}")]
    BadFile { file: String, reason: String },
    #[error("{file} has {actual} bytes, but the table recorded {recorded}: it is not the file that was committed")]
    Changed { file: String, recorded: u64, actual: u64 },
    #[error("{file} was replaced after its footer was read: the files of a table never change")]
    Replaced { file: String },
    #[error("{file}: its vector names row {row}, but the file has {rows} rows")]
    VectorBeyondEnd { file: String, row: u64, rows: u64 },
    #[error("{file}: {mismatch}")]
    Type { file: String, mismatch: String },
    #[error("{what} is not read by this build")]
    Unsupported { what: String },
}

impl From<ScanError> for Error {
    fn from(err: ScanError) -> Self {
        let kind = match &err {
            ScanError::Unsupported { .. } => ErrorKind::Unsupported,
            ScanError::Parquet { source: ParquetError::External(inner), .. } => carried_kind(inner.as_ref()),
            ScanError::Parquet { .. }
            | ScanError::BadFile { .. }
            | ScanError::Changed { .. }
            | ScanError::Replaced { .. }
            | ScanError::VectorBeyondEnd { .. }
            | ScanError::Type { .. } => ErrorKind::Corrupt,
        };
        Error::new(kind, err)
    }
}

/// Wraps a Lakebed error for DataFusion.
pub(crate) fn external(err: impl Into<Error>) -> DataFusionError {
    DataFusionError::External(Box::new(err.into()))
}

/// Says that reading `file` failed, unless the error is ours and says so itself.
pub(crate) fn about_file(file: &str, err: DataFusionError) -> DataFusionError {
    match err {
        DataFusionError::ParquetError(source) => {
            external(ScanError::Parquet { file: file.to_owned(), source: *source })
        }
        DataFusionError::ArrowError(source, _) if parquet_failed(&source) => {
            external(ScanError::BadFile { file: file.to_owned(), reason: source.to_string() })
        }
        DataFusionError::ArrowError(source, trace) => match *source {
            ArrowError::ExternalError(source) => about_file(file, DataFusionError::External(source)),
            other => DataFusionError::ArrowError(Box::new(other), trace),
        },
        DataFusionError::External(source) => about_cause(file, source),
        DataFusionError::Context(_, source) => about_file(file, *source),
        err => err,
    }
}

fn about_cause(file: &str, source: Box<dyn StdError + Send + Sync>) -> DataFusionError {
    let source = match source.downcast::<Mismatch>() {
        Ok(mismatch) => return external(ScanError::Type { file: file.to_owned(), mismatch: mismatch.to_string() }),
        Err(source) => source,
    };
    match source.downcast::<Misfit>() {
        Ok(misfit) => external(ScanError::BadFile { file: file.to_owned(), reason: misfit.to_string() }),
        Err(source) => DataFusionError::External(source),
    }
}

/// Whether the decoder, not an expression of the query, made the error.
fn parquet_failed(err: &ArrowError) -> bool {
    matches!(err, ArrowError::ParquetError(_))
}

/// The kind of the Lakebed error behind `err`; what is none of ours is the decoder's complaint about the bytes.
fn carried_kind(err: &(dyn StdError + 'static)) -> ErrorKind {
    let mut next = Some(err);
    while let Some(here) = next {
        if let Some(ours) = here.downcast_ref::<Error>() {
            return ours.kind();
        }
        next = here.source();
    }
    ErrorKind::Corrupt
}
