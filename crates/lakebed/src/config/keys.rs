//! Every key of the configuration: its name, its shape, and who may set it.

/// A key of `config.toml`, `lakebed.toml` and, upper-cased with `_` for `.`, of the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    pub name: &'static str,
    pub shape: Shape,
    pub default: Option<&'static str>,
    pub about: &'static str,
}

/// What a value must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Text,
    Bool,
    Bytes,
    Duration,
    Choice(&'static [&'static str]),
    /// Several locations; in the environment split at commas.
    List,
    /// A reference to credentials, see [`SecretRef`](crate::secret::SecretRef).
    Secret,
}

impl Key {
    /// `LAKEBED_STORE_S3_REGION`.
    pub fn variable(&self) -> String {
        format!("LAKEBED_{}", self.name.replace('.', "_").to_ascii_uppercase())
    }

    pub fn find(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|it| it.name == name)
    }
}

const fn key(name: &'static str, shape: Shape, default: Option<&'static str>, about: &'static str) -> Key {
    Key { name, shape, default, about }
}

/// In alphabetical order.
pub const KEYS: &[Key] = &[
    key("color", Shape::Choice(&["auto", "always", "never"]), Some("auto"), "colours on the terminal"),
    key("format", Shape::Choice(FORMATS), None, "output format; table on a terminal, tsv in a pipe"),
    key("memory", Shape::Bytes, None, "limit for queries, as 2GiB; half of the machine's memory by default"),
    key("paths.allow", Shape::List, None, "places outside a table that its metadata may name"),
    key("profile", Shape::Text, None, "settings of `[profile.NAME]` that win over the rest of the files"),
    key(
        "progress",
        Shape::Choice(&["auto", "always", "never", "json"]),
        Some("auto"),
        "progress on stderr; json is a line an event",
    ),
    key("read_only", Shape::Bool, Some("false"), "refuse every write"),
    key("store.azure.account", Shape::Text, None, "account of az:// locations"),
    key("store.azure.allow_http", Shape::Bool, Some("false"), "allow unencrypted requests"),
    key("store.azure.credentials", Shape::Secret, None, "reference to credentials"),
    key("store.azure.endpoint", Shape::Text, None, "base URL instead of the account's own"),
    key("store.gcs.allow_http", Shape::Bool, Some("false"), "allow unencrypted requests"),
    key("store.gcs.credentials", Shape::Secret, None, "reference to credentials"),
    key("store.gcs.endpoint", Shape::Text, None, "base URL instead of storage.googleapis.com"),
    key("store.http.allow_http", Shape::Bool, Some("true"), "allow http:// locations"),
    key("store.retries", Shape::Text, Some("4"), "how often a failed request is sent again"),
    key("store.s3.allow_http", Shape::Bool, Some("false"), "allow unencrypted requests"),
    key("store.s3.credentials", Shape::Secret, None, "reference to credentials"),
    key("store.s3.endpoint", Shape::Text, None, "base URL instead of AWS's own"),
    key("store.s3.region", Shape::Text, None, "region of the buckets"),
    key("store.s3.virtual_hosted", Shape::Bool, Some("false"), "bucket name in the host, not in the path"),
    key("store.timeout", Shape::Duration, Some("30s"), "limit for one request"),
    key("table_format", Shape::Text, None, "format of tables whose folder fits more than one"),
    key("timeout", Shape::Duration, None, "limit for the whole command, as 10m"),
    key("tz", Shape::Text, Some("UTC"), "zone of times without one"),
    key("warehouse", Shape::Text, Some("./lakehouse"), "folder of the default catalog"),
];

/// Names of output formats.
pub const FORMATS: &[&str] = &["table", "csv", "tsv", "json", "ndjson", "markdown", "vertical", "arrow", "parquet"];
