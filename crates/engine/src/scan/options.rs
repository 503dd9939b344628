//! Settings of the scan: `SET lakebed.scan.<name> = …`.
use datafusion::{
    common::extensions_options,
    config::{ConfigExtension, ConfigOptions},
};

extensions_options! {
    /// How tables are read.
    pub struct ScanOptions {
        /// Whether `count(*)` may be answered from the row counts a table records, without opening its files. Off, each
        /// file's footer is read: a writer may have recorded a wrong count.
        pub trust_statistics: bool, default = false
        /// Whether filters run inside the Parquet decoder: `auto`, `on` or `off`.
        pub filter_pushdown: String, default = "auto".to_owned()
    }
}

impl ConfigExtension for ScanOptions {
    const PREFIX: &'static str = "lakebed.scan";
}

impl ScanOptions {
    /// The session's, or the defaults where it has none.
    pub(crate) fn of(config: &ConfigOptions) -> Self {
        config.extensions.get::<Self>().cloned().unwrap_or_default()
    }
}
