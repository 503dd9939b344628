//! The command line: what can be said, and what `--help` says about it.
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) mod writing;

const TABLE_HELP: &str = "Path or URL of a table, or [schema.]name; @REV picks a version";

/// One table, every version: opens, queries, changes and explains Delta tables.
#[derive(Debug, Parser)]
#[command(name = "lakebed", version, max_term_width = 80, disable_help_subcommand = false)]
#[command(
    after_help = "TABLE@REV: t@42, t@v42, t@tag:release, t@{2026-10-04}, t@{2 hours ago}, t@~3\nExit codes and configuration: lakebed man"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Run as if started in DIR
    #[arg(short = 'C', value_name = "DIR", global = true, help_heading = "Global options")]
    pub(crate) folder: Option<PathBuf>,
    /// Settings of this profile of the configuration
    #[arg(short = 'p', long, value_name = "NAME", global = true, help_heading = "Global options")]
    pub(crate) profile: Option<String>,
    /// Output format [default: table on a terminal, tsv in a pipe]
    #[arg(
        short = 'o',
        long = "format",
        alias = "output",
        value_name = "FORMAT",
        global = true,
        hide_possible_values = true,
        help_heading = "Global options"
    )]
    #[arg(
        long_help = "Output format: table, csv, tsv, json, ndjson, markdown, vertical, arrow, parquet.\nDefault: table on a terminal, tsv in a pipe. Binary values are hexadecimal."
    )]
    pub(crate) format: Option<Format>,
    /// Show only these columns
    #[arg(long, value_name = "A,B", value_delimiter = ',', global = true, help_heading = "Global options")]
    pub(crate) columns: Option<Vec<String>>,
    /// Show at most N rows
    #[arg(long, value_name = "N", global = true, help_heading = "Global options")]
    pub(crate) limit: Option<usize>,
    /// Colours: auto, always, never
    #[arg(long, value_name = "WHEN", global = true, hide_possible_values = true, help_heading = "Global options")]
    pub(crate) color: Option<When>,
    /// Progress on stderr: auto, always, never, json
    #[arg(long, value_name = "WHEN", global = true, hide_possible_values = true, help_heading = "Global options")]
    pub(crate) progress: Option<Progress>,
    /// Say less
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Global options")]
    pub(crate) quiet: bool,
    /// Say more; twice: everything
    #[arg(short, long, action = clap::ArgAction::Count, global = true, help_heading = "Global options")]
    pub(crate) verbose: u8,
    /// Refuse every write
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) read_only: bool,
    /// Memory for sorts, joins and aggregates, as 2GiB
    #[arg(long, value_name = "SIZE", global = true, help_heading = "Global options")]
    pub(crate) memory: Option<String>,
    /// Give up after this time, as 10m
    #[arg(long, value_name = "TIME", global = true, help_heading = "Global options")]
    pub(crate) timeout: Option<String>,
    /// Zone of times written without one [default: UTC]
    #[arg(long, value_name = "ZONE", global = true, help_heading = "Global options")]
    pub(crate) tz: Option<String>,
    /// Format of the table, where its folder fits more than one
    #[arg(long, value_name = "NAME", global = true, help_heading = "Global options")]
    pub(crate) table_format: Option<String>,
    /// Folder of the default catalog [default: ./lakehouse]
    #[arg(long, value_name = "DIR", global = true, help_heading = "Global options")]
    pub(crate) warehouse: Option<String>,
    /// Show the storage requests and the rules that decided
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) explain: bool,
}

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Table,
    Csv,
    Tsv,
    Json,
    #[value(alias = "nd-json", alias = "jsonl")]
    Ndjson,
    #[value(alias = "md")]
    Markdown,
    Vertical,
    Arrow,
    Parquet,
}

impl Format {
    /// Whether a second result could not be told from the first.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Self::Arrow | Self::Parquet)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum When {
    #[default]
    Auto,
    Always,
    Never,
}

/// How what takes long is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Progress {
    /// Where somebody looks.
    #[default]
    Auto,
    Always,
    Never,
    /// A line an event, for programs.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run SQL: statements, a script, or a prompt
    Sql(Sql),
    /// List a table's versions, newest first, and which can still be read
    Log(Log),
    /// Show one version: what it did and what it changed
    Show(Named),
    /// Describe a table: format, size, schema, features, properties
    Info(Named),
    /// Show the columns of a table
    Schema(Named),
    /// List the live data files of a version
    Files(Named),
    /// List every action on a table, finished or not
    Timeline(Named),
    /// List tags and branches
    Refs(Named),
    /// Tell which version a time names, and why
    At(At),
    /// Show the first rows of a table
    Head(Head),
    /// Compare two versions: schema and files
    Diff(Diff),
    /// Examine a table's metadata; exit 1 when it is damaged
    Doctor(Named),
    /// Name versions, so that clean-up keeps them
    Tag(writing::Tag),
    /// Make the rows of an earlier version those of a new one
    Restore(writing::Restore),
    /// Delete files that no kept version needs; prints the plan first
    Vacuum(writing::Vacuum),
    /// Delete files that no version ever named; prints the plan first
    Orphans(writing::Orphans),
    /// Forget old versions of the log; prints the plan first
    Expire(writing::Expire),
    /// Rewrite small files into fewer large ones
    Compact(writing::Compact),
    /// Sum the log up, so that the table opens faster
    Checkpoint(writing::Checkpoint),
    /// Tell Lakebed's story on a small table that it makes
    Demo(Demo),
    /// Show the configuration in force
    Config(ConfigArgs),
    /// Print a completion script for a shell
    Completions(Completions),
    /// Print the manual, or write man pages to a folder
    Man(Man),
}

#[derive(Debug, Args)]
pub(crate) struct Sql {
    /// Run these statements; may be given several times
    #[arg(short = 'c', long = "command", value_name = "SQL")]
    pub(crate) commands: Vec<String>,
    /// Run the statements of a file; - is stdin
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print time, rows and requests of each statement as JSON on stderr
    #[arg(long)]
    pub(crate) timing: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    #[arg(value_name = "TABLE[@REV]", help = TABLE_HELP)]
    pub(crate) table: String,
}

#[derive(Debug, Args)]
pub(crate) struct Log {
    #[arg(value_name = "TABLE[@REV]", help = TABLE_HELP)]
    pub(crate) table: String,
    /// One short line a version
    #[arg(long, conflicts_with = "long")]
    pub(crate) oneline: bool,
    /// Also user, engine, parameters, metrics
    #[arg(long)]
    pub(crate) long: bool,
    /// Do not look whether each version's files are still there
    #[arg(long)]
    pub(crate) no_check: bool,
}

#[derive(Debug, Args)]
pub(crate) struct At {
    #[arg(value_name = "TABLE", help = TABLE_HELP)]
    pub(crate) table: String,
    /// A time: 2026-10-04, '2026-10-04 20:57:02+08:00', '2 hours ago'
    #[arg(value_name = "TIME")]
    pub(crate) time: String,
}

#[derive(Debug, Args)]
pub(crate) struct Head {
    #[arg(value_name = "TABLE[@REV]", help = TABLE_HELP)]
    pub(crate) table: String,
    /// How many rows
    #[arg(short = 'n', long = "rows", value_name = "N", default_value_t = 10)]
    pub(crate) rows: usize,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    #[arg(value_name = "TABLE[@REV]", help = TABLE_HELP)]
    pub(crate) left: String,
    /// The other side; @REV alone is a version of the same table
    #[arg(value_name = "TABLE[@REV]")]
    pub(crate) right: Option<String>,
    /// Compare columns only
    #[arg(long)]
    pub(crate) schema: bool,
    /// Compare files only
    #[arg(long)]
    pub(crate) files: bool,
    /// Exit 1 when there is a difference
    #[arg(long)]
    pub(crate) exit_code: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Make the table here instead of in a temporary folder, and keep it
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) action: ConfigAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// List every setting and its value
    List {
        /// Also where each value comes from
        #[arg(long)]
        show_origin: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Write one page a command here instead of printing the main page
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
