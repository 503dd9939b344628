use std::collections::{BTreeMap, BTreeSet};

use arrow_schema::{DataType, Field};
use lakebed_core::ErrorKind;
use sqlparser::ast::ObjectName;

use super::{
    MAX_CHAIN, MAX_STATEMENT_BYTES,
    check::check,
    names::{self, Known},
    parse::{self, parse},
    scope::{Column, same},
    statement::{Ask, Kind, Rows},
    wanted::Wanted,
};
use crate::stack::with_room;

mod writes;

/// What becomes of a statement before anything is loaded.
fn outcome(sql: &str) -> String {
    let parsed = match parse(sql) {
        Ok(parsed) => parsed,
        Err(err) => return format!("{:?}: {err}", err.kind()),
    };
    parsed.iter().map(|it| shown(&it.kind)).collect::<Vec<_>>().join("; ")
}

fn shown(kind: &Kind) -> String {
    match kind {
        Kind::Rows(rows) => rows_shown(rows),
        Kind::Explain { analyze, verbose, rows } => {
            format!("explain(analyze {analyze}, verbose {verbose}) {}", rows_shown(rows))
        }
        Kind::Write(write) => writes::shown(write),
        Kind::Use(name) => format!("use {name}"),
        Kind::CreateView { name, replace, query } => format!("view {name}, replace {replace}, of {query}"),
        Kind::DropView { name, if_exists } => format!("drop view {name}, if exists {if_exists}"),
        Kind::Set { .. } | Kind::Reset(_) => format!("{kind:?}"),
    }
}

fn rows_shown(rows: &Rows) -> String {
    let checked = match &rows.ask {
        Ask::Query(query) | Ask::ColumnsOf(query) => check(query.as_ref()),
        Ask::Columns(target) | Ask::System { table: target, .. } => check(target.as_ref()),
        Ask::ShowTables { .. }
        | Ask::ShowSchemas { .. }
        | Ask::ShowCatalogs
        | Ask::ShowFunctions { .. }
        | Ask::ShowVariable(_) => Ok(()),
    };
    if let Err(err) = checked {
        return format!("{:?}: {err}", err.kind());
    }
    let ask = match &rows.ask {
        Ask::Query(query) => format!("rows of {query}"),
        Ask::Columns(target) => format!("columns of {target}"),
        Ask::ColumnsOf(query) => format!("columns of {query}"),
        Ask::System { table, name } => format!("{name} of {table}"),
        Ask::ShowTables { within, like } => format!("tables in {} like {like:?}", within_shown(within)),
        Ask::ShowSchemas { within, like } => format!("schemas in {} like {like:?}", within_shown(within)),
        other => format!("{other:?}"),
    };
    match &rows.format {
        Some(format) => format!("{ask}, as {format}"),
        None => ask,
    }
}

fn within_shown(within: &Option<ObjectName>) -> String {
    within.as_ref().map_or("the current place".to_owned(), ToString::to_string)
}

/// Every way to write a statement that lake tables' dialects have: what it is here, or which error it is.
#[test]
fn statements_are_read_or_refused_by_name() {
    let statements = include_str!("tests/statements.txt").lines();
    let outcomes = statements.map(|sql| format!("{sql}\n    {}", outcome(sql)));
    insta::assert_snapshot!(outcomes.collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_script_is_cut_at_semicolons_outside_of_strings() {
    let parsed = parse("SELECT ';' ; ; -- a ; comment\nSELECT \"a;b\" /* ; */ FROM t;").expect("both parse");
    let texts: Vec<_> = parsed.iter().map(|it| it.text()).collect();
    assert_eq!(texts, ["SELECT ';'", "SELECT \"a;b\" FROM t"]);
    assert_eq!(parse("  -- nothing\n ;; ").expect("nothing is no mistake"), []);
}

#[test]
fn bounds_are_errors_not_hangs() {
    let nested = format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    let queries = format!("{}SELECT 1{}", "SELECT * FROM (".repeat(500), ")".repeat(500));
    let chain = format!("SELECT 1{}", " + 1".repeat(MAX_CHAIN + 1));
    let unions = format!("SELECT 1{}", " UNION SELECT 1".repeat(MAX_CHAIN + 1));
    let wide_unions = format!("SELECT 1, 2{}", " UNION SELECT 1, 2".repeat(MAX_CHAIN + 1));
    let nots = format!("SELECT {}true", "NOT ".repeat(MAX_CHAIN + 1));
    let long = format!("SELECT '{}'", "x".repeat(MAX_STATEMENT_BYTES));
    let huge = " ".repeat(100 << 20);
    for (what, sql) in [
        ("nested", nested),
        ("queries", queries),
        ("chain", chain),
        ("unions", unions),
        ("wide unions", wide_unions),
        ("nots", nots),
        ("long", long),
        ("huge", huge),
    ] {
        let kind = parse(&sql).map(|_| ()).map_err(|it| it.kind());
        assert_eq!(kind, Err(ErrorKind::Limit), "{what}");
    }
    let nul = parse("SELECT 'a\0b'").expect_err("a NUL is refused");
    assert_eq!(
        (nul.kind(), nul.to_string().as_str()),
        (ErrorKind::Invalid, "the SQL text has a NUL character at byte 9")
    );
}

#[test]
fn long_lists_are_no_chains() {
    let list = (0..50_000).map(|it| it.to_string()).collect::<Vec<_>>().join(", ");
    assert!(parse(&format!("SELECT a IN ({list})")).is_ok());
    let rows = vec!["(1, 'a')"; 50_000].join(", ");
    assert!(parse(&format!("VALUES {rows}")).is_ok());
}

/// A query with its names bound to `orders(Id, name, day, addr{City})`, `people(id, Name)` and `twins(id, ID)`, all
/// with the virtual column `_path`; then what each slot exposes.
fn bound(sql: &str) -> String {
    let column = |name: &str| Column::named(name);
    let addr = DataType::Struct([Field::new("City", DataType::Utf8, true)].into_iter().collect());
    let tables = [
        ("orders", vec![column("Id"), column("name"), column("day"), Column { kind: Some(addr), ..column("addr") }]),
        ("people", vec![column("id"), column("Name")]),
        ("twins", vec![column("id"), column("ID")]),
    ];
    let known = |wanted: &Wanted| {
        let (name, columns) = tables.iter().find(|it| wanted.name.last().is_some_and(|name| same(name, it.0)))?;
        let hidden = Column { hidden: true, ..column("_path") };
        let columns = columns.iter().cloned().chain([hidden]).collect();
        Some(Known { qualifier: vec![(*name).to_owned()], columns })
    };
    let foreign = BTreeSet::from(["generate_series".to_owned()]);
    let walk = || {
        let mut query = parse::own_query(sql)?;
        check(query.as_ref())?;
        let wanted = names::collect(&mut query, &BTreeMap::new(), &foreign)?;
        let known = wanted.iter().map(|it| known(it).unwrap_or_else(|| panic!("no table {it:?}"))).collect();
        let exposed = names::bind(&mut query, &foreign, known)?;
        let exposed: Vec<String> = exposed.iter().map(|it| it.iter().cloned().collect::<Vec<_>>().join("+")).collect();
        Ok::<_, lakebed_core::Error>(format!("{query} [{}]", exposed.join(", ")))
    };
    match walk() {
        // The slots' marks are no part of what is tested.
        Ok(text) => (0..9).fold(text, |text, slot| text.replace(&format!(" WITH ({slot})"), "")),
        Err(err) => err.to_string(),
    }
}

#[test]
fn names_are_spelled_like_what_they_stand_for() {
    for (sql, expected) in [
        ("SELECT ID FROM orders", r#"SELECT "Id" FROM orders []"#),
        ("SELECT Id FROM orders", "SELECT Id FROM orders []"),
        ("SELECT O.ID FROM ORDERS o", r#"SELECT "o"."Id" FROM ORDERS o []"#),
        ("SELECT Orders.id FROM orders", r#"SELECT "orders"."Id" FROM orders []"#),
        ("SELECT addr.city, ADDR.CITY FROM orders", r#"SELECT addr."City", "addr"."City" FROM orders []"#),
        ("SELECT o.addr.city FROM orders o", r#"SELECT o.addr."City" FROM orders o []"#),
        ("SELECT id FROM twins", "SELECT id FROM twins []"),
        ("SELECT Id FROM twins", "column `Id` is ambiguous: `twins.id` and `twins.ID` differ by case only"),
        (
            "SELECT ID FROM orders o JOIN people p ON o.id = p.ID",
            "column `ID` is ambiguous: `o.Id` and `p.id` differ by case only",
        ),
        (
            "SELECT 1 FROM orders o WHERE EXISTS (SELECT 1 FROM people WHERE ID = O.id)",
            r#"SELECT 1 FROM orders o WHERE EXISTS (SELECT 1 FROM people WHERE "id" = "o"."Id") []"#,
        ),
        (
            "WITH C AS (SELECT ID FROM orders) SELECT c.ID FROM c",
            r#"WITH C AS (SELECT "Id" FROM orders) SELECT "C"."Id" FROM "C" []"#,
        ),
        (
            "WITH orders AS (SELECT id FROM orders) SELECT ID FROM orders",
            r#"WITH orders AS (SELECT "Id" FROM orders) SELECT "Id" FROM "orders" []"#,
        ),
        ("SELECT id AS Nr FROM orders ORDER BY NR", r#"SELECT "Id" AS Nr FROM orders ORDER BY "Nr" []"#),
        (
            "SELECT day, max(id) AS Id FROM orders GROUP BY DAY ORDER BY ID",
            r#"SELECT day, max("Id") AS Id FROM orders GROUP BY "day" ORDER BY "Id" []"#,
        ),
        ("SELECT NAME FROM (SELECT * FROM people) q", r#"SELECT "Name" FROM (SELECT * FROM people) q []"#),
        ("SELECT ID FROM (VALUES (1)) v(Id)", r#"SELECT "Id" FROM (VALUES (1)) v (Id) []"#),
        ("SELECT VALUE FROM generate_series(1, 2)", r#"SELECT "value" FROM generate_series(1, 2) []"#),
        ("SELECT unknown FROM orders", "SELECT unknown FROM orders []"),
        ("SELECT f(id = 1) FROM people", "SELECT f(id = 1) FROM people []"),
        ("SELECT 1 FROM orders, orders", "two relations of one FROM are called `orders`"),
    ] {
        assert_eq!(bound(sql), expected.replace(" []", &empty(expected, &bound(sql))), "{sql}");
    }
}

/// The slots of `found`, none of which exposes anything.
fn empty(expected: &str, found: &str) -> String {
    let slots = found.rsplit_once(" [").map_or("", |it| it.1).trim_end_matches(']');
    assert!(slots.chars().all(|it| ", ".contains(it)), "{expected}: nothing is exposed");
    format!(" [{slots}]")
}

#[test]
fn virtual_columns_are_exposed_by_name_and_hidden_from_wildcards() {
    for (sql, expected) in [
        ("SELECT *, _PATH FROM orders", r#"SELECT * EXCLUDE ("_path"), "_path" FROM orders [_path]"#),
        ("SELECT * FROM orders ORDER BY _path", r#"SELECT * EXCLUDE ("_path") FROM orders ORDER BY _path [_path]"#),
        (
            "FROM orders SELECT * WHERE _path = 'x'",
            r#"FROM orders SELECT * EXCLUDE ("_path") WHERE _path = 'x' [_path]"#,
        ),
        ("FROM orders", "FROM orders SELECT * []"),
        (
            "SELECT o.* FROM orders o WHERE _path = 'x'",
            r#"SELECT "o".* EXCLUDE ("_path") FROM orders o WHERE _path = 'x' [_path]"#,
        ),
        (
            "SELECT * FROM orders a JOIN people b ON a._path = b.name",
            r#"SELECT * EXCLUDE ("_path") FROM orders a JOIN people b ON a._path = b."Name" [_path, ]"#,
        ),
        (
            "SELECT * FROM orders a JOIN people b ON a._path = b._path",
            r#"SELECT "a".* EXCLUDE ("_path"), "b".* EXCLUDE ("_path") FROM orders a JOIN people b ON a._path = b._path [_path, _path]"#,
        ),
        ("SELECT _path FROM orders, people", "SELECT _path FROM orders, people [_path, _path]"),
        (
            "SELECT * FROM people a NATURAL JOIN people b WHERE a._path = ''",
            r#"SELECT * EXCLUDE ("_path") FROM people a JOIN people b USING("id", "Name") WHERE a._path = '' [_path, ]"#,
        ),
        (
            "SELECT * FROM orders a NATURAL JOIN people b",
            "USING and NATURAL cannot join `Id` with `id`: it is spelled in two ways",
        ),
        (
            "SELECT * FROM orders a JOIN people b USING (_path)",
            "USING and NATURAL cannot join `_path` with `_path`: it is a virtual column",
        ),
        ("SELECT * EXCLUDE (_path) FROM orders", "`_path` is a virtual column: * does not have it"),
        (
            "SELECT * FROM (SELECT *, _path FROM orders) q WHERE Q._PATH = ''",
            r#"SELECT * FROM (SELECT * EXCLUDE ("_path"), _path FROM orders) q WHERE "q"."_path" = '' [_path]"#,
        ),
    ] {
        assert_eq!(bound(sql), expected, "{sql}");
    }
}

/// Trees as deep as they may be are walked, copied and dropped.
#[test]
fn the_longest_chain_fits_the_stack() {
    let sql =
        format!("SELECT 1{} FROM people WHERE ID = 1{}", " + 1".repeat(MAX_CHAIN - 4), " OR ID = 1".repeat(MAX_CHAIN));
    with_room(|| {
        assert!(bound(&sql).contains(r#""id" = 1 OR "id" = 1"#));
        assert_eq!(parse(&sql).expect("it is long, not deep").clone().len(), 1);
    });
}
