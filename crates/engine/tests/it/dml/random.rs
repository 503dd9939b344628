//! Random statements over small random tables, compared with the model.
use std::collections::BTreeMap;

use arrow_schema::DataType;
use lakebed_core::{Error, ErrorKind, Result, version::AsOf};
use lakebed_testkit::{
    env::env,
    pond::{Played, PondSpec},
    rows::Rows,
    seed::{Dice, Seed},
    value::Value as Cell,
};

use super::model::{COLUMNS, Clause, Cond, Effect, Row, Statement, Then, Value, When};
use crate::world::World;

/// How the table is laid out and how rows leave it.
#[derive(Debug, Clone, Copy)]
struct Setting {
    vectors: bool,
    partitioned: bool,
    changes: bool,
}

/// More with `LAKEBED_DML_SEEDS`.
const SEEDS: u64 = 12;
const STATEMENTS: usize = 5;

#[tokio::test]
async fn random_statements_do_what_they_mean_by_rewriting() {
    every_seed(false).await;
}

#[tokio::test]
async fn random_statements_do_what_they_mean_by_vectors() {
    every_seed(true).await;
}

async fn every_seed(vectors: bool) {
    let seeds = std::env::var("LAKEBED_DML_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(SEEDS);
    for seed in 0..seeds {
        let setting = Setting { vectors, partitioned: seed % 2 == 1, changes: seed % 4 > 1 };
        if let Err(err) = play(Seed(seed), setting).await {
            panic!("{} {setting:?}: {err}", Seed(seed));
        }
    }
}

async fn play(seed: Seed, setting: Setting) -> std::result::Result<(), String> {
    let dice = Dice::new(seed);
    let world = World::new().await;
    let (source, others) = (rows(&dice, 5), rows(&dice, 4));
    let mut target = rows(&dice, 14);
    let table = make(&world, "t", &target, setting, &dice).await.map_err(shown)?;
    make(&world, "s", &source, Setting { partitioned: false, ..setting }, &dice).await.map_err(shown)?;
    make(&world, "other", &others, Setting { partitioned: false, ..setting }, &dice).await.map_err(shown)?;
    let others: Vec<Option<i64>> = others.iter().map(|it| it[0]).collect();
    for _ in 0..STATEMENTS {
        let statement = statement(&dice);
        let expected = statement.apply(&target, &source, &others);
        let before = version(&table).await.map_err(shown)?;
        let answer = world.run(&statement.to_string()).await;
        let after = version(&table).await.map_err(shown)?;
        let context = |what: String| format!("{statement}\nover {target:?}\nand {source:?}\nothers {others:?}\n{what}");
        match (expected, answer) {
            (Err(_), Err(err)) if err.kind() == ErrorKind::Invalid && err.to_string().contains("several rows") => {
                assert_eq!(before, after, "{statement}");
            }
            (Ok(expected), Ok(answer)) => {
                if answer != format!("count\n{}", expected.count()) {
                    return Err(context(format!("count {}: {answer}", expected.count())));
                }
                if (expected.count() == 0) != (before == after) {
                    return Err(context(format!("version {before} became {after}")));
                }
                let now = read(&world, "SELECT id, v, p FROM '/lake/t'").await.map_err(shown)?;
                if bag(now.iter().map(|it| it.0)) != bag(expected.rows.iter().copied()) {
                    return Err(context(format!("expected {:?}\nfound {now:?}", expected.rows)));
                }
                if setting.changes && before != after {
                    changes(&world, &expected, after).await.map_err(context)?;
                }
                target = expected.rows;
            }
            (expected, answer) => return Err(context(format!("expected {expected:?}\nfound {answer:?}"))),
        }
    }
    let read = table.rows(&AsOf::Latest).await.map_err(shown)?;
    assert_eq!(read.len(), target.len(), "the reference reader reads the same");
    Ok(())
}

/// What a version's change feed says, against what the statement did.
async fn changes(world: &World, expected: &Effect, version: u64) -> std::result::Result<(), String> {
    let sql = format!("SELECT id, v, p, _change_type FROM table_changes('/lake/t', {version}, {version})");
    let found = read(world, &sql).await.map_err(shown)?;
    let of = |kind: &str| bag(found.iter().filter(|it| it.1 == kind).map(|it| it.0));
    let wanted = [
        ("insert", bag(expected.inserted.iter().copied())),
        ("delete", bag(expected.deleted.iter().copied())),
        ("update_preimage", bag(expected.updated.iter().map(|it| it.0))),
        ("update_postimage", bag(expected.updated.iter().map(|it| it.1))),
    ];
    for (kind, wanted) in wanted {
        if of(kind) != wanted {
            return Err(format!("{kind}: expected {wanted:?}, found {:?} in {found:?}", of(kind)));
        }
    }
    Ok(())
}

fn shown(err: Error) -> String {
    format!("{:?}: {err}", err.kind())
}

fn bag(rows: impl Iterator<Item = Row>) -> BTreeMap<Row, usize> {
    let mut bag = BTreeMap::new();
    rows.for_each(|it| *bag.entry(it).or_default() += 1);
    bag
}

/// Rows of three numbers, and what stands behind them.
async fn read(world: &World, sql: &str) -> Result<Vec<(Row, String)>> {
    let text = world.run(sql).await?;
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').collect();
        let number = |at: usize| cells[at].parse::<i64>().ok();
        ([number(0), number(1), number(2)], cells.get(3).map_or_else(String::new, |it| (*it).to_owned()))
    };
    Ok(text.lines().skip(1).map(row).collect())
}

async fn version(table: &Played) -> Result<u64> {
    let version = table.table.resolve(&AsOf::Latest).await?.version;
    Ok(version.id.as_str().parse().expect("pond numbers its versions"))
}

/// A table of these rows, in files of up to four.
async fn make(world: &World, name: &str, rows: &[Row], setting: Setting, dice: &Dice) -> Result<Played> {
    let mut spec = PondSpec::with_columns(&COLUMNS.map(|it| (it, DataType::Int64)));
    if setting.partitioned {
        spec = spec.partitioned_by(&["p"]);
    }
    let property = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    spec.properties.extend([
        property("pond.deletes", if setting.vectors { "vectors" } else { "rewrite" }),
        property("pond.changes", if setting.changes { "true" } else { "false" }),
    ]);
    let table = Played::create(world.store.storage(name), env(Seed(dice.next())), &spec).await?;
    let mut files: BTreeMap<Option<i64>, Vec<Row>> = BTreeMap::new();
    for row in rows {
        files.entry(if setting.partitioned { row[2] } else { None }).or_default().push(*row);
    }
    for rows in files.values().flat_map(|it| it.chunks(4)) {
        let cell = |it: &Option<i64>| it.map_or(Cell::Null, |it| Cell::Int(it.into()));
        let rows = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
        table.append(&Rows { columns: COLUMNS.map(str::to_owned).to_vec(), rows }).await?;
    }
    Ok(table)
}

fn rows(dice: &Dice, most: u64) -> Vec<Row> {
    let number = |below| (!dice.chance(15)).then(|| i64::try_from(dice.below(below)).expect("it is small"));
    (0..dice.below(most + 1)).map(|_| [number(8), number(5), number(3)]).collect()
}

fn statement(dice: &Dice) -> Statement {
    let sides = Sides { t: true, s: false, subqueries: true };
    let filter = || (!dice.chance(10)).then(|| cond(dice, sides, 3));
    match dice.below(5) {
        0 => Statement::Delete(filter()),
        1 => Statement::Update(assignments(dice, sides), filter()),
        _ => merge(dice),
    }
}

/// What an expression may name.
#[derive(Clone, Copy)]
struct Sides {
    t: bool,
    s: bool,
    subqueries: bool,
}

fn merge(dice: &Dice) -> Statement {
    let id = || Box::new(Cond::Equal(Value::T(0), Value::S(0)));
    let both = Sides { t: true, s: true, subqueries: false };
    let on = match dice.below(6) {
        0 => Cond::And(id(), Box::new(cond(dice, both, 1))),
        1 => Cond::And(id(), Box::new(Cond::Equal(Value::T(2), Value::S(2)))),
        2 => Cond::Or(id(), Box::new(Cond::Equal(Value::T(1), Value::S(1)))),
        3 => Cond::And(id(), Box::new(cond(dice, Sides { s: false, ..both }, 1))),
        _ => *id(),
    };
    let mut clauses = Vec::new();
    for (when, sides) in [
        (When::Matched, both),
        (When::NotMatched, Sides { t: false, ..both }),
        (When::NotMatchedBySource, Sides { s: false, ..both }),
    ] {
        let count = dice.below(3);
        for left in (0..count).rev() {
            let condition = (left > 0 || dice.chance(60)).then(|| cond(dice, sides, 2));
            clauses.push(Clause { when, condition, then: then(dice, when, sides) });
        }
    }
    if clauses.is_empty() {
        clauses.push(Clause { when: When::Matched, condition: None, then: Then::UpdateAll });
    }
    Statement::Merge(on, clauses)
}

fn then(dice: &Dice, when: When, sides: Sides) -> Then {
    match (when, dice.below(3)) {
        (When::NotMatched, 0) => Then::InsertAll,
        (When::NotMatched, _) => Then::Insert(assignments(dice, sides)),
        (When::Matched | When::NotMatchedBySource, 0) => Then::Delete,
        (When::Matched, 1) => Then::UpdateAll,
        (When::Matched | When::NotMatchedBySource, _) => Then::Update(assignments(dice, sides)),
    }
}

fn assignments(dice: &Dice, sides: Sides) -> Vec<(usize, Value)> {
    let first = usize::try_from(dice.below(3)).expect("it is small");
    let mut columns = vec![first];
    if dice.chance(50) {
        columns.push((first + 1) % 3);
    }
    columns.into_iter().map(|it| (it, value(dice, sides, true))).collect()
}

fn value(dice: &Dice, sides: Sides, assigned: bool) -> Value {
    let column = usize::try_from(dice.below(3)).expect("it is small");
    let number = i64::try_from(dice.below(8)).expect("it is small");
    match dice.below(10) {
        0..=3 if sides.t => Value::T(column),
        0..=5 if sides.s => Value::S(column),
        6 => Value::Plus(Box::new(if sides.t { Value::T(column) } else { Value::Number(number) }), number),
        7 if assigned => Value::Null,
        8 if sides.subqueries => Value::MaxOfOthers,
        _ => Value::Number(number),
    }
}

fn cond(dice: &Dice, sides: Sides, depth: u64) -> Cond {
    let value = || value(dice, sides, false);
    let inner = || Box::new(cond(dice, sides, depth - 1));
    match dice.below(10) {
        0 | 1 if depth > 0 => Cond::And(inner(), inner()),
        2 if depth > 0 => Cond::Or(inner(), inner()),
        3 if depth > 0 => Cond::Not(inner()),
        4 => Cond::IsNull(value()),
        5 if sides.subqueries && dice.chance(50) => Cond::Not(Box::new(Cond::InOthers(value()))),
        5 if sides.subqueries => Cond::InOthers(value()),
        6 if sides.subqueries => Cond::ExistsOther(value()),
        7 | 8 => Cond::Less(value(), value()),
        _ => Cond::Equal(value(), value()),
    }
}
