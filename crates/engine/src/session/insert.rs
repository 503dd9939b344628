//! `INSERT`: which column of the query goes to which of the table's, and which rows it replaces.
//!
//! 1. Begin a write. The query reads the table, if it does, at the version the write began on; then those rows count as
//!    read.
//! 2. Match columns: by place, by the list of the statement, or by name. A partition column with a value in the statement
//!    takes no column of the query; those without come last, in the statement's order.
//! 3. Plan the query; the rows are written and committed by [`write`](crate::write).
use std::sync::Arc;

use arrow_schema::{Field, FieldRef, Schema};
use datafusion::{
    common::tree_node::TreeNodeRecursion, datasource::source_as_provider, logical_expr::LogicalPlan,
    physical_plan::ExecutionPlan, scalar::ScalarValue,
};
use lakebed_core::{
    Error, Result,
    expr::Predicate,
    table::{Snapshot, Transform},
    timeline::Action,
};
use serde_json::json;

use super::{
    Destination, Output, PartitionOverwrite, Session, WriteSettings, columns, create::stored, run::Planned,
    writes::counted,
};
use crate::{
    error::of_datafusion,
    provider::LakeTable,
    scan::from_arrow,
    sql::{
        pins::Constants,
        scope::same,
        write::{Insert, InsertMode},
    },
    write::{self, Driver, Extent, Source, compile},
};

/// How the query's columns go to the table's.
#[derive(Debug, Default)]
struct Columns {
    sources: Vec<Source>,
    added: Vec<(FieldRef, usize)>,
    /// The partition columns that have one value, by the table's names.
    fixed: Vec<(String, ScalarValue)>,
}

impl Session {
    pub(super) async fn insert(&self, insert: &Insert) -> Result<Output> {
        let (to, context) = self.writing(&insert.target).await?;
        let settings = self.write_settings()?;
        let (action, mode) = match insert.mode {
            InsertMode::Append => (Action::Append, "Append"),
            InsertMode::Overwrite | InsertMode::ReplaceWhere(_) => (Action::Overwrite, "Overwrite"),
        };
        let mut intent = self.intent(action, "WRITE", [("mode", mode.to_owned())])?;
        intent.application = settings.application.clone();
        if let InsertMode::ReplaceWhere(condition) = &insert.mode {
            intent.parameters.insert("predicate".to_owned(), json!([condition.to_string()]).to_string());
        }
        let mut driver = Driver::begin(&context, intent).await?;
        let partition = json!(partition_names(driver.base().as_ref())).to_string();
        driver.intent_mut().parameters.insert("partitionBy".to_owned(), partition);
        match self.job(&to, &driver, insert, &settings).await {
            Ok((job, input)) => counted(write::insert(driver, job, input).await?.count),
            Err(err) => counted(driver.conclude(Err(err)).await?.count),
        }
    }

    async fn job(
        &self,
        to: &Destination,
        driver: &Driver,
        insert: &Insert,
        settings: &WriteSettings,
    ) -> Result<(write::Insert, Arc<dyn ExecutionPlan>)> {
        let base = driver.base();
        let given = to.given(self, Arc::clone(base))?;
        let Planned { state, plan } = self.planned_given(insert.query.as_ref().clone(), &given).await?;
        let fixed = self.fixed(insert, base.as_ref())?;
        let Columns { sources, added, fixed } =
            match_columns(base.schema(), plan.schema().as_arrow(), insert, fixed, settings.merge_schema)?;
        let replaces = match &insert.mode {
            InsertMode::Append => None,
            InsertMode::Overwrite if settings.partition_overwrite == PartitionOverwrite::Dynamic => {
                Some(Extent::Touched)
            }
            InsertMode::Overwrite if fixed.is_empty() => Some(Extent::Table),
            InsertMode::Overwrite => Some(Extent::Partitions(fixed.iter().map(scalar).collect::<Result<_>>()?)),
            InsertMode::ReplaceWhere(condition) => {
                Some(Extent::Where(compile(&state, base.schema(), &condition.to_string())?))
            }
        };
        let read = reads(&plan, to)?.then_some(Predicate::True);
        let input = state.create_physical_plan(&plan).await.map_err(of_datafusion)?;
        Ok((write::Insert { sources, added, replaces, read }, input))
    }

    /// The partition columns that the statement gives a value, in the type of the column.
    fn fixed(&self, insert: &Insert, base: &dyn Snapshot) -> Result<Vec<(String, ScalarValue)>> {
        if insert.partition.is_empty() {
            return Ok(Vec::new());
        }
        let state = self.statement_state();
        let loader = self.loader(&state);
        let names = partition_names(base);
        let mut fixed: Vec<(String, ScalarValue)> = Vec::new();
        for (column, value) in &insert.partition {
            let field = base.schema().field(columns::find(base.schema().fields(), column)?);
            if !names.contains(&field.name().as_str()) {
                return Err(Error::invalid(format!("the table is not partitioned by `{column}`"))
                    .with_hint(format!("its partition columns are {}", names.join(", "))));
            }
            if let Some(value) = value {
                let given = loader.constant(value)?;
                let cast = given.cast_to(field.data_type()).map_err(of_datafusion)?;
                if cast.is_null() && !given.is_null() {
                    let message = format!("PARTITION ({column} = {given}): not a value of the column's type");
                    return Err(Error::invalid(message));
                }
                fixed.push((field.name().clone(), cast));
            }
        }
        Ok(fixed)
    }
}

fn scalar((name, value): &(String, ScalarValue)) -> Result<(String, Option<lakebed_core::expr::Scalar>)> {
    if value.is_null() {
        return Ok((name.clone(), None));
    }
    let scalar = from_arrow(value);
    scalar.map(|it| (name.clone(), Some(it))).ok_or_else(|| {
        Error::unsupported(format!("PARTITION ({name} = {value}): values of this type name no partition"))
    })
}

fn partition_names(base: &dyn Snapshot) -> Vec<&str> {
    let own = |it: &&lakebed_core::table::PartitionField| it.transform == Transform::Identity && it.source.0.len() == 1;
    base.layout().partition.iter().filter(own).map(|it| it.source.0[0].as_str()).collect()
}

fn match_columns(
    table: &Schema,
    input: &Schema,
    insert: &Insert,
    fixed: Vec<(String, ScalarValue)>,
    merge_schema: bool,
) -> Result<Columns> {
    let mut columns = Columns { sources: vec![Source::Missing; table.fields().len()], added: Vec::new(), fixed };
    for (name, value) in &columns.fixed {
        let at = columns::find(table.fields(), name)?;
        columns.sources[at] = Source::Constant(value.clone());
    }
    if insert.by_name {
        by_name(table, input, merge_schema, &mut columns)?;
        return Ok(columns);
    }
    let wanted = wanted(table, insert, &columns)?;
    if wanted.len() != input.fields().len() {
        return Err(another_number(wanted.len(), input.fields().len(), insert.columns.is_empty()));
    }
    for (at, column) in wanted.into_iter().enumerate() {
        take(&mut columns.sources, table, column, at)?;
    }
    Ok(columns)
}

/// The table's columns that the query's go to, in the query's order.
fn wanted(table: &Schema, insert: &Insert, columns: &Columns) -> Result<Vec<usize>> {
    let open = insert.partition.iter().filter(|it| it.1.is_none());
    let open: Vec<usize> = open.map(|it| columns::find(table.fields(), &it.0)).collect::<Result<_>>()?;
    let mut wanted: Vec<usize> = match insert.columns.is_empty() {
        false => insert.columns.iter().map(|it| columns::find(table.fields(), it)).collect::<Result<_>>()?,
        true => {
            let free = |at: &usize| columns.sources[*at] == Source::Missing && !open.contains(at);
            (0..table.fields().len()).filter(free).collect()
        }
    };
    wanted.extend(open.into_iter().filter(|it| !insert.columns.iter().any(|name| same(name, table.field(*it).name()))));
    Ok(wanted)
}

fn by_name(table: &Schema, input: &Schema, merge_schema: bool, columns: &mut Columns) -> Result<()> {
    for (at, field) in input.fields().iter().enumerate() {
        match columns::find(table.fields(), field.name()) {
            Ok(column) => take(&mut columns.sources, table, column, at)?,
            Err(err) if !merge_schema || table.fields().iter().any(|it| same(it.name(), field.name())) => {
                return Err(err);
            }
            Err(_) => {
                if columns.added.iter().any(|it| same(it.0.name(), field.name())) {
                    return Err(twice(field.name()));
                }
                columns.added.push((new_column(field)?, at));
            }
        }
    }
    Ok(())
}

fn new_column(field: &Field) -> Result<FieldRef> {
    Ok(Arc::new(Field::new(field.name(), stored(field.data_type(), field.name())?, true)))
}

fn take(sources: &mut [Source], table: &Schema, column: usize, input: usize) -> Result<()> {
    match &sources[column] {
        Source::Missing => {
            sources[column] = Source::Input(input);
            Ok(())
        }
        Source::Constant(_) | Source::Input(_) => Err(twice(table.field(column).name())),
    }
}

fn twice(column: &str) -> Error {
    Error::invalid(format!("column `{column}` gets two values"))
}

fn another_number(table: usize, input: usize, whole: bool) -> Error {
    let what = if whole { "the table has" } else { "the statement names" };
    Error::invalid(format!("{what} {table} columns to fill, and the query has {input}"))
        .with_hint("INSERT INTO t (a, b) … names some of them, INSERT INTO t BY NAME … goes by the query's names")
}

/// Whether the query reads the table that is written to.
fn reads(plan: &LogicalPlan, to: &Destination) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Ok(provider) = source_as_provider(&scan.source)
            && let Some(table) = provider.downcast_ref::<LakeTable>()
        {
            found |= table.table().storage().location() == to.table.storage().location();
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(of_datafusion)?;
    Ok(found)
}
