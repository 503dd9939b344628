//! Verbs that change a table.
use clap::{Args, Subcommand};

use super::TABLE_HELP;

const PLAIN_TABLE: &str = "Path or URL of a table, or [schema.]name";

#[derive(Debug, Args)]
pub(crate) struct Tag {
    #[command(subcommand)]
    pub(crate) action: TagAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TagAction {
    /// Name a version, so that Lakebed's clean-up keeps it
    Create(TagCreate),
    /// List the tags of a table
    List {
        #[arg(value_name = "TABLE", help = PLAIN_TABLE)]
        table: String,
    },
    /// Drop a tag; the version stays until a clean-up
    Delete {
        #[arg(value_name = "NAME", help = "The tag")]
        name: String,
        #[arg(value_name = "TABLE", help = PLAIN_TABLE)]
        table: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TagCreate {
    /// The tag's name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[arg(value_name = "TABLE[@REV]", help = TABLE_HELP)]
    pub(crate) table: String,
    /// When the tag may go: a time, or how long from now, as 30d
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<String>,
    /// Add the table feature that tags need, where it is missing
    #[arg(long)]
    #[arg(
        long_help = "Add the table feature that tags need, where it is missing.\nEngines that do not know the feature can no longer write to the table."
    )]
    pub(crate) upgrade: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    #[arg(value_name = "TABLE@REV", help = "A table, and the version whose rows come back")]
    pub(crate) table: String,
    /// Print which files would come and go, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The value of `--apply` alone.
pub(crate) const ANY_PLAN: &str = "";

/// How a plan that deletes is carried out.
#[derive(Debug, Clone, Args)]
pub(crate) struct Apply {
    /// Carry the plan out; with =PLAN only if it is still that plan
    #[arg(long, value_name = "PLAN", num_args = 0..=1, require_equals = true, default_missing_value = ANY_PLAN)]
    pub(crate) apply: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Vacuum {
    #[arg(value_name = "TABLE", help = PLAIN_TABLE)]
    pub(crate) table: String,
    /// Only what went longer ago than this [default: as the table says]
    #[arg(long, value_name = "AGE")]
    #[arg(
        long_help = "Only files that went longer ago than AGE, as 168h, or before a time.\nDefault: what the table's own properties say."
    )]
    pub(crate) older_than: Option<String>,
    /// Only files the log names, without listing the whole table
    #[arg(long)]
    pub(crate) lite: bool,
    #[command(flatten)]
    pub(crate) apply: Apply,
    /// Accept an age so short that running readers and writers may break
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Orphans {
    #[arg(value_name = "TABLE", help = PLAIN_TABLE)]
    pub(crate) table: String,
    /// Only files last written longer ago than this, as 3d
    #[arg(long, value_name = "AGE", default_value = "3d")]
    pub(crate) older_than: String,
    #[command(flatten)]
    pub(crate) apply: Apply,
    /// Accept an age so short that running writers may break
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Expire {
    #[arg(value_name = "TABLE", help = PLAIN_TABLE)]
    pub(crate) table: String,
    /// Forget versions older than this [default: as the table says]
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<String>,
    /// Keep at least so many versions
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<usize>,
    #[command(flatten)]
    pub(crate) apply: Apply,
}

#[derive(Debug, Args)]
pub(crate) struct Compact {
    #[arg(value_name = "TABLE", help = PLAIN_TABLE)]
    pub(crate) table: String,
    /// Only files of these partitions: a condition in SQL
    #[arg(long = "where", value_name = "SQL")]
    pub(crate) filter: Option<String>,
    /// How large files become, as 256MiB [default: as the table says]
    #[arg(long, value_name = "SIZE")]
    pub(crate) target_size: Option<String>,
    /// Print which files would be rewritten, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Checkpoint {
    #[arg(value_name = "TABLE", help = PLAIN_TABLE)]
    pub(crate) table: String,
    /// Print what would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
