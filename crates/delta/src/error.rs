//! What can be wrong with a Delta table, or with what is asked of it.
use lakebed_core::{Error, ErrorKind, version::Millis};

#[derive(Debug, thiserror::Error)]
pub(crate) enum DeltaError {
    // Protocol, schema and values.
    #[error("table needs reader version {version}; this build reads versions 1 to 3{}", named(.features))]
    ReaderVersion { version: i32, features: Vec<String> },
    #[error("table (reader version {version}) needs reader features this build does not have: {}", quoted(.features))]
    ReaderFeatures { version: i32, features: Vec<String> },
    #[error(
        "table (reader version {version}) is managed by a catalog (feature `{feature}`): its files alone do not say which commits hold"
    )]
    CatalogManaged { version: i32, feature: String },
    #[error(
        "table is managed by a commit coordinator (property `{property}`): its files alone do not say which commits hold"
    )]
    Coordinated { property: &'static str },
    #[error("table needs writer version {version}; this build knows versions 1 to 7")]
    WriterVersion { version: i32 },
    #[error("table (writer version {version}) needs writer features this build does not have: {}", quoted(.features))]
    WriterFeatures { version: i32, features: Vec<String> },
    #[error("protocol: {0}")]
    Protocol(String),
    #[error("data files are `{provider}`, not parquet")]
    Provider { provider: String },
    #[error("schema: {0}")]
    Schema(String),
    #[error("column `{}` has type `{}`, which this build does not have", .column.escape_debug(), .kind.escape_debug())]
    UnsupportedType { column: String, kind: String },
    #[error("schema: {what} {found}, more than the {limit} this build reads")]
    SchemaLimit { what: &'static str, found: usize, limit: usize },
    #[error("{file}: partition value `{}` of column `{column}` is not a {kind}", .value.escape_debug())]
    PartitionValue { file: String, column: String, value: String, kind: String },
    #[error("{file}: its add action leaves out the value of partition column `{column}`")]
    NoPartitionValue { file: String, column: String },
    #[error("{file}: its remove action leaves out the partition values")]
    NoPartitionValues { file: String },
    #[error("table property `{name}` is `{value}`: {reason}")]
    Property { name: String, value: String, reason: String },
    #[error("metadata domain `{domain}`: {reason}")]
    Domain { domain: String, reason: String },
    #[error("{file}: {field} is {value}, which cannot be")]
    BadNumber { file: String, field: &'static str, value: i64 },

    // Deletion vectors.
    #[error("deletion vector of {data_file}: {reason}")]
    Vector { data_file: String, reason: String },
    #[error("deletion vector of {data_file} in {file} at {offset}: {reason}")]
    VectorFile { data_file: String, file: String, offset: u64, reason: String },

    // Time travel.
    #[error("`{0}` is not a version of a Delta table: versions are numbers from 0")]
    NotAVersion(String),
    #[error("no version is as old as {at}: the earliest that can be read is {earliest}, of {committed_at}")]
    TimeBeforeFirst { at: Millis, earliest: u64, committed_at: Millis },
    #[error("the table has no tag `{name}`{}", named(.known))]
    NoRef { name: String, known: Vec<String> },
    #[error("commit {file} lacks `inCommitTimestamp`, although the table has them since version {since}")]
    NoCommitTime { file: String, since: u64 },

    // Change feed.
    #[error("change data feed is not on in version {version}: `delta.enableChangeDataFeed` is not true")]
    ChangeFeedOff { version: u64 },
    #[error("change data feed: version {version} has another schema than version {last}: {reason}")]
    ChangeFeedSchema { version: u64, last: u64, reason: String },
    #[error("change data feed: the range starts at version {first} and ends before it, at {last}")]
    ChangeFeedRange { first: u64, last: u64 },
    #[error("`_delta_log/{version:020}.json` is gone, and with it what version {version} changed")]
    ChangesGone { version: u64 },
}

impl DeltaError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::TimeBeforeFirst { .. } | Self::NoRef { .. } | Self::ChangesGone { .. } => ErrorKind::NotFound,
            Self::Protocol(_)
            | Self::Schema(_)
            | Self::PartitionValue { .. }
            | Self::NoPartitionValue { .. }
            | Self::BadNumber { .. }
            | Self::NoPartitionValues { .. }
            | Self::Domain { .. }
            | Self::Vector { .. }
            | Self::VectorFile { .. }
            | Self::NoCommitTime { .. }
            | Self::Property { .. } => ErrorKind::Corrupt,
            Self::ReaderVersion { .. }
            | Self::ReaderFeatures { .. }
            | Self::CatalogManaged { .. }
            | Self::Coordinated { .. }
            | Self::WriterVersion { .. }
            | Self::WriterFeatures { .. }
            | Self::UnsupportedType { .. }
            | Self::Provider { .. } => ErrorKind::Unsupported,
            Self::SchemaLimit { .. } => ErrorKind::Limit,
            Self::NotAVersion(_)
            | Self::ChangeFeedOff { .. }
            | Self::ChangeFeedSchema { .. }
            | Self::ChangeFeedRange { .. } => ErrorKind::Invalid,
        }
    }

    /// The next step, where there is one.
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::ReaderVersion { .. } | Self::ReaderFeatures { .. } => {
                "`lakebed log`, `info` and `doctor` work on this table; its rows need a reader with these features"
                    .to_owned()
            }
            Self::CatalogManaged { .. } | Self::Coordinated { .. } => "open it through its catalog".to_owned(),
            Self::TimeBeforeFirst { earliest, .. } => {
                format!("read `VERSION AS OF {earliest}`, or list versions with `lakebed log`")
            }
            Self::NoRef { .. } => "list tags with `lakebed refs`".to_owned(),
            Self::ChangeFeedOff { version } => format!(
                "start the range after version {version}; `ALTER TABLE … SET TBLPROPERTIES (delta.enableChangeDataFeed = true)` turns it on for versions to come"
            ),
            Self::ChangeFeedSchema { last, .. } => format!("read the versions before {last} as a range of their own"),
            Self::VectorFile { .. } => {
                "the file may have been damaged or cut; a copy from a backup mends it".to_owned()
            }
            _ => return None,
        })
    }
}

impl From<DeltaError> for Error {
    fn from(err: DeltaError) -> Self {
        let (kind, hint) = (err.kind(), err.hint());
        let error = Error::new(kind, err);
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

/// The refusal of a place outside the table with what names it, `version 7` say, and the setting that lifts it.
pub(crate) fn named_by(err: Error, what: &str) -> Error {
    if err.kind() != ErrorKind::Refused {
        return err;
    }
    Error::new(ErrorKind::Refused, format!("{err}, and {what} names it"))
        .with_hint("a shallow clone reads files of another table: if you trust it, list that place in `paths.allow`")
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|it| format!("`{}`", it.escape_debug())).collect::<Vec<_>>().join(", ")
}

/// `: a, b`, or nothing where there are no names.
fn named(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(" ({})", quoted(names)) }
}
