//! New rows: `INSERT`, `INSERT OVERWRITE`, `CREATE TABLE AS`, and `TRUNCATE`, which is an overwrite without rows.
//!
//! What goes is decided by files where it can be: the whole table, the files of partitions. Rows that a condition picks
//! out of a file go with it, and the file's other rows are written anew.
use std::{collections::BTreeSet, sync::Arc};

use arrow_array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{FieldRef, Schema, SchemaRef};
use datafusion::{physical_plan::ExecutionPlan, scalar::ScalarValue};
use lakebed_core::{
    Error, Result,
    change::{Change, RowDelta},
    expr::{Cmp, ColumnPath, Predicate, Scalar},
    scan::ScanTask,
};

use super::{
    Compiled, Done, Driver, Kind, Prepared, Shaping, Source, Written,
    compact::scan_tasks,
    live::{live_files, tasks_of},
    metrics_of, rows_of,
    streams::Test,
};
use crate::{error::of_datafusion, lower::lower, scan::to_arrow};

/// Which rows an overwrite replaces.
#[derive(Debug, Clone)]
pub(crate) enum Extent {
    Table,
    /// Those of the partitions with these values: some of the partition columns, by the table's name. The new rows have
    /// them as [`Source::Constant`].
    Partitions(Vec<(String, Option<Scalar>)>),
    /// Those of the partitions that get new rows; without partitions, all.
    Touched,
    /// Those that meet a condition over the table's columns; every new row must meet it.
    Where(Compiled),
}

/// What an `INSERT` does.
#[derive(Debug, Clone)]
pub(crate) struct Insert {
    /// One a column of [`Driver::base`]'s schema.
    pub(crate) sources: Vec<Source>,
    /// Columns the table lacks and gets, in types of tables, and the input column of each.
    pub(crate) added: Vec<(FieldRef, usize)>,
    /// `None` appends.
    pub(crate) replaces: Option<Extent>,
    /// The rows of the table that the statement's query reads, at the driver's base; `None`: it reads none.
    pub(crate) read: Option<Predicate>,
}

/// Writes the rows of `input` and commits them.
pub(crate) async fn insert(mut driver: Driver, job: Insert, input: Arc<dyn ExecutionPlan>) -> Result<Done> {
    match driver.applied().await {
        Ok(false) => (),
        Ok(true) => return driver.drop_it().await,
        Err(err) => return driver.conclude(Err(err)).await,
    }
    let prepared = prepare(&mut driver, job, input).await;
    driver.conclude(prepared).await
}

/// Makes a table with the rows of `input`, whose columns go to the table's by position. Rows of a table that it replaces
/// go. `driver` is of [`Driver::create`].
pub(crate) async fn create_as(driver: Driver, input: Arc<dyn ExecutionPlan>) -> Result<Done> {
    let prepared = async {
        let old = tasks_of(driver.base().as_ref(), Predicate::True).await?;
        let written = driver.write(input, Kind::Data).await?;
        let removed = live_files(&old)?;
        let read = (!removed.is_empty()).then_some(Predicate::True);
        let (metrics, count) = (metrics_of(&written), rows_of(&written));
        let rows = RowDelta { added: files(written), removed, ..RowDelta::default() };
        Ok(Prepared { changes: vec![Change::Rows(rows)], read, metrics, count })
    };
    let prepared = prepared.await;
    driver.conclude(prepared).await
}

/// Takes all rows away. Its count is that of the rows that are known to go.
pub(crate) async fn truncate(driver: Driver) -> Result<Done> {
    let prepared = async {
        driver.may_remove()?;
        let totals = driver.base().totals().await?;
        let removed = live_files(&tasks_of(driver.base().as_ref(), Predicate::True).await?)?;
        let mut metrics = std::collections::BTreeMap::from([("numRemovedFiles".to_owned(), removed.len().to_string())]);
        metrics.extend(totals.rows.map(|it| ("numDeletedRows".to_owned(), it.to_string())));
        let changes = match removed.is_empty() {
            true => Vec::new(),
            false => vec![Change::Rows(RowDelta { removed, ..RowDelta::default() })],
        };
        Ok(Prepared { changes, read: Some(Predicate::True), metrics, count: totals.rows.unwrap_or(0) })
    };
    let prepared = prepared.await;
    driver.conclude(prepared).await
}

async fn prepare(driver: &mut Driver, job: Insert, input: Arc<dyn ExecutionPlan>) -> Result<Prepared> {
    let Insert { mut sources, added, replaces, read } = job;
    if replaces.is_some() {
        driver.may_remove()?;
    }
    let mut changes = Vec::new();
    if !added.is_empty() {
        let (fields, inputs): (Vec<FieldRef>, Vec<usize>) = added.into_iter().unzip();
        changes.push(driver.evolve(&with_columns(driver.base().schema(), fields)?).await?);
        sources.extend(inputs.into_iter().map(Source::Input));
    }
    let shaping = Shaping::new(driver.target().schema(), &sources, &input.schema())?;
    let test = match &replaces {
        Some(Extent::Where(condition)) => Some(Test::Must(condition.clone())),
        _ => None,
    };
    let written = driver.write_shaped(input, shaping, Kind::Data, test).await?;
    let (mut metrics, count) = (metrics_of(&written), rows_of(&written));
    let Some(extent) = replaces else {
        if !written.is_empty() {
            changes.push(Change::Rows(RowDelta { added: files(written), ..RowDelta::default() }));
        }
        return Ok(Prepared { changes, read, metrics, count });
    };
    let gone = Gone::of(driver, &extent, &written).await?;
    metrics.insert("numRemovedFiles".to_owned(), gone.tasks.iter().map(|it| it.files.len()).sum::<usize>().to_string());
    let bytes: u64 = gone.tasks.iter().flat_map(|it| &it.files).map(|it| it.bytes).sum();
    metrics.insert("numRemovedBytes".to_owned(), bytes.to_string());
    let removed = live_files(&gone.tasks)?;
    let mut added = files(written);
    added.extend(files(gone.kept));
    if !added.is_empty() || !removed.is_empty() {
        changes.push(Change::Rows(RowDelta { added, removed, ..RowDelta::default() }));
    }
    let read = match read {
        Some(read) => Predicate::Or(vec![read, gone.read]),
        None => gone.read,
    };
    Ok(Prepared { changes, read: Some(read), metrics, count })
}

/// The table's columns and, behind them, `added`, which older rows have as nulls.
fn with_columns(table: &SchemaRef, added: Vec<FieldRef>) -> Result<SchemaRef> {
    let mut fields: Vec<FieldRef> = table.fields().to_vec();
    for field in added {
        if fields.iter().any(|it| it.name().to_lowercase() == field.name().to_lowercase()) {
            return Err(Error::invalid(format!("the table has a column `{}` already", field.name())));
        }
        fields.push(Arc::new(field.as_ref().clone().with_nullable(true)));
    }
    Ok(Arc::new(Schema::new_with_metadata(fields, table.metadata().clone())))
}

fn files(written: Vec<Written>) -> Vec<lakebed_core::file::DataFile> {
    written.into_iter().map(|it| it.file).collect()
}

/// What an overwrite takes away.
struct Gone {
    /// Files that go.
    tasks: Vec<ScanTask>,
    /// Their rows that stay, in new files.
    kept: Vec<Written>,
    /// What was looked at to decide.
    read: Predicate,
}

impl Gone {
    async fn of(driver: &Driver, extent: &Extent, written: &[Written]) -> Result<Self> {
        match extent {
            Extent::Table => Self::whole(driver, Predicate::True).await,
            Extent::Touched if driver.target().partition_names().next().is_none() => {
                Self::whole(driver, Predicate::True).await
            }
            Extent::Touched => {
                let touched = written.iter().map(|it| it.file.partition.as_slice());
                Self::partitions(driver, touched.collect()).await
            }
            Extent::Partitions(values) => {
                let values: Vec<_> = values.iter().map(|it| driver.target().recorded(it)).collect();
                Self::partitions(driver, vec![&values]).await
            }
            Extent::Where(condition) => Self::matching(driver, condition).await,
        }
    }

    /// Every file that may hold rows of `read`, which decides for whole files.
    async fn whole(driver: &Driver, read: Predicate) -> Result<Self> {
        let tasks = tasks_of(driver.base().as_ref(), read.clone()).await?;
        Ok(Self { tasks, kept: Vec::new(), read })
    }

    async fn partitions(driver: &Driver, wanted: Vec<&[(String, Option<Scalar>)]>) -> Result<Self> {
        let names: BTreeSet<&str> = driver.target().partition_names().collect();
        if let Some((name, _)) = wanted.iter().copied().flatten().find(|(name, _)| !names.contains(name.as_str())) {
            return Err(Error::invalid(format!("the table is not partitioned by `{name}`")));
        }
        let read = Predicate::Or(wanted.iter().map(|it| equal_to(it)).collect());
        let mut gone = Self::whole(driver, read).await?;
        let matches = |task: &ScanTask| {
            let stated = |(name, value): &(String, Option<Scalar>)| {
                task.files.iter().all(|it| it.partition.iter().any(|own| own.0 == *name && own.1 == *value))
            };
            wanted.iter().any(|it| it.iter().all(stated))
        };
        gone.tasks.retain(matches);
        Ok(gone)
    }

    async fn matching(driver: &Driver, condition: &Compiled) -> Result<Self> {
        let lowered = lower(&condition.logical, driver.base().schema());
        let mut gone = Self::whole(driver, lowered.predicate).await?;
        let schema = driver.target().schema();
        let partition: BTreeSet<&str> = driver.target().partition_names().collect();
        if condition.columns().iter().all(|it| partition.contains(schema.field(*it).name().as_str())) {
            gone.tasks = by_file(driver, condition, gone.tasks)?;
            return Ok(gone);
        }
        if gone.tasks.is_empty() {
            return Ok(gone);
        }
        if driver.rules().change_folder.is_some() {
            return Err(Error::unsupported(
                "this build does not replace some rows of a file where changes are recorded",
            )
            .with_hint("DELETE the rows, then INSERT the new ones"));
        }
        let scan = scan_tasks(driver.context(), driver.base().as_ref(), gone.tasks.clone())?;
        let shaping = Shaping::by_position(schema, &scan.schema())?;
        let test = Some(Test::Unless(condition.clone()));
        gone.kept = driver.write_shaped(scan, shaping, Kind::Moved, test).await?;
        Ok(gone)
    }
}

/// The tasks whose files' partition values meet `condition`, which names nothing else.
fn by_file(driver: &Driver, condition: &Compiled, tasks: Vec<ScanTask>) -> Result<Vec<ScanTask>> {
    let shown = crate::scan::Shown::new(driver.target().schema(), Vec::new()).schema;
    let mut kept = Vec::new();
    for task in tasks {
        let column = |(at, field): (usize, &FieldRef)| -> Result<ArrayRef> {
            if !condition.columns().contains(&at) {
                return Ok(new_null_array(field.data_type(), 1));
            }
            let of = |file: &lakebed_core::file::DataFile| {
                file.partition.iter().find(|it| it.0 == *field.name()).map(|it| it.1.clone())
            };
            let stated = task.files.first().and_then(of);
            let stated = stated.ok_or_else(|| Error::corrupt("a file does not say which partition it is of"))?;
            let value = match stated {
                Some(value) => to_arrow(&value, field.data_type()),
                None => ScalarValue::try_new_null(field.data_type()),
            };
            value.and_then(|it| it.to_array()).map_err(of_datafusion)
        };
        let columns = shown.fields().iter().enumerate().map(column).collect::<Result<Vec<_>>>()?;
        let row = RecordBatch::try_new(Arc::clone(&shown), columns).map_err(|it| Error::internal(it.to_string()))?;
        let holds = condition.evaluate(&row)?;
        if holds.is_valid(0) && holds.value(0) {
            kept.push(task);
        }
    }
    Ok(kept)
}

fn equal_to(values: &[(String, Option<Scalar>)]) -> Predicate {
    let equal = |(name, value): &(String, Option<Scalar>)| match value {
        Some(value) => Predicate::Compare(ColumnPath::top(name), Cmp::Eq, value.clone()),
        None => Predicate::IsNull(ColumnPath::top(name)),
    };
    Predicate::And(values.iter().map(equal).collect())
}
