//! `CREATE TABLE`, with or without rows.
//!
//! 1. Where: a path, or the place that a catalog has for the name. Whatever table is there already decides what happens:
//!    one that is to be replaced gets the new one as its next version.
//! 2. What: the columns of the statement, or those of its query in types that tables store.
//! 3. The format begins the table; nothing is there before its first commit, which also brings constraints and rows.
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use datafusion::physical_plan::ExecutionPlan;
use lakebed_core::{
    Error, ErrorKind, Result,
    catalog::{Catalog, TableEntry, TableIdent},
    change::Change,
    commit::{Publisher, Write},
    expr::ColumnPath,
    format::{self, Creation, OpenOptions, TableFormat, TableLocation},
    storage::Storage,
    table::{Layout, PartitionField, Transform},
    timeline::Action,
    version::{AsOf, VersionId},
};
use serde_json::json;

use super::{
    Destination, Output, Session, columns,
    run::{Planned, done},
};
use crate::{
    error::of_datafusion,
    sql::{
        parse::types::COMMENT,
        resolve::looks_like_path,
        scope::same,
        write::{CreateTable, PartitionColumn, Target, WhenThere},
    },
    write::{self, Driver, Prepared},
};

/// Where a table is to be.
struct Site {
    format: Arc<dyn TableFormat>,
    storage: Storage,
    publisher: Arc<dyn Publisher>,
    options: OpenOptions,
    entry: Option<(Arc<dyn Catalog>, TableIdent)>,
}

impl Session {
    pub(super) async fn create_table(&self, create: &CreateTable) -> Result<Output> {
        let made = self.try_create(create).await;
        match (made, create.when_there) {
            (Err(err), WhenThere::Leave) if err.kind() == ErrorKind::AlreadyExists => Ok(done()),
            (made, _) => made.map(|()| done()),
        }
    }

    async fn try_create(&self, create: &CreateTable) -> Result<()> {
        if let [name] = create.target.name.as_slice()
            && self.mutable_read().views.contains_key(&name.to_lowercase())
        {
            return Err(Error::invalid(format!("`{name}` is a view")).with_hint("DROP VIEW drops it"));
        }
        let site = self.site(create).await?;
        self.check_free(&site).await?;
        let old = match create.when_there.replaces() {
            true => self.version_there(&site).await?,
            false => None,
        };
        if create.when_there == WhenThere::MustReplace && old.is_none() {
            return Err(Error::not_found(format!("no table `{}` to replace", create.target))
                .with_hint("CREATE OR REPLACE TABLE makes it if it is not there"));
        }
        let query = match &create.query {
            Some(query) => Some(self.planned(query.as_ref().clone()).await?),
            None => None,
        };
        let table = table_of(create, query.as_ref().map(|it| it.plan.schema().as_arrow()))?;
        let rows = match query {
            Some(Planned { state, plan }) => Some(state.create_physical_plan(&plan).await.map_err(of_datafusion)?),
            None => None,
        };
        self.commit_new(create, site, table, rows, old).await
    }

    /// The version of the table that is there, before anything else of the statement looks at it.
    async fn version_there(&self, site: &Site) -> Result<Option<VersionId>> {
        if !site.format.detect(&site.storage).await? {
            return Ok(None);
        }
        let table = site.format.open(self.at(site)).await?;
        Ok(Some(table.snapshot(&AsOf::Latest).await?.version().id.clone()))
    }

    fn at(&self, site: &Site) -> TableLocation {
        let Site { storage, publisher, options, .. } = site;
        let env = self.shared.env.clone();
        TableLocation { storage: storage.clone(), publisher: Arc::clone(publisher), env, options: options.clone() }
    }

    async fn commit_new(
        &self,
        create: &CreateTable,
        site: Site,
        table: format::CreateTable,
        rows: Option<Arc<dyn ExecutionPlan>>,
        old: Option<VersionId>,
    ) -> Result<()> {
        // The statement as history shows it.
        let operation = format!("{}{}", create.when_there.verb(), if rows.is_some() { " AS SELECT" } else { "" });
        let partition: Vec<&str> = table.layout.partition.iter().map(|it| it.name.as_str()).collect();
        let parameters = [
            ("partitionBy", json!(partition).to_string()),
            ("properties", json!(create.properties).to_string()),
            ("description", create.comment.clone().unwrap_or_default()),
            ("isManaged", site.entry.is_some().to_string()),
        ];
        let action = if old.is_some() { Action::Overwrite } else { Action::Create };
        let intent = self.intent(action, &operation, parameters)?;
        let at = self.at(&site);
        let Site { format, publisher, entry, .. } = site;
        let Creation { table, write } = match &old {
            Some(_) => format.begin_replace(at, table, intent).await?,
            None => format.begin_create(at, table, intent).await?,
        };
        if let Some(old) = &old {
            // The query may have read the table: what was committed since is not in its rows.
            check_still(&write, old)?;
        }
        self.shared.kept.forget(table.storage().location());
        let name = create.target.to_string();
        let reference = datafusion::common::TableReference::bare(name.as_str());
        let to = Destination { name, reference, table, publisher, entry };
        let context = self.write_context(&to, Arc::new(self.statement_state()))?;
        let driver = Driver::create(&context, write).await?;
        let checks = create
            .checks
            .iter()
            .map(|(name, expression)| Change::AddConstraint { name: name.clone(), expression: expression.clone() });
        match rows {
            Some(rows) => write::create_as(driver, rows).await,
            None => driver.conclude(Ok(Prepared { changes: checks.collect(), ..Prepared::default() })).await,
        }
        .map(|_| ())
    }

    async fn site(&self, create: &CreateTable) -> Result<Site> {
        let Target { name, literal } = &create.target;
        let (last, folder) = name.split_last().ok_or_else(|| Error::invalid("a table without a name"))?;
        let at_path = looks_like_path(last);
        match folder {
            [] if *literal || at_path => self.path_site(last, None, create).await,
            [format] if at_path && self.shared.formats.by_name(format).is_some() => {
                self.path_site(last, Some(format), create).await
            }
            _ => self.catalog_site(folder, last, create).await,
        }
    }

    async fn path_site(&self, path: &str, named: Option<&str>, create: &CreateTable) -> Result<Site> {
        let segment = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        check_name(self, segment)?;
        if let Some(location) =
            create.location.as_ref().filter(|it| it.trim_end_matches('/') != path.trim_end_matches('/'))
        {
            return Err(Error::invalid(format!("`{path}` is where the table is, not LOCATION '{location}'"))
                .with_hint("leave LOCATION out"));
        }
        let format = self.new_format(named, create.format.as_deref())?;
        let storage = self.shared.locator.locate(path).await?;
        let publisher = Arc::clone(&self.shared.publisher);
        Ok(Site { format, storage, publisher, options: OpenOptions::default(), entry: None })
    }

    async fn catalog_site(&self, folder: &[String], name: &str, create: &CreateTable) -> Result<Site> {
        check_name(self, name)?;
        let format = self.new_format(None, create.format.as_deref())?;
        let ((_, catalog), namespace) = self.shared.catalog_of(&self.place(), folder)?;
        let ident = TableIdent { namespace, name: name.to_owned() };
        let old = match create.when_there.replaces() {
            true => there(catalog.as_ref(), &ident).await?,
            false => None,
        };
        let entry = match old {
            Some(old) => old,
            None => catalog.place(&ident, format.kind()).await?,
        };
        if let Some(location) = &create.location {
            let wanted = self.shared.locator.locate(location).await?;
            if wanted.location() != entry.storage.location() {
                let message =
                    format!("LOCATION '{location}': a table of this catalog is at {}", entry.storage.location());
                return Err(Error::unsupported(message).with_hint(format!(
                    "leave LOCATION out, or name the table by its place: {}.`{location}`",
                    format.kind()
                )));
            }
        }
        let entry_of = Some((Arc::clone(catalog), entry.ident));
        Ok(Site { format, storage: entry.storage, publisher: entry.publisher, options: entry.options, entry: entry_of })
    }

    /// The format of a new table: what the name and `USING` say, which agree, else the first of this build.
    fn new_format(&self, named: Option<&str>, using: Option<&str>) -> Result<Arc<dyn TableFormat>> {
        if let (Some(named), Some(using)) = (named, using)
            && !named.eq_ignore_ascii_case(using)
        {
            return Err(Error::invalid(format!("the table is named as {named} and made USING {using}")));
        }
        let formats = &self.shared.formats;
        match named.or(using) {
            Some(name) => formats.by_name(name).ok_or_else(|| {
                let known: Vec<_> = formats.iter().map(|it| it.kind().name().to_owned()).collect();
                Error::invalid(format!("`{name}` is no table format of this build"))
                    .with_hint(format!("known formats: {}", known.join(", ")))
            }),
            None => formats.iter().next().cloned().ok_or_else(|| Error::unsupported("this build has no table format")),
        }
    }

    /// # Errors
    /// [`ErrorKind::AlreadyExists`] where there is a table of any format. One of the same format is looked for when it
    /// begins.
    async fn check_free(&self, site: &Site) -> Result<()> {
        for format in self.shared.formats.iter().filter(|it| it.kind() != site.format.kind()) {
            if format.detect(&site.storage).await? {
                let message = format!("there is a {} table at {}", format.kind(), site.storage.location());
                return Err(Error::new(ErrorKind::AlreadyExists, message)
                    .with_hint("a table can only be replaced by one of its own format"));
            }
        }
        Ok(())
    }
}

/// What the catalog has by the name.
async fn there(catalog: &dyn Catalog, ident: &TableIdent) -> Result<Option<TableEntry>> {
    match catalog.load(ident).await {
        Ok(entry) => Ok(Some(entry)),
        Err(err) if err.kind() == ErrorKind::NotFound => Ok(None),
        Err(err) => Err(err),
    }
}

fn check_still(write: &Write, old: &VersionId) -> Result<()> {
    let now = &write.base.version().id;
    match now == old {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::Conflict,
            format!("version {now} was committed while the statement read version {old}, which it replaces"),
        )
        .with_hint("run it again")),
    }
}

/// Refuses a name that, once there, would be taken for another thing.
fn check_name(session: &Session, name: &str) -> Result<()> {
    let (_, system, _) = session.shared.split_system(name);
    if name.contains('@') || system.is_some() {
        let error =
            Error::invalid(format!("`{name}` is no name for a table: it would name a version or a system table"));
        return Err(error.with_hint("choose one without `@` and `$`"));
    }
    Ok(())
}

/// The table that a statement asks for.
fn table_of(create: &CreateTable, query: Option<&Schema>) -> Result<format::CreateTable> {
    let mut fields = match (query, &create.columns) {
        (Some(query), _) => query.fields().iter().map(|it| of_query(it)).collect::<Result<_>>()?,
        (None, Some(columns)) => columns.clone(),
        (None, None) => return Err(Error::internal("a table without columns")),
    };
    let typed = create.partition.iter().filter_map(|it| match it {
        PartitionColumn::Typed(field) => Some(Arc::clone(field)),
        PartitionColumn::Named(_) | PartitionColumn::Transformed { .. } => None,
    });
    fields.extend(typed);
    check_fields(&fields.clone().into(), "")?;
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    let partition: Vec<PartitionField> =
        create.partition.iter().map(|it| partition_field(&schema, it)).collect::<Result<_>>()?;
    if partition.iter().filter(|it| it.transform == Transform::Identity).count() == schema.fields().len() {
        return Err(Error::invalid("every column partitions the table: none is left for its files"));
    }
    let key = create.key.iter().map(|it| column(&schema, it).map(ColumnPath::top)).collect::<Result<_>>()?;
    Ok(format::CreateTable {
        layout: Layout { partition, key, ..Layout::default() },
        schema,
        properties: create.properties.clone().into_iter().collect(),
        comment: create.comment.clone(),
    })
}

fn column(schema: &Schema, name: &str) -> Result<String> {
    Ok(schema.field(columns::find(schema.fields(), name)?).name().clone())
}

/// Refuses names that differ in nothing but case, on every level.
fn check_fields(fields: &Fields, within: &str) -> Result<()> {
    for (at, field) in fields.iter().enumerate() {
        let path = format!("{within}{}", field.name());
        if field.name().is_empty() {
            return Err(Error::invalid(format!("column {} has no name", at + 1)).with_hint("give it one with AS"));
        }
        if fields.iter().take(at).any(|it| same(it.name(), field.name())) {
            return Err(Error::invalid(format!("two columns are called `{path}`")).with_hint("rename one with AS"));
        }
        if let DataType::Struct(inside) = field.data_type() {
            check_fields(inside, &format!("{path}."))?;
        }
    }
    Ok(())
}

fn partition_field(schema: &Schema, of: &PartitionColumn) -> Result<PartitionField> {
    let identity =
        |name: String| PartitionField { source: ColumnPath::top(name.clone()), name, transform: Transform::Identity };
    match of {
        PartitionColumn::Named(name) => Ok(identity(column(schema, name)?)),
        PartitionColumn::Typed(field) => Ok(identity(field.name().clone())),
        PartitionColumn::Transformed { function, column: source, number } => {
            let source = column(schema, source)?;
            let (transform, suffix) = match (function.to_lowercase().as_str(), number) {
                ("bucket", Some(count)) => (Transform::Bucket(*count), "bucket"),
                ("truncate", Some(width)) => (Transform::Truncate(*width), "trunc"),
                ("years" | "year", None) => (Transform::Year, "year"),
                ("months" | "month", None) => (Transform::Month, "month"),
                ("days" | "day" | "date", None) => (Transform::Day, "day"),
                ("hours" | "hour", None) => (Transform::Hour, "hour"),
                ("identity", None) => return Ok(identity(source)),
                _ => {
                    return Err(Error::invalid(format!("`{function}` partitions by nothing this build knows"))
                        .with_hint("bucket(n, c), truncate(n, c), years(c), months(c), days(c) or hours(c)"));
                }
            };
            Ok(PartitionField { name: format!("{source}_{suffix}"), source: ColumnPath::top(source), transform })
        }
    }
}

/// A column of a query as a column of a table: it may be null, and keeps its comment.
fn of_query(field: &Field) -> Result<FieldRef> {
    let kind = stored(field.data_type(), field.name())?;
    let comment = field.metadata().get(COMMENT).map(|it| (COMMENT.to_owned(), it.clone()));
    Ok(Arc::new(Field::new(field.name(), kind, true).with_metadata(comment.into_iter().collect())))
}

/// The type that tables store values of `kind` in, without loss.
pub(super) fn stored(kind: &DataType, column: &str) -> Result<DataType> {
    let refused = |what: &str, hint: &str| {
        Err(Error::unsupported(format!("column `{column}` is {what}, which no table stores")).with_hint(hint))
    };
    let inside = |it: &FieldRef, name: &str| -> Result<Field> {
        Ok(Field::new(name, stored(it.data_type(), &format!("{column}.{name}"))?, it.is_nullable()))
    };
    Ok(match kind {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Float16 => DataType::Float32,
        DataType::Date64 => DataType::Date32,
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.as_ref().map(|_| "UTC".into())),
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) => DataType::Decimal128(*p, *s),
        DataType::Decimal256(p, s) if *p <= 38 => DataType::Decimal128(*p, *s),
        DataType::Dictionary(_, value) => stored(value, column)?,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            DataType::List(Arc::new(inside(item, "element")?))
        }
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|it| inside(it, it.name()).map(Arc::new));
            DataType::Struct(fields.collect::<Result<Vec<_>>>()?.into())
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                let pair = vec![inside(&pair[0], "key")?.with_nullable(false), inside(&pair[1], "value")?];
                DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(pair.into()), false)), false)
            }
            other => return refused(&other.to_string(), "CAST it"),
        },
        DataType::Null => return refused("null in every row", "CAST it to the type it shall have"),
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Utf8
        | DataType::Binary
        | DataType::Date32
        | DataType::Decimal128(..) => kind.clone(),
        other => return refused(&other.to_string(), "CAST it to a type that tables have"),
    })
}
