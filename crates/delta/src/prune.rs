//! Which files can hold rows that meet a predicate.
//!
//! 1. Partition values first: each combination that occurs is judged once, whatever the number of files.
//! 2. Statistics of the files left, and of the columns the predicate names only.
//!
//! What is missing, damaged or unknown keeps the file.
use std::{
    collections::{BTreeSet, HashMap},
    fmt::Write,
};

use arrow_schema::{DataType, FieldRef, Fields};
use lakebed_core::{
    expr::{ColumnPath, Predicate, Scalar},
    file::{ColumnStats, FileStats},
    prune::{Facts, keep},
};

use crate::{
    checkpoint::files::FileStatistics,
    partition,
    schema::{TableSchema, physical_name},
    state::{ListBatch, columns::PartitionValues},
    stats::{StatsColumns, StatsPlan},
};

/// A predicate, ready to judge files of one table.
#[derive(Debug, Clone)]
pub(crate) struct Pruner {
    predicate: Predicate,
    /// Partition columns the predicate names.
    partition: Vec<FieldRef>,
    /// Statistics of the other columns it names.
    plan: StatsPlan,
    leaves: StatsLeaves,
}

/// Which leaves below `stats_parsed` some columns need.
#[derive(Debug, Clone)]
pub(crate) enum StatsLeaves {
    All,
    /// Of these columns, by physical names; and the row counts.
    Of(Vec<Vec<String>>),
}

impl StatsLeaves {
    /// The leaves of `columns`; `None` is every column.
    pub(crate) fn of(schema: &TableSchema, columns: Option<&BTreeSet<ColumnPath>>) -> Self {
        let Some(columns) = columns else { return Self::All };
        Self::Of(columns.iter().map(|it| physical_path(schema.arrow.fields(), &it.0)).collect())
    }

    pub(crate) fn needs(&self, leaf: &[String]) -> bool {
        let Self::Of(columns) = self else { return true };
        match leaf {
            [counts] => counts == "numRecords" || counts == "tightBounds",
            [_, column @ ..] => columns.iter().any(|it| column.starts_with(it)),
            [] => false,
        }
    }
}

/// A column's path in the log; as far as it is found.
fn physical_path(fields: &Fields, path: &[String]) -> Vec<String> {
    let mut fields = Some(fields);
    let names = path.iter().map_while(|name| {
        let field = fields?.iter().find(|it| it.name() == name)?;
        fields = if let DataType::Struct(inner) = field.data_type() { Some(inner) } else { None };
        Some(physical_name(field).to_owned())
    });
    names.collect()
}

impl Pruner {
    pub(crate) fn new(schema: &TableSchema, predicate: &Predicate) -> Self {
        let mut named = BTreeSet::new();
        columns(predicate, &mut named);
        let partition = schema.partition_fields().filter(|it| named.contains(&ColumnPath::top(it.name().as_str())));
        Self {
            predicate: predicate.clone(),
            partition: partition.cloned().collect(),
            plan: StatsPlan::of(schema, Some(&named)),
            leaves: StatsLeaves::of(schema, Some(&named)),
        }
    }

    pub(crate) fn keeps_all(&self) -> bool {
        self.predicate == Predicate::True
    }

    /// Whether statistics can tell anything beyond partition values.
    pub(crate) fn wants_statistics(&self) -> bool {
        !self.plan.is_empty()
    }

    pub(crate) fn needs(&self, leaf: &[String]) -> bool {
        self.leaves.needs(leaf)
    }

    /// The live rows of `batch` to read, ascending. `statistics` may be [`FileStatistics::None`].
    pub(crate) fn survivors(&self, batch: &ListBatch, statistics: &FileStatistics) -> Vec<usize> {
        if self.keeps_all() {
            return batch.live_rows().collect();
        }
        let mut partitions = Partitions::of(self, batch);
        let statistics = Statistics::of(&self.plan, statistics);
        let mut wanted = |row: usize| {
            let known = partitions.judge(self, row);
            known.keep && statistics.as_ref().is_none_or(|it| self.may_match(known, it.read(&self.plan, row)))
        };
        let mut rows: Vec<usize> = batch.live_rows().collect();
        rows.retain(|row| wanted(*row));
        rows
    }

    fn may_match(&self, partition: &Judged, stats: FileStats) -> bool {
        let facts = FileFacts { partition: &partition.values, stats: Some(&stats) };
        keep(&self.predicate, &facts)
    }
}

/// Adds the columns that `predicate` names.
pub(crate) fn columns(predicate: &Predicate, named: &mut BTreeSet<ColumnPath>) {
    match predicate {
        Predicate::True | Predicate::False => (),
        Predicate::And(all) | Predicate::Or(all) => all.iter().for_each(|it| columns(it, named)),
        Predicate::Not(inner) => columns(inner, named),
        Predicate::IsNull(column)
        | Predicate::Compare(column, ..)
        | Predicate::In(column, _)
        | Predicate::StartsWith(column, _) => {
            named.insert(column.clone());
        }
    }
}

/// Statistics of a batch, ready to be read by row.
enum Statistics<'a> {
    Text(&'a crate::state::columns::StatsText),
    Columns(StatsColumns),
}

impl<'a> Statistics<'a> {
    fn of(plan: &StatsPlan, statistics: &'a FileStatistics) -> Option<Self> {
        match statistics {
            _ if plan.is_empty() => None,
            FileStatistics::None => None,
            FileStatistics::Text(text) => Some(Self::Text(text)),
            FileStatistics::Parsed(columns) => Some(Self::Columns(StatsColumns::of(plan, columns))),
        }
    }

    fn read(&self, plan: &StatsPlan, row: usize) -> FileStats {
        match self {
            Self::Text(text) => text.get(row).map_or_else(FileStats::default, |it| plan.read(&it)),
            Self::Columns(columns) => columns.read(plan, row),
        }
    }
}

/// The partition values of a batch that the predicate asks for, and what is known of each combination.
struct Partitions {
    columns: Vec<PartitionValues>,
    judged: HashMap<String, Judged>,
    key: String,
}

struct Judged {
    keep: bool,
    /// The value of each column; the inner `None` is null. A column whose text is no value, or that the file does not name,
    /// is left out.
    values: Vec<(ColumnPath, Option<Scalar>)>,
}

impl Partitions {
    fn of(pruner: &Pruner, batch: &ListBatch) -> Self {
        let columns = pruner.partition.iter().map(|it| batch.files().partition_values(physical_name(it)));
        Self { columns: columns.collect(), judged: HashMap::new(), key: String::new() }
    }

    fn judge(&mut self, pruner: &Pruner, row: usize) -> &Judged {
        self.key.clear();
        for column in &self.columns {
            match column.get(row) {
                // The length keeps two values apart from one that looks like both.
                Some(text) => write!(self.key, "{}:{text}", text.len()).expect("writing to a string cannot fail"),
                None if column.is_named(row) => self.key.push('-'),
                // Not null: unknown, and the scan of the file says so.
                None => self.key.push('?'),
            }
        }
        if !self.judged.contains_key(&self.key) {
            let judged = self.judge_values(pruner, row);
            self.judged.insert(self.key.clone(), judged);
        }
        &self.judged[&self.key]
    }

    fn judge_values(&self, pruner: &Pruner, row: usize) -> Judged {
        let values = pruner.partition.iter().zip(&self.columns).filter_map(|(field, column)| {
            let parsed = partition::of_row("", field, column, row).ok()?;
            Some((ColumnPath::top(field.name().as_str()), parsed))
        });
        let values: Vec<_> = values.collect();
        let keep = keep(&pruner.predicate, &FileFacts { partition: &values, stats: None });
        Judged { keep, values }
    }
}

/// What is known of one file.
struct FileFacts<'a> {
    partition: &'a [(ColumnPath, Option<Scalar>)],
    stats: Option<&'a FileStats>,
}

impl Facts for FileFacts<'_> {
    fn rows(&self) -> Option<u64> {
        self.stats?.rows
    }

    fn column(&self, column: &ColumnPath) -> Option<ColumnStats> {
        self.stats?.columns.iter().find(|(it, _)| it == column).map(|(_, stats)| stats.clone())
    }

    fn constant(&self, column: &ColumnPath) -> Option<Option<Scalar>> {
        self.partition.iter().find(|(it, _)| it == column).map(|(_, value)| value.clone())
    }
}
