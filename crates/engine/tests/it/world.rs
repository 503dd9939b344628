//! A catalog of small Pond tables in memory, and a session over it.
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use async_trait::async_trait;
use futures::TryStreamExt;
use lakebed_core::{
    Error, Result,
    catalog::{Catalog, TableEntry, TableIdent},
    commit::StoragePublisher,
    format::{CreateTable, FormatKind, OpenOptions},
    storage::{IoStats, Storage},
};
use lakebed_engine::{Access, Formats, Locator, Output, Session, SessionOptions, error::of_datafusion};
use lakebed_testkit::{
    env::env,
    pond::{Played, Pond, PondSpec},
    rows::Rows,
    seed::Seed,
    store::FaultyStore,
    value::Value,
};

pub(crate) struct World {
    pub(crate) store: FaultyStore,
    pub(crate) session: Session,
}

/// Tables by name, as schema `main` of catalog `lake`; by path, as `/lake/<name>`.
#[derive(Debug)]
struct Shelf {
    store: FaultyStore,
}

const TABLES: [&str; 5] = ["orders", "People", "twins", "Twins", "odd@name"];

impl World {
    pub(crate) async fn new() -> Self {
        let store = FaultyStore::new(Seed(1));
        fill(&store).await.expect("tables are made");
        let shelf = Arc::new(Shelf { store: store.clone() });
        let options = SessionOptions {
            formats: Formats::new(vec![Arc::new(Pond)]),
            locator: Arc::clone(&shelf) as Arc<dyn Locator>,
            catalogs: vec![("lake".to_owned(), shelf as Arc<dyn Catalog>)],
            default_catalog: "lake".to_owned(),
            default_schema: "main".to_owned(),
            publisher: Arc::new(StoragePublisher),
            env: env(Seed(2)),
            time_zone: "UTC".to_owned(),
            memory_limit: Some(16 << 20),
            target_partitions: Some(2),
            access: Access::ReadWrite,
        };
        Self { store, session: Session::new(options).expect("the options are valid") }
    }

    /// Runs a script; the last statement's rows as text, or its error.
    pub(crate) async fn run(&self, sql: &str) -> Result<String> {
        let mut shown = String::new();
        for statement in self.session.parse(sql)? {
            let output = self.session.run(&statement).await?;
            shown = show(output).await?;
        }
        Ok(shown)
    }
}

async fn show(output: Output) -> Result<String> {
    let names: Vec<String> = output.schema.fields().iter().map(|it| it.name().clone()).collect();
    let mut lines = vec![names.join("|")];
    let batches: Vec<RecordBatch> = output.rows.try_collect().await.map_err(of_datafusion)?;
    let options = FormatOptions::default().with_null("NULL");
    for batch in &batches {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|it| ArrayFormatter::try_new(it, &options).expect("every type can be shown"))
            .collect();
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = columns.iter().map(|it| it.value(row).to_string()).collect();
            lines.push(cells.join("|"));
        }
    }
    Ok(lines.join("\n"))
}

async fn fill(store: &FaultyStore) -> Result<()> {
    let world = env(Seed(3));
    let orders = PondSpec::with_columns(&[("Id", DataType::Int64), ("name", DataType::Utf8), ("day", DataType::Utf8)]);
    let orders = Played::create(store.storage("orders"), world.clone(), &orders.partitioned_by(&["day"])).await?;
    let row =
        |id: i64, name: &str, day: &str| vec![Value::Int(id.into()), Value::from(Some(name)), Value::from(Some(day))];
    let rows = |rows: Vec<Vec<Value>>| Rows { columns: ["Id", "name", "day"].map(str::to_owned).to_vec(), rows };
    let first = orders.append(&rows(vec![row(1, "ann", "d1"), row(2, "bob", "d1")])).await?;
    orders.append(&rows(vec![row(3, "cid", "d2")])).await?;
    orders.tag("release", &first.version.id).await?;

    let people = PondSpec::with_columns(&[("id", DataType::Int64), ("Name", DataType::Utf8)]);
    let people = Played::create(store.storage("People"), world.clone(), &people).await?;
    let rows = vec![vec![Value::Int(1), Value::from(Some("Ann A"))], vec![Value::Int(3), Value::from(Some("Cid C"))]];
    people.append(&Rows { columns: ["id", "Name"].map(str::to_owned).to_vec(), rows }).await?;

    for name in ["twins", "Twins", "odd@name"] {
        let twins = PondSpec::with_columns(&[("id", DataType::Int64), ("ID", DataType::Int64)]);
        let twins = Played::create(store.storage(name), world.clone(), &twins).await?;
        let rows = vec![vec![Value::Int(1), Value::Int(2)]];
        twins.append(&Rows { columns: ["id", "ID"].map(str::to_owned).to_vec(), rows }).await?;
    }
    Ok(())
}

#[async_trait]
impl Locator for Shelf {
    async fn locate(&self, location: &str) -> Result<Storage> {
        Ok(self.store.storage(location.trim_start_matches("/lake/")))
    }

    fn io(&self) -> Arc<IoStats> {
        Arc::new(IoStats::default())
    }
}

#[async_trait]
impl Catalog for Shelf {
    async fn namespaces(&self, _parent: &[String]) -> Result<Vec<Vec<String>>> {
        Ok(vec![vec!["main".to_owned()], vec!["Attic".to_owned()]])
    }

    async fn tables(&self, namespace: &[String]) -> Result<Vec<TableIdent>> {
        let names = if namespace == ["main"] { TABLES.as_slice() } else { &[] };
        Ok(names.iter().map(|it| TableIdent { namespace: namespace.to_vec(), name: (*it).to_owned() }).collect())
    }

    async fn load(&self, ident: &TableIdent) -> Result<TableEntry> {
        let matches: Vec<_> = TABLES.iter().filter(|it| it.eq_ignore_ascii_case(&ident.name)).collect();
        let name = match matches.as_slice() {
            _ if !ident.namespace.join(".").eq_ignore_ascii_case("main") => None,
            [one] => Some(*one),
            several => several.iter().find(|it| ***it == ident.name).copied(),
        };
        let Some(name) = name else {
            return Err(Error::not_found(format!("no table is called `{}.{}`", ident.namespace.join("."), ident.name)));
        };
        Ok(TableEntry {
            ident: TableIdent { namespace: ident.namespace.clone(), name: (*name).to_owned() },
            format: FormatKind::new("pond"),
            storage: self.store.storage(name),
            pointer: None,
            publisher: Arc::new(StoragePublisher),
            options: OpenOptions::default(),
            properties: Default::default(),
        })
    }

    async fn create(&self, _: &TableIdent, _: FormatKind, _: CreateTable) -> Result<TableEntry> {
        Err(Error::unsupported("create"))
    }

    async fn rename(&self, _: &TableIdent, _: &TableIdent) -> Result<()> {
        Err(Error::unsupported("rename"))
    }

    async fn drop(&self, _: &TableIdent) -> Result<()> {
        Err(Error::unsupported("drop"))
    }
}
