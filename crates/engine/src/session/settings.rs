//! The variables that statements that write obey.
use lakebed_core::{Error, Result, change::Application};

use super::Session;

/// What `SET lakebed.…` says to statements that write.
#[derive(Debug, Clone)]
pub(crate) struct WriteSettings {
    /// Whether columns of the new rows that the table lacks are added to it.
    pub(crate) merge_schema: bool,
    pub(crate) partition_overwrite: PartitionOverwrite,
    /// Whether `VACUUM` refuses to delete what was needed less than the table's retention ago.
    pub(crate) retention_check: bool,
    /// How large `OPTIMIZE` makes files; `None`: as the table says.
    pub(crate) optimize_target_bytes: Option<u64>,
    /// The job that writes, and how far it came.
    pub(crate) application: Option<Application>,
    pub(crate) user_metadata: Option<String>,
}

/// Which rows `INSERT OVERWRITE` replaces where no partition is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartitionOverwrite {
    /// All.
    Static,
    /// Those in the partitions that the new rows are in.
    Dynamic,
}

const MERGE_SCHEMA: &str = "lakebed.write.merge_schema";
const PARTITION_OVERWRITE: &str = "lakebed.write.partition_overwrite";
const RETENTION_CHECK: &str = "lakebed.vacuum.retention_check";
const OPTIMIZE_TARGET: &str = "lakebed.optimize.target_bytes";
const APP_ID: &str = "lakebed.txn.app_id";
const APP_VERSION: &str = "lakebed.txn.version";
const USER_METADATA: &str = "lakebed.commit.user_metadata";

/// Names with their defaults; empty is not set.
pub(super) const DEFAULTS: &[(&str, &str)] = &[
    (MERGE_SCHEMA, "false"),
    (PARTITION_OVERWRITE, "static"),
    (RETENTION_CHECK, "true"),
    (OPTIMIZE_TARGET, ""),
    (APP_ID, ""),
    (APP_VERSION, ""),
    (USER_METADATA, ""),
];

/// Refuses a value that a setting cannot have.
pub(super) fn check(name: &str, value: &str) -> Result<()> {
    match name {
        MERGE_SCHEMA | RETENTION_CHECK => boolean(name, value).map(|_| ()),
        PARTITION_OVERWRITE => partition_overwrite(value).map(|_| ()),
        OPTIMIZE_TARGET => target_bytes(value).map(|_| ()),
        APP_VERSION if !value.is_empty() => version(value).map(|_| ()),
        _ => Ok(()),
    }
}

fn boolean(name: &str, value: &str) -> Result<bool> {
    match value.to_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Error::invalid(format!("`{name}` is true or false, not `{value}`"))),
    }
}

fn partition_overwrite(value: &str) -> Result<PartitionOverwrite> {
    match value.to_lowercase().as_str() {
        "static" => Ok(PartitionOverwrite::Static),
        "dynamic" => Ok(PartitionOverwrite::Dynamic),
        _ => Err(Error::invalid(format!("`{PARTITION_OVERWRITE}` is static or dynamic, not `{value}`"))),
    }
}

fn target_bytes(value: &str) -> Result<Option<u64>> {
    if value.is_empty() {
        return Ok(None);
    }
    let bytes = value.parse().ok().filter(|it| *it > 0);
    bytes.map(Some).ok_or_else(|| Error::invalid(format!("`{OPTIMIZE_TARGET}` is a number of bytes, not `{value}`")))
}

fn version(value: &str) -> Result<i64> {
    value.parse().map_err(|_| Error::invalid(format!("`{APP_VERSION}` is a whole number, not `{value}`")))
}

impl Session {
    /// The settings as they are now.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](lakebed_core::ErrorKind) where an application has no version, or a version no application.
    pub(crate) fn write_settings(&self) -> Result<WriteSettings> {
        let mutable = self.mutable_read();
        let value = |name: &str| mutable.variables.get(name).map(String::as_str).unwrap_or_default();
        let application = match (value(APP_ID), value(APP_VERSION)) {
            ("", "") => None,
            ("", _) => return Err(lonely(APP_VERSION, APP_ID)),
            (_, "") => return Err(lonely(APP_ID, APP_VERSION)),
            (id, text) => Some(Application { id: id.to_owned(), version: version(text)? }),
        };
        Ok(WriteSettings {
            merge_schema: boolean(MERGE_SCHEMA, value(MERGE_SCHEMA))?,
            partition_overwrite: partition_overwrite(value(PARTITION_OVERWRITE))?,
            retention_check: boolean(RETENTION_CHECK, value(RETENTION_CHECK))?,
            optimize_target_bytes: target_bytes(value(OPTIMIZE_TARGET))?,
            application,
            user_metadata: Some(value(USER_METADATA).to_owned()).filter(|it| !it.is_empty()),
        })
    }
}

fn lonely(set: &str, missing: &str) -> Error {
    Error::invalid(format!("`{set}` is set and `{missing}` is not: a job is named by both"))
        .with_hint(format!("SET {missing} = …, or RESET {set}"))
}
