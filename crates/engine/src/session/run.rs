//! Runs one statement.
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::{
    execution::{SendableRecordBatchStream, SessionState, TaskContext},
    logical_expr::LogicalPlan,
    physical_plan::{execute_stream, memory::MemoryStream, stream::RecordBatchStreamAdapter},
};
use futures::StreamExt;
use lakebed_core::{Error, Result};
use sqlparser::ast::{self, Query, TableFactor};

use super::{Given, Output, OutputKind, Place, Session, SessionOptions, variables};
use crate::{
    error::of_datafusion,
    provider::LakeTable,
    scan::VIRTUAL,
    sql::{
        Statement,
        check::check,
        names::{self, Known},
        parse::{own_query, plain},
        plan::{Loaded, Planner},
        resolve::Loader,
        scope::{Column, same},
        statement::{Ask, Kind, Rows},
        wanted::Wanted,
    },
    system,
    variant::{holds_variant, json_field, variants_as_json},
};

/// What statements of a session change.
#[derive(Debug)]
pub(super) struct Mutable {
    pub(super) place: Place,
    /// By name in lower case.
    pub(super) views: BTreeMap<String, Query>,
    pub(super) variables: BTreeMap<String, String>,
}

impl Mutable {
    pub(super) fn new(options: &SessionOptions) -> Self {
        Self {
            place: Place { catalog: options.default_catalog.clone(), schema: options.default_schema.clone() },
            views: BTreeMap::new(),
            variables: variables::defaults(&options.formats, &options.time_zone),
        }
    }
}

impl Session {
    pub(super) async fn start(&self, statement: &Statement) -> Result<Output> {
        match &statement.kind {
            Kind::Rows(rows) => self.rows(rows).await,
            Kind::Explain { analyze, verbose, rows } => self.explain(rows, *analyze, *verbose).await,
            Kind::Set { name, value } => self.set(name, value).map(|()| done()),
            Kind::Reset(name) => self.reset(name.as_deref()).map(|()| done()),
            Kind::Use(name) => self.use_place(&plain(name)).await.map(|()| done()),
            Kind::CreateView { name, replace, query } => {
                self.create_view(&plain(name), *replace, query).await.map(|()| done())
            }
            Kind::DropView { name, if_exists } => self.drop_view(&plain(name), *if_exists).map(|()| done()),
            Kind::Write(write) => self.write(write).await,
        }
    }

    async fn rows(&self, rows: &Rows) -> Result<Output> {
        let format = rows.format.clone();
        let batch = match &rows.ask {
            Ask::Columns(target) => self.describe(target).await?,
            Ask::ColumnsOf(query) => {
                let plan = self.planned(query.as_ref().clone()).await?.plan;
                columns_batch(plan.schema().inner())?
            }
            Ask::ShowVariable(name) => self.show(name.as_deref())?,
            ask => {
                let query = self.query_of(ask)?;
                let Planned { state, plan } = self.planned(query).await?;
                return self.execute(&state, &plan, OutputKind::Rows, format).await;
            }
        };
        Ok(Output { format, ..of_batches(batch.schema(), vec![batch], OutputKind::Rows)? })
    }

    /// The query that a statement with rows stands for.
    pub(super) fn query_of(&self, ask: &Ask) -> Result<Query> {
        let place = self.place();
        match ask {
            Ask::Query(query) => Ok(query.as_ref().clone()),
            Ask::System { table, name } => system_query(table, name),
            Ask::ShowTables { within, like } => {
                let parts = within.as_ref().map(plain).unwrap_or_default();
                let (catalog, schema) = match parts.as_slice() {
                    [] => (place.catalog, place.schema),
                    [schema] => (place.catalog, schema.clone()),
                    [catalog, schema @ ..] => (catalog.clone(), schema.join(".")),
                };
                system::information::show_tables(&catalog, &schema, like.as_deref())
            }
            Ask::ShowSchemas { within, like } => {
                let parts = within.as_ref().map(plain).unwrap_or_default();
                let catalog = parts.first().cloned().unwrap_or(place.catalog);
                system::information::show_schemas(&catalog, like.as_deref())
            }
            Ask::ShowCatalogs => system::information::show_catalogs(),
            Ask::ShowFunctions { like } => system::information::show_functions(like.as_deref()),
            Ask::Columns(_) | Ask::ColumnsOf(_) | Ask::ShowVariable(_) => {
                Err(Error::invalid("EXPLAIN takes a query; this statement reads no table"))
            }
        }
    }

    /// Plans a query, its tables loaded at their versions.
    pub(crate) async fn planned(&self, query: Query) -> Result<Planned> {
        let views = self.mutable_read().views.clone();
        self.planned_with(query, &views, None).await
    }

    /// As [`Self::planned`], with the table of a statement that writes in place of its name.
    pub(crate) async fn planned_given(&self, query: Query, given: &Given) -> Result<Planned> {
        let views = self.mutable_read().views.clone();
        self.planned_with(query, &views, Some(given)).await
    }

    async fn planned_with(
        &self,
        mut query: Query,
        views: &BTreeMap<String, Query>,
        given: Option<&Given>,
    ) -> Result<Planned> {
        let state = self.statement_state();
        check(&query)?;
        let foreign: BTreeSet<String> = state.table_functions().keys().cloned().collect();
        let wanted = names::collect(&mut query, views, &foreign)?;
        let loaded = self.load(&state, &wanted, given).await?;
        let exposed = names::bind(&mut query, &foreign, loaded.iter().map(known).collect())?;
        let plan = Planner::new(&state, loaded, exposed)
            .plan(ast::Statement::Query(Box::new(query)))
            .map_err(of_datafusion)?;
        Ok(Planned { state, plan })
    }

    async fn load(&self, state: &SessionState, wanted: &[Wanted], given: Option<&Given>) -> Result<Vec<Loaded>> {
        let mut loader = self.loader(state);
        if let Some(given) = given {
            loader.fix(&given.table, &given.snapshot);
        }
        let mut loaded = Vec::with_capacity(wanted.len());
        for wanted in wanted {
            match given.filter(|it| wanted.name == [it.name]) {
                Some(given) => loaded.push(given.loaded.clone()),
                None => loaded.push(loader.load(wanted).await?),
            }
        }
        Ok(loaded)
    }

    pub(crate) fn loader<'a>(&'a self, state: &'a SessionState) -> Loader<'a> {
        Loader::new(&self.shared, self.place(), self.time_zone(), state)
    }

    pub(super) async fn execute(
        &self,
        state: &SessionState,
        plan: &LogicalPlan,
        kind: OutputKind,
        format: Option<String>,
    ) -> Result<Output> {
        let plan = state.create_physical_plan(plan).await.map_err(of_datafusion)?;
        let rows = execute_stream(plan, Arc::new(TaskContext::from(state))).map_err(of_datafusion)?;
        let rows = show_variants(rows);
        Ok(Output { schema: rows.schema(), rows, kind, format })
    }

    async fn describe(&self, target: &TableFactor) -> Result<RecordBatch> {
        let mut query = *own_query("SELECT * FROM target")?;
        put_target(&mut query, target.clone())?;
        let whole = query.clone();
        check(&query)?;
        let state = self.statement_state();
        let views = self.mutable_read().views.clone();
        let wanted = names::collect(&mut query, &views, &BTreeSet::new())?;
        match self.load(&state, &wanted, None).await?.as_slice() {
            [table] if wanted.len() == 1 && !is_view(&query) => {
                // A scan promises nothing about nulls; the table does.
                match table.provider.downcast_ref::<LakeTable>() {
                    Some(table) => columns_batch(table.snapshot().schema()),
                    None => columns_batch(&table.provider.schema()),
                }
            }
            _ => columns_batch(self.planned(whole).await?.plan.schema().inner()),
        }
    }

    async fn use_place(&self, parts: &[String]) -> Result<()> {
        let place = self.place();
        let (catalog, schema) = match parts {
            [name]
                if self.shared.catalogs.iter().any(|it| same(&it.0, name))
                    && !self.has_schema(&place.catalog, name).await? =>
            {
                (name.clone(), place.schema)
            }
            [schema] => (place.catalog, schema.clone()),
            [catalog, schema] => (catalog.clone(), schema.clone()),
            _ => return Err(Error::invalid("USE takes a schema or catalog.schema")),
        };
        let catalog = self.shared.catalog(&catalog)?.0.to_owned();
        let schema = self.schema_named(&catalog, &schema).await?;
        self.mutable_write().place = Place { catalog, schema };
        Ok(())
    }

    async fn has_schema(&self, catalog: &str, schema: &str) -> Result<bool> {
        let namespaces = self.shared.catalog(catalog)?.1.namespaces(&[]).await?;
        Ok(namespaces.iter().any(|it| same(&it.join("."), schema)))
    }

    /// A schema in its own spelling.
    async fn schema_named(&self, catalog: &str, schema: &str) -> Result<String> {
        let namespaces = self.shared.catalog(catalog)?.1.namespaces(&[]).await?;
        let names: Vec<String> = namespaces.iter().map(|it| it.join(".")).collect();
        let exact = names.iter().find(|it| *it == schema);
        if let Some(found) = exact.or_else(|| names.iter().find(|it| same(it, schema))) {
            return Ok(found.clone());
        }
        let error = Error::not_found(format!("catalog `{catalog}` has no schema `{schema}`"));
        match crate::text::did_you_mean(schema, names.iter().map(String::as_str)) {
            Some(near) => Err(error.with_hint(format!("did you mean `{near}`?"))),
            None => Err(error.with_hint("SHOW SCHEMAS lists those that are there")),
        }
    }

    /// A view is its query: planned now to see that it works, and again, at the versions of then, where it is used.
    async fn create_view(&self, parts: &[String], replace: bool, query: &Query) -> Result<()> {
        let [name] = parts else { return Err(Error::invalid("a temporary view has a name without a schema")) };
        // Its own name means something else inside of it: a view that names itself would never end.
        let mut others = self.mutable_read().views.clone();
        others.remove(&name.to_lowercase());
        self.planned_with(query.clone(), &others, None).await?;
        let mut mutable = self.mutable_write();
        if !replace && mutable.views.contains_key(&name.to_lowercase()) {
            let message = format!("a view `{name}` is there");
            return Err(Error::new(lakebed_core::ErrorKind::AlreadyExists, message)
                .with_hint("CREATE OR REPLACE TEMPORARY VIEW replaces it"));
        }
        mutable.views.insert(name.to_lowercase(), query.clone());
        Ok(())
    }

    fn drop_view(&self, parts: &[String], if_exists: bool) -> Result<()> {
        let name = parts.join(".");
        match self.mutable_write().views.remove(&name.to_lowercase()) {
            None if !if_exists => Err(Error::not_found(format!("no temporary view is called `{name}`"))),
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn place(&self) -> Place {
        self.mutable_read().place.clone()
    }

    pub(super) fn time_zone(&self) -> String {
        self.mutable_read().variables.get(variables::TIME_ZONE).cloned().unwrap_or_default()
    }
}

/// Variants leave a session as JSON text.
fn show_variants(rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let from = rows.schema();
    if !from.fields().iter().any(|it| holds_variant(it)) {
        return rows;
    }
    let fields: Vec<Field> = from.fields().iter().map(|it| json_field(it)).collect();
    let to = Arc::new(Schema::new_with_metadata(fields, from.metadata().clone()));
    let schema = Arc::clone(&to);
    let shown = rows.map(move |batch| {
        let batch = batch?;
        let columns = from.fields().iter().zip(batch.columns()).map(|(field, column)| variants_as_json(field, column));
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(RecordBatch::try_new(Arc::clone(&to), columns)?)
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, shown))
}

/// A plan, and the state it runs in.
pub(crate) struct Planned {
    pub(crate) state: SessionState,
    pub(crate) plan: LogicalPlan,
}

pub(crate) fn known(loaded: &Loaded) -> Known {
    let qualifier = loaded.reference.to_vec();
    let schema = loaded.provider.schema();
    let columns = schema.fields().iter().map(|it| Column {
        name: it.name().clone(),
        kind: Some(it.data_type().clone()),
        hidden: it.metadata().contains_key(VIRTUAL),
    });
    Known { qualifier, columns: columns.collect() }
}

/// `SELECT * FROM t$name`.
fn system_query(table: &TableFactor, name: &str) -> Result<Query> {
    let mut factor = table.clone();
    let TableFactor::Table { name: object, args: None, .. } = &mut factor else {
        return Err(Error::invalid(format!("`{table}`: expected a table's name, not a function")));
    };
    match object.0.last_mut() {
        Some(ast::ObjectNamePart::Identifier(last)) => {
            let quote = last.quote_style.filter(|it| *it == '\'').unwrap_or('"');
            *last = ast::Ident::with_quote(quote, format!("{}${name}", last.value));
        }
        _ => return Err(Error::invalid(format!("`{table}`: expected a table's name"))),
    }
    let mut query = *own_query("SELECT * FROM target")?;
    put_target(&mut query, factor)?;
    Ok(query)
}

fn put_target(query: &mut Query, factor: TableFactor) -> Result<()> {
    match query.body.as_mut() {
        ast::SetExpr::Select(select) => match select.from.first_mut() {
            Some(from) => {
                from.relation = factor;
                Ok(())
            }
            None => Err(Error::internal("a query of ours has no FROM")),
        },
        _ => Err(Error::internal("a query of ours has no SELECT")),
    }
}

fn is_view(query: &Query) -> bool {
    let ast::SetExpr::Select(select) = query.body.as_ref() else { return false };
    select.from.iter().any(|it| matches!(it.relation, TableFactor::Derived { .. }))
}

/// The columns that `*` shows, as rows.
fn columns_batch(schema: &Schema) -> Result<RecordBatch> {
    let shown: Vec<_> = schema.fields().iter().filter(|it| !it.metadata().contains_key(VIRTUAL)).collect();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(shown.iter().map(|it| it.name()))),
        Arc::new(StringArray::from_iter_values(shown.iter().map(|it| system::types::name(it)))),
        Arc::new(BooleanArray::from_iter(shown.iter().map(|it| Some(it.is_nullable())))),
        Arc::new(StringArray::from_iter(shown.iter().map(|it| it.metadata().get("comment").cloned()))),
    ];
    let schema = Schema::new(vec![
        Field::new("column_name", DataType::Utf8, false),
        Field::new("data_type", DataType::Utf8, false),
        Field::new("is_nullable", DataType::Boolean, false),
        Field::new("comment", DataType::Utf8, true),
    ]);
    RecordBatch::try_new(Arc::new(schema), columns).map_err(|it| of_datafusion(it.into()))
}

pub(super) fn of_batches(schema: SchemaRef, batches: Vec<RecordBatch>, kind: OutputKind) -> Result<Output> {
    let rows = MemoryStream::try_new(batches, Arc::clone(&schema), None).map_err(of_datafusion)?;
    Ok(Output { schema, rows: Box::pin(rows), kind, format: None })
}

pub(super) fn done() -> Output {
    of_batches(Arc::new(Schema::empty()), Vec::new(), OutputKind::Done).expect("no batch has another schema")
}
