//! What can be wrong with a log.
use lakebed_core::{Error, ErrorKind};

#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    #[error("{location} is not a Delta table: looked for commits and checkpoints in {location}/_delta_log/")]
    NotATable { location: String },
    #[error("log version {missing} is gone, but {next} is there")]
    Gap { missing: u64, next: u64, readable: Option<u64> },
    #[error("log version {missing} is gone, and no checkpoint covers it")]
    NoBase { missing: u64, readable: Option<u64> },
    #[error("version {wanted} does not exist: the newest is {newest}")]
    TooNew { wanted: u64, newest: u64 },
    #[error(
        "version {wanted} can no longer be read: log version {missing} is gone, and no checkpoint at or before {wanted} is left"
    )]
    Expired { wanted: u64, missing: u64, oldest: Option<u64> },
    #[error("{}: the commit is gone", crate::layout::commit_path(*.version))]
    NoCommit { version: u64 },
    #[error("{file} is gone although it was listed")]
    Vanished { file: String },
    #[error("{file}, line {line}, byte {offset}: {rule}")]
    BadLine { file: String, line: usize, offset: usize, rule: String },
    #[error("{file}: {rule}")]
    BadFile { file: String, rule: String },
    #[error("version {version} cannot be rebuilt: {reason}; the checkpoint at hand is of no use: {checkpoint}")]
    NoUsableBase { version: u64, reason: String, checkpoint: String },
    #[error("version {version} has no {action} action: neither its checkpoint nor its commits name one")]
    NoAction { version: u64, action: &'static str },
}

impl From<LogError> for Error {
    fn from(err: LogError) -> Self {
        let kind = match &err {
            LogError::NotATable { .. }
            | LogError::TooNew { .. }
            | LogError::Expired { .. }
            | LogError::NoCommit { .. } => ErrorKind::NotFound,
            LogError::Gap { .. }
            | LogError::NoBase { .. }
            | LogError::NoUsableBase { .. }
            | LogError::Vanished { .. }
            | LogError::BadLine { .. }
            | LogError::BadFile { .. }
            | LogError::NoAction { .. } => ErrorKind::Corrupt,
        };
        let hint = hint(&err);
        let error = Error::new(kind, err);
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

/// Whether an error is about what is stored, not about a store that does not answer or does not let the caller in.
pub(crate) fn is_damage(err: &Error) -> bool {
    !matches!(err.kind(), ErrorKind::Unavailable | ErrorKind::Unauthorized | ErrorKind::Internal)
}

/// Whether a cache that cannot be read for this reason is passed over: a definite answer about that one file.
///
/// A store that does not answer is never passed over: the next try would find the file again.
pub(crate) fn can_do_without(err: &Error) -> bool {
    is_damage(err) || err.kind() == ErrorKind::Unauthorized
}

fn hint(err: &LogError) -> Option<String> {
    match err {
        LogError::Gap { readable: Some(version), .. } | LogError::NoBase { readable: Some(version), .. } => {
            Some(format!("version {version} is the newest that can still be read"))
        }
        LogError::Gap { .. } | LogError::NoBase { .. } => {
            Some("no version can be rebuilt; restore the missing file from a backup".to_owned())
        }
        LogError::Expired { oldest: Some(version), .. } => Some(format!("the oldest version kept is {version}")),
        _ => None,
    }
}
