//! Names for committed states of a table.
use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Millis(pub i64);

impl fmt::Display for Millis {
    /// RFC 3339 in UTC with milliseconds; the bare number where no calendar date stands for it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match chrono::DateTime::from_timestamp_millis(self.0) {
            Some(at) => write!(f, "{}", at.format("%Y-%m-%dT%H:%M:%S%.3fZ")),
            None => write!(f, "{} ms", self.0),
        }
    }
}

/// Names one committed state of one table, spelled as its own format spells it.
///
/// Deliberately not `Ord`: Iceberg ids are random. Order is the timeline's to tell.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VersionId(Arc<str>);

impl VersionId {
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<u64> for VersionId {
    fn from(id: u64) -> Self {
        Self(id.to_string().into())
    }
}

impl fmt::Display for VersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One committed state: its name, when it became visible, and what came before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    pub id: VersionId,
    /// Never decreases along a branch; where stored times do, the format's spec says how to mend.
    pub committed_at: Millis,
    pub parent: Option<VersionId>,
    pub schema_id: Option<i64>,
}

/// Which state of a table to read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AsOf {
    Latest,
    Version(VersionId),
    /// The newest version visible at this moment.
    Time(Millis),
    /// A branch, tag or savepoint.
    Ref(String),
}

/// A version that an [`AsOf`] stands for, and the sentence that says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    pub version: Version,
    /// For people: the rule and the neighbours that decided.
    pub rule: String,
    /// Things a careful reader should know: a time later than the newest version, a clock that went back.
    pub warnings: Vec<String>,
}

/// The versions after `after` up to and including `until`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// `None` starts before the table's first version.
    pub after: Option<VersionId>,
    pub until: AsOf,
}

impl Span {
    /// Every version the table still knows.
    pub fn all() -> Self {
        Self { after: None, until: AsOf::Latest }
    }
}

/// A name that keeps a version alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ref {
    pub name: String,
    pub kind: RefKind,
    pub version: VersionId,
    pub created_at: Option<Millis>,
    /// When a service may drop the name; `None` keeps it until dropped by hand.
    pub expires_at: Option<Millis>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefKind {
    /// A line of history that can take commits.
    Branch,
    /// A name that never moves: an Iceberg or Paimon tag, a Hudi savepoint.
    Tag,
}
