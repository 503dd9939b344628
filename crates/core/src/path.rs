//! Where a table's files are, and which places a table may name at all.
//!
//! Metadata are untrusted input. Every path a table names (data, delete, vector, log, sidecar, statistics,
//! clone) becomes a [`FilePath`] in exactly one way, [`PathPolicy::resolve`], which decodes once and admits
//! only places below the table's root or below a root the operator listed.
use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Result};

/// A file of a table, decoded and canonical: equal paths are the same file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum FilePath {
    /// Below the table's root: segments joined by `/`, no leading slash, no `.` or `..`, not percent-encoded.
    Below(Arc<str>),
    /// Elsewhere, admitted by the policy: `scheme://authority/key`, canonical scheme, key not percent-encoded.
    Outside(Arc<str>),
}

impl FilePath {
    /// A name Lakebed made itself, below the root. Never for a name read from a table.
    pub fn below(path: impl Into<Arc<str>>) -> Self {
        Self::Below(path.into())
    }

    /// The path as users see it: relative to the root, or the whole location.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Below(path) | Self::Outside(path) => path,
        }
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which places a table may name: below its root, or below a root that the operator allowed.
#[derive(Debug, Clone)]
pub struct PathPolicy {
    root: String,
    allowed: Vec<String>,
}

impl PathPolicy {
    /// `root` is the table's canonical location, see [`Storage::new`](crate::storage::Storage::new).
    pub fn new(root: &str) -> Self {
        Self { root: root.trim_end_matches('/').to_owned(), allowed: Vec::new() }
    }

    /// Also admits places below `location`. From the operator's configuration only, never from a table.
    #[must_use]
    pub fn allow(mut self, location: &str) -> Self {
        self.allowed.push(location.trim_end_matches('/').to_owned());
        self
    }

    /// A path as Delta writes it: a relative reference or URI in RFC 2396, percent-encoded once.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] when the place is outside the root and the allowed list; [`ErrorKind::Corrupt`] when
    /// the text is no such reference (`..`, NUL, a bad escape).
    pub fn resolve_uri(&self, raw: &str) -> Result<FilePath> {
        let decoded = percent_encoding::percent_decode_str(raw).decode_utf8().map_err(|_| {
            Error::new(ErrorKind::Corrupt, format!("path `{}` is not UTF-8 once decoded", raw.escape_debug()))
        })?;
        self.resolve_plain(&decoded)
    }

    /// A path as Iceberg, Hudi and Paimon write it: a location or relative path that is not encoded.
    pub fn resolve_plain(&self, raw: &str) -> Result<FilePath> {
        if raw.split('/').any(|it| it == "..") {
            return Err(Error::new(
                ErrorKind::Refused,
                format!("path `{}` climbs out of its folder", raw.escape_debug()),
            ));
        }
        Ok(FilePath::below(raw))
    }
}
