//! What a store's answer means: for reads an error kind, for conditional writes one of three outcomes.
//!
//! The client of `object_store` retries 5xx, 429, 408 and connection errors on its own, also for conditional writes.
//! So "already exists" after a retry may mean our own first try, a 409 may mean that nobody's write landed, and a
//! timeout may mean anything: all of them are [`Put::Unknown`]. No safety rests on telling them from a loss: a commit
//! looks for its own write id after either. It rests on never calling an unknown write a failure.
use object_store::Error as StoreError;

use super::{Put, local::DiskError};
use crate::{Error, ErrorKind, Result};

/// An error of the store about `what`, with the kind that tells what to do.
///
/// An [`Error`] of Lakebed inside of it is a wrapper's own refusal, from before anything was sent, and is handed on.
/// A range behind the end of an object is the object's fault, not the store's: whoever asks for one has its size from
/// metadata.
pub fn storage_error(what: &str, err: StoreError) -> Error {
    if let StoreError::Generic { source, .. } = &err
        && let Some(disk) = source.downcast_ref::<DiskError>()
    {
        return disk.describe(what);
    }
    let err = match err {
        StoreError::Generic { store, source } => match source.downcast::<Error>() {
            Ok(refusal) => return refusal.with_subject(what.escape_debug()),
            Err(source) => StoreError::Generic { store, source },
        },
        other => other,
    };
    let text = err.to_string();
    let kind = match &err {
        StoreError::NotFound { .. } => ErrorKind::NotFound,
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => ErrorKind::Unauthorized,
        StoreError::NotSupported { .. } | StoreError::NotImplemented { .. } => ErrorKind::Unsupported,
        StoreError::InvalidPath { .. } | StoreError::UnknownConfigurationKey { .. } => ErrorKind::Invalid,
        StoreError::Generic { .. } if behind_the_end(&text) => ErrorKind::Corrupt,
        _ => ErrorKind::Unavailable,
    };
    let meaning = if kind == ErrorKind::Corrupt { "shorter than its metadata say: " } else { "" };
    Error::new(kind, format!("{}: {meaning}{text}", what.escape_debug()))
}

/// Whether a store was asked for bytes that the object does not have. `object_store` has no word for it: memory, its
/// local disk and servers (416) say it each in their own.
fn behind_the_end(text: &str) -> bool {
    let signs = ["but object was only", "Out of range of file", "Requested range was invalid", "status code: 416"];
    signs.iter().any(|it| text.contains(it))
}

/// What became of a conditional create of `what`.
pub(super) fn outcome<T>(what: &str, put: Result<T, StoreError>) -> Result<Put> {
    let err = match put {
        Ok(_) => return Ok(Put::Won),
        Err(err) => err,
    };
    let text = err.to_string();
    match &err {
        StoreError::AlreadyExists { .. } | StoreError::Precondition { .. } if !retried(&text) && !conflicted(&text) => {
            Ok(Put::Lost)
        }
        StoreError::Generic { source, .. }
            if source.is::<Error>() || source.downcast_ref::<DiskError>().is_some_and(DiskError::unsent) =>
        {
            Err(storage_error(what, err))
        }
        StoreError::NotFound { .. }
        | StoreError::PermissionDenied { .. }
        | StoreError::Unauthenticated { .. }
        | StoreError::NotSupported { .. }
        | StoreError::NotImplemented { .. }
        | StoreError::InvalidPath { .. }
        | StoreError::UnknownConfigurationKey { .. }
            if !retried(&text) =>
        {
            Err(storage_error(what, err))
        }
        _ => {
            tracing::warn!(object = what, answer = %text, "the store did not say whether it created the object");
            Ok(Put::Unknown)
        }
    }
}

/// Whether the client met this answer after a try of which it knows nothing: it says so in its text only.
fn retried(text: &str) -> bool {
    text.contains(" retries, max_retries")
}

/// "Conflict": two conditional writes met, and this one may be the one to try again (S3's 409).
fn conflicted(text: &str) -> bool {
    text.contains("status code: 409")
}
