//! What can go wrong on a disk, told apart by whether anything may have become visible.
use std::io;

use object_store::Error as StoreError;
use rustix::io::Errno;

use crate::{Error, ErrorKind};

/// An error of [`LocalDisk`](super::LocalDisk) that an `object_store` error has no word for.
#[derive(Debug, thiserror::Error)]
pub(in crate::storage) enum DiskError {
    #[error("`{link}` is a symbolic link, and links below a table are not followed")]
    Link { link: String },
    #[error("`{path}` is neither a file nor a folder")]
    NotRegular { path: String },
    #[error("folders nest deeper than {limit} levels at `{path}`")]
    TooDeep { path: String, limit: usize },
    #[error("`{path}` has only {bytes} bytes, fewer than its metadata say")]
    Short { path: String, bytes: u64 },
    /// A write that failed before its object could have become visible.
    #[error("`{path}` was not written: {source}")]
    Unsent { path: String, source: io::Error },
    #[error("`{path}`: {source}")]
    Io { path: String, source: io::Error },
}

impl DiskError {
    /// The link that was in the way, by its key.
    pub(in crate::storage) fn link(err: &StoreError) -> Option<&str> {
        let StoreError::Generic { source, .. } = err else { return None };
        match source.downcast_ref()? {
            Self::Link { link } => Some(link),
            _ => None,
        }
    }

    /// Whether a write with this error surely left nothing visible.
    pub(in crate::storage) fn unsent(&self) -> bool {
        !matches!(self, Self::Io { .. })
    }

    /// The error a reader of `what` sees.
    pub(in crate::storage) fn describe(&self, what: &str) -> Error {
        let kind = match self {
            Self::Link { .. } | Self::NotRegular { .. } => ErrorKind::Refused,
            Self::TooDeep { .. } => ErrorKind::Limit,
            Self::Short { .. } => ErrorKind::Corrupt,
            Self::Unsent { source, .. } | Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Unauthorized,
                io::ErrorKind::InvalidFilename => ErrorKind::Invalid,
                io::ErrorKind::Unsupported => ErrorKind::Unsupported,
                _ => ErrorKind::Unavailable,
            },
        };
        let error = Error::new(kind, format!("{}: {self}", what.escape_debug()));
        match self {
            Self::Link { .. } => error.with_hint("copy the file to where the link stands"),
            _ => error,
        }
    }
}

pub(super) fn generic(source: impl std::error::Error + Send + Sync + 'static) -> StoreError {
    StoreError::Generic { store: "local disk", source: Box::new(source) }
}

impl From<DiskError> for StoreError {
    fn from(err: DiskError) -> Self {
        generic(err)
    }
}

/// The error of reading or looking at `key`.
pub(super) fn reading(key: &str, errno: Errno) -> StoreError {
    let (path, source) = (key.to_owned(), io::Error::from(errno));
    match errno {
        // A name too long for the disk is a name of nothing.
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG => StoreError::NotFound { path, source: source.into() },
        Errno::ACCESS | Errno::PERM => StoreError::PermissionDenied { path, source: source.into() },
        Errno::NXIO => DiskError::NotRegular { path }.into(),
        _ => DiskError::Io { path, source }.into(),
    }
}

/// The error of a write to `key` that failed before its object became visible.
pub(super) fn unsent(key: &str, errno: Errno) -> StoreError {
    DiskError::Unsent { path: key.to_owned(), source: errno.into() }.into()
}
