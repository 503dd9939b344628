//! What can be wrong with encoded bytes.
use lakebed_core::{Error, ErrorKind};

#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    #[error("bitmap: {0}")]
    Bitmap(String),
    #[error("{file}: not a Parquet file: {reason}")]
    NotParquet { file: String, reason: String },
    #[error("{file}: {source}")]
    Parquet { file: String, source: parquet::errors::ParquetError },
    #[error("{file}: {source}")]
    Arrow { file: String, source: arrow_schema::ArrowError },
    #[error("{file}: Parquet footer: {reason}")]
    Footer { file: String, reason: String },
    #[error("{file}: the footer is encrypted")]
    Encrypted { file: String },
    #[error("{file}: {what} is {size} bytes, more than the {limit} this build reads")]
    TooLarge { file: String, what: &'static str, size: u64, limit: u64 },
    #[error("{what}: the decoder gave up: {panic}")]
    Panicked { what: String, panic: String },
}

impl From<CodecError> for Error {
    fn from(err: CodecError) -> Self {
        let kind = match &err {
            CodecError::Encrypted { .. } => ErrorKind::Unsupported,
            CodecError::TooLarge { .. } => ErrorKind::Limit,
            CodecError::Bitmap(_)
            | CodecError::NotParquet { .. }
            | CodecError::Parquet { .. }
            | CodecError::Arrow { .. }
            | CodecError::Footer { .. }
            | CodecError::Panicked { .. } => ErrorKind::Corrupt,
        };
        Error::new(kind, err)
    }
}
