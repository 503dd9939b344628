//! Where a table's files are, and which places a table may name at all.
//!
//! Metadata are untrusted input. Every path a table names (data, delete, vector, log, sidecar, statistics,
//! clone) becomes a [`FilePath`] in exactly one way:
//!
//! 1. Read the text as one of four forms: `scheme:/…`, `scheme://authority/…`, `/absolute`, `relative`. A colon without
//!    a slash behind it, a `?` or a `#` is part of a name.
//! 2. Decode percent escapes exactly once (Delta), or not at all (Iceberg, Hudi, Paimon).
//! 3. Split into segments, and refuse what no file of a table has: `..`, back-slashes, control characters.
//! 4. Put it in canonical form: scheme aliases folded, host in lower case, `/absolute` in the root's own store.
//! 5. Admit it if its segments begin with those of the root, or of a place the operator listed.
//!
//! Spec: Delta PROTOCOL.md, "Add File and Remove File" (RFC 2396); Java's `URI` decides where that is silent.
use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use self::location::{Location, Reference};
use crate::{Error, ErrorKind, Result};

mod location;

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
    root: Location,
    allowed: Vec<Location>,
    moved: Vec<(Location, Location)>,
}

impl PathPolicy {
    /// `root` is the table's canonical location, see [`Storage::new`](crate::storage::Storage::new).
    pub fn new(root: &str) -> Self {
        Self { root: Location::trusted(root), allowed: Vec::new(), moved: Vec::new() }
    }

    /// Also admits places below `location`. From the operator's configuration only, never from a table.
    #[must_use]
    pub fn allow(mut self, location: &str) -> Self {
        let location = Location::trusted(location);
        if !self.allowed.contains(&location) {
            self.allowed.push(location);
        }
        self
    }

    /// Reads paths below `from` as paths below `to`: for a table that was copied with absolute paths in it.
    ///
    /// From the operator's configuration only. The new place must be admitted like any other.
    #[must_use]
    pub fn moved(mut self, from: &str, to: &str) -> Self {
        self.moved.push((Location::trusted(from), Location::trusted(to)));
        self
    }

    /// A path as Delta writes it: a relative reference or URI in RFC 2396, percent-encoded once.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] when the place is outside the root and the allowed list, climbs out of its folder, or
    /// hides a user or a back-slash in it; [`ErrorKind::Corrupt`] when the text is no such reference (NUL, a bad
    /// escape, bytes that are not UTF-8).
    pub fn resolve_uri(&self, raw: &str) -> Result<FilePath> {
        if location::is_canonical(raw) {
            return Ok(FilePath::Below(raw.into()));
        }
        self.resolve(raw, &Reference::encoded(raw)?)
    }

    /// A path as Iceberg, Hudi and Paimon write it: a location or relative path that is not encoded.
    ///
    /// # Errors
    /// As [`PathPolicy::resolve_uri`]; a percent sign is a character like any other.
    pub fn resolve_plain(&self, raw: &str) -> Result<FilePath> {
        if location::is_canonical(raw) {
            return Ok(FilePath::Below(raw.into()));
        }
        self.resolve(raw, &Reference::plain(raw)?)
    }

    fn resolve(&self, raw: &str, reference: &Reference) -> Result<FilePath> {
        let mut place = match reference {
            Reference::Relative(segments) => return below(raw, segments),
            Reference::Absolute(segments) => self.root.with_segments(segments.clone()),
            Reference::Location(location) => location.clone(),
        };
        if let Some((from, to)) = self.moved.iter().find(|(from, _)| place.below(from).is_some()) {
            let rest = place.below(from).unwrap_or_default();
            place = to.with_segments([to.segments(), rest].concat());
        }
        if let Some(rest) = place.below(&self.root) {
            return below(raw, rest);
        }
        if self.allowed.iter().any(|it| place.below(it).is_some_and(|rest| !rest.is_empty())) {
            return Ok(FilePath::Outside(place.to_string().into()));
        }
        let message = format!("path `{}` lies outside the table at {}", shown(raw), self.root);
        Err(Error::new(ErrorKind::Refused, message).with_hint(
            "a shallow clone reads files of another table: if you trust it, add that place to the allowed paths",
        ))
    }
}

/// The canonical text of a location as an operator or a user gives it: aliases folded, no trailing slash. A percent
/// sign is a character like any other.
///
/// # Errors
/// [`ErrorKind::Invalid`] when it has no scheme or cannot be a place of a table.
pub fn canonical_location(raw: &str) -> Result<String> {
    let invalid = |reason: String| Error::invalid(reason).with_hint("a location is `scheme://authority/path`");
    match Reference::plain(raw) {
        Ok(Reference::Location(location)) => Ok(location.to_string()),
        Ok(_) => Err(invalid(format!("location `{}` has no scheme", shown(raw)))),
        Err(err) => Err(invalid(err.to_string())),
    }
}

fn below(raw: &str, segments: &[String]) -> Result<FilePath> {
    if segments.is_empty() {
        return Err(Error::corrupt(format!("path `{}` names no file", shown(raw))));
    }
    Ok(FilePath::Below(segments.join("/").into()))
}

/// `raw` for a message: escaped, so that it cannot play tricks with a terminal, and not endless.
fn shown(raw: &str) -> String {
    const LIMIT: usize = 300;
    let mut text: String = raw.chars().take(LIMIT).flat_map(char::escape_debug).collect();
    if raw.chars().nth(LIMIT).is_some() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests;
