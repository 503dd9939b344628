//! Runs `tests/slt/<feature>/*.slt`: SQL with its answers, which is the specification of what SQL does here.
//!
//! A file is blocks separated by blank lines. `#` starts a comment. Before its SQL, a block says what it is:
//!
//! - `statement ok`, or `statement error <text>`: the error's message or hint has the text, without case;
//! - `query`, or `query rowsort`: SQL, a line `----`, then one line a row, cells separated by two spaces, NULL as
//!   `NULL` and an empty text as `(empty)`;
//! - `corpus <format>/<case>`: `${path}` is that table of the conformance corpus; without a corpus the file ends here.
//!
//! Each file has a session of its own over a warehouse with two small tables, `orders` and `People`, of the toy format:
//! `orders` has the versions `${v1}` (tagged `release`) and `${v2}`. `${dir}` is an empty folder.
use std::{
    fs,
    path::{Path, PathBuf},
};

use arrow_array::{
    RecordBatch,
    types::{ArrowPrimitiveType, ByteArrayType, Int64Type, Utf8Type},
};
use futures::TryStreamExt;
use lakebed::Lakebed;
use lakebed_core::{Error, Result};
use lakebed_engine::{Locator, Session, error::of_datafusion};
use lakebed_testkit::{
    corpus,
    env::env,
    pond::{Played, Pond, PondSpec},
    rows::Rows,
    seed::Seed,
    value::Value,
};

#[tokio::test]
async fn every_file_holds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/slt");
    let mut files = Vec::new();
    find(&root, &mut files);
    files.sort();
    assert!(!files.is_empty(), "no .slt file below {}", root.display());
    let mut failures = Vec::new();
    for file in &files {
        let name = file.strip_prefix(&root).expect("found below").display().to_string();
        failures.extend(run(file).await.into_iter().map(|it| format!("{name}:{it}")));
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(folder).expect("the folder is there").map(|it| it.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|it| it == "slt") {
            files.push(path);
        }
    }
}

/// What fails in a file, each with its line.
async fn run(file: &Path) -> Vec<String> {
    let world = World::new().await.expect("the tables are made");
    let text = fs::read_to_string(file).expect("the file can be read");
    let dir = world.folder.path().join("empty").display().to_string();
    let mut variables =
        vec![("${v1}", world.versions[0].clone()), ("${v2}", world.versions[1].clone()), ("${dir}", dir)];
    let mut failures = Vec::new();
    for block in blocks(&text) {
        let (command, rest) = block.lines.split_first().expect("no block is empty");
        if let Some(case) = command.strip_prefix("corpus ") {
            let (format, name) = case.split_once('/').expect("corpus <format>/<case>");
            match corpus::case(format, name) {
                Some(case) => {
                    variables.retain(|it| it.0 != "${path}");
                    variables.push(("${path}", case.table().display().to_string()));
                }
                None => return failures,
            }
            continue;
        }
        let text = variables.iter().fold(rest.join("\n"), |text, (name, value)| text.replace(name, value));
        if let Err(failure) = check(&world.session, command, &text).await {
            failures.push(format!("{}: {command}\n{text}\n{failure}", block.line));
        }
    }
    failures
}

struct Block {
    line: usize,
    lines: Vec<String>,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') {
            continue;
        }
        match (line.trim_end().is_empty(), open) {
            (true, _) => open = false,
            (false, true) => blocks.last_mut().expect("one is open").lines.push(line.trim_end().to_owned()),
            (false, false) => {
                blocks.push(Block { line: index + 1, lines: vec![line.trim_end().to_owned()] });
                open = true;
            }
        }
    }
    blocks
}

async fn check(session: &Session, command: &str, text: &str) -> std::result::Result<(), String> {
    if let Some(expected) = command.strip_prefix("statement error ") {
        return match answer(session, text).await {
            Ok(_) => Err("it worked".to_owned()),
            Err(err) => {
                let found = format!("{err} {}", err.hint().unwrap_or_default());
                let holds = found.to_lowercase().contains(&expected.to_lowercase());
                if holds { Ok(()) } else { Err(format!("found: {found}")) }
            }
        };
    }
    let (sql, expected) = match command {
        "statement ok" => (text, None),
        "query" | "query rowsort" => {
            let (sql, rows) = text.split_once("\n----").ok_or("a query needs a line ----")?;
            (sql, Some(rows.trim_start_matches('\n')))
        }
        other => return Err(format!("`{other}` is no command")),
    };
    let mut rows = answer(session, sql).await.map_err(|err| format!("{:?}: {err}", err.kind()))?;
    let Some(expected) = expected else { return Ok(()) };
    let mut expected: Vec<String> = expected.lines().map(str::to_owned).collect();
    if command == "query rowsort" {
        rows.sort();
        expected.sort();
    }
    if rows == expected { Ok(()) } else { Err(format!("found:\n{}", rows.join("\n"))) }
}

pub(crate) async fn answer(session: &Session, sql: &str) -> Result<Vec<String>> {
    let mut rows = Rows::new(Vec::<String>::new());
    for statement in session.parse(sql)? {
        let output = session.run(&statement).await?;
        let batches: Vec<RecordBatch> = output.rows.try_collect().await.map_err(of_datafusion)?;
        rows = match batches.is_empty() {
            true => Rows::new(Vec::<String>::new()),
            false => Rows::from_batches(&batches)?,
        };
    }
    Ok(rows.rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>().join("  ")).collect())
}

fn cell(value: &Value) -> String {
    let text = if value.is_null() { "NULL".to_owned() } else { value.text() };
    if text.is_empty() { "(empty)".to_owned() } else { text }
}

struct World {
    session: Session,
    versions: [String; 2],
    folder: tempfile::TempDir,
}

impl World {
    async fn new() -> Result<Self> {
        let folder = tempfile::tempdir().map_err(|it| Error::internal(it.to_string()))?;
        let lake =
            Lakebed::builder().base(folder.path()).format(std::sync::Arc::new(Pond)).env(env(Seed(1))).build()?;
        let versions = fill(&lake).await?;
        Ok(Self { session: lake.session()?, versions, folder })
    }
}

async fn fill(lake: &Lakebed) -> Result<[String; 2]> {
    let (int, utf8) = (|| Int64Type::DATA_TYPE, || Utf8Type::DATA_TYPE);
    let place = async |name: &str| lake.stores().locate(&format!("lakehouse/default/{name}")).await;
    let text = |it: &str| Value::from(Some(it));
    let row = |id: i64, name: &str, day: &str| vec![Value::Int(id.into()), text(name), text(day)];
    let rows = |rows| Rows { columns: ["Id", "name", "day"].map(str::to_owned).to_vec(), rows };
    let orders = PondSpec::with_columns(&[("Id", int()), ("name", utf8()), ("day", utf8())]);
    let orders = Played::create(place("orders").await?, env(Seed(2)), &orders.partitioned_by(&["day"])).await?;
    let first = orders.append(&rows(vec![row(1, "ann", "d1"), row(2, "bob", "d1")])).await?;
    let second = orders.append(&rows(vec![row(3, "cid", "d2")])).await?;
    orders.tag("release", &first.version.id).await?;
    let people = PondSpec::with_columns(&[("id", int()), ("Name", utf8())]);
    let people = Played::create(place("People").await?, env(Seed(3)), &people).await?;
    let rows = vec![vec![Value::Int(1), text("Ann A")], vec![Value::Int(3), text("Cid C")]];
    people.append(&Rows { columns: ["id", "Name"].map(str::to_owned).to_vec(), rows }).await?;
    Ok([first.version.id.to_string(), second.version.id.to_string()])
}
