//! What people read, as it is printed.
use insta::assert_snapshot;

use crate::run::World;

#[test]
fn alone_it_says_what_it_is_in_twelve_lines_with_five_examples() {
    let text = World::new().shown(&[]);
    assert_eq!(text.lines().count(), 12, "{text}");
    assert_eq!(text.lines().filter(|it| it.starts_with("  lakebed ")).count(), 5);
    assert!(text.lines().all(|it| it.len() <= 80), "{text}");
}

#[test]
fn help_fits_80_columns() {
    let world = World::new();
    let verbs = [
        "sql",
        "log",
        "show",
        "info",
        "schema",
        "files",
        "timeline",
        "refs",
        "at",
        "head",
        "diff",
        "doctor",
        "tag",
        "restore",
        "vacuum",
        "orphans",
        "expire",
        "compact",
        "checkpoint",
        "demo",
        "config",
        "completions",
        "man",
    ];
    for verb in verbs {
        let text = world.shown(&["help", verb]);
        assert!(text.lines().all(|it| it.chars().count() <= 80), "{verb}: {text}");
    }
    assert!(world.shown(&["--help"]).lines().all(|it| it.chars().count() <= 80));
}

#[test]
fn log_is_a_table_for_people() {
    let world = World::with_orders();
    assert_snapshot!(world.shown(&["log", "orders", "-o", "table"]), @r#"
    delta  orders  head version 7  8 versions  0 tags  0 branches
    ID  TIME (UTC)                OPERATION  +FILES  -FILES  +ROWS  -ROWS  REFS  READABLE
    7   2026-11-09T12:00:00.000Z  WRITE           1       0      1      0  HEAD  yes
    6   2026-11-08T12:00:00.000Z  DELETE          1       3      0      5        yes
    5   2026-11-07T12:00:00.000Z  WRITE           1       0      2      0        yes
    4   2026-11-06T12:00:00.000Z  DELETE          1       1      0      1        yes
    3   2026-11-05T11:00:00.000Z  WRITE           1       0      2      0        yes
    2   2026-11-04T11:00:00.000Z  UPDATE          1       1      1      1        yes
    1   2026-11-03T11:00:00.000Z  WRITE           1       0      2      0        yes
    0   2026-11-02T09:00:00.000Z  WRITE           1       0      3      0        yes
    "#);
    assert_snapshot!(world.shown(&["log", "orders@2..5", "--oneline"]), @r#"
    id	operation	refs	readable
    5	WRITE		yes
    4	DELETE		yes
    3	WRITE		yes
    "#);
}

#[test]
fn a_version_is_shown_with_its_changes() {
    let world = World::with_orders();
    assert_snapshot!(world.shown(&["show", "orders@1", "-o", "table"]), @r#"
    PROPERTY                   VALUE
    id                         1
    committed_at               2026-11-03T11:00:00.000Z
    parent                     0
    operation                  WRITE
    files_added                1
    files_removed              0
    rows_added                 2
    rows_removed               0
    bytes_added                1707
    bytes_removed              0
    engine                     delta-rs:py-1.6.6
    parameters.mode            Append
    metrics.execution_time_ms  1
    metrics.num_added_files    1
    metrics.num_added_rows     2
    metrics.num_partitions     0
    metrics.num_removed_files  0
    metrics.num_retries        0

    CHANGE  BYTES  ROWS  PATH
    add      1707     2  part-00000-bc6a41dd-6d40-48b7-87c5-bce1621035d3-c000.snappy.parquet
    "#);
}

#[test]
fn at_tells_the_version_and_its_rule() {
    let world = World::with_orders();
    assert_snapshot!(world.shown(&["at", "orders", "2026-11-04 00:00", "-q"]), @r#"
    id	committed_at	readable	rule
    1	2026-11-03T11:00:00.000Z	yes	the newest version committed at or before 2026-11-04T00:00:00.000Z, by times of log files; the next is 2 of 2026-11-04T11:00:00.000Z
    "#);
    let ran = world.run(&["at", "orders", "2026-11-04 00:00", "--explain", "-o", "table"]);
    assert_eq!(ran.code, 0);
    assert_snapshot!(ran.stdout, @r#"
    VERSION  COMMITTED                 READABLE
    1        2026-11-03T11:00:00.000Z  yes
    "#);
    let rule: Vec<&str> =
        ran.stderr.lines().filter(|it| it.starts_with("rule: ") || it.starts_with("time: ")).collect();
    assert_snapshot!(rule.join("\n"), @r#"
    time: 2026-11-04T00:00:00.000Z
    rule: the newest version committed at or before 2026-11-04T00:00:00.000Z, by times of log files; the next is 2 of 2026-11-04T11:00:00.000Z
    "#);
    // A zone moves the answer.
    assert_snapshot!(world.shown(&["at", "orders", "2026-11-03 19:30", "--tz", "+09:00", "--columns", "id", "-q"]), @r#"
    id
    0
    "#);
}

#[test]
fn head_and_schema() {
    let world = World::with_orders();
    assert_snapshot!(world.shown(&["head", "orders@0", "-o", "table"]), @r#"
    order_id  customer  status  amount  ordered_on
           1  Ada       paid     40.00  2026-11-02
           2  Grace     paid     12.50  2026-11-02
           3  Edsger    open     99.90  2026-11-02
    "#);
    assert_snapshot!(world.shown(&["schema", "orders", "-o", "table", "--columns", "name,type,nullable"]), @r#"
    NAME        TYPE           NULLABLE
    order_id    bigint         false
    customer    string         true
    status      string         true
    amount      decimal(10,2)  true
    ordered_on  date           true
    "#);
}

#[test]
fn diff_says_columns_and_files() {
    let world = World::with_orders();
    let text = world.shown(&["diff", "orders@0", "@1", "-o", "table", "--columns", "part,change,left,right"]);
    assert_snapshot!(text, @r#"
    orders@0 -> orders@1
    schema  +0 -0 ~0
    files   shared 1, +1 -0 ~0
    PART  CHANGE  LEFT  RIGHT
    file  +             1707 bytes
    "#);
    assert_snapshot!(world.shown(&["diff", "orders@5", "@5", "-o", "table"]), @r#"
    orders@5 -> orders@5
    schema  +0 -0 ~0
    files   shared 4, +0 -0 ~0
    "#);
}

#[test]
fn info_is_one_property_a_line() {
    let world = World::with_orders();
    assert_snapshot!(world.shown(&["info", "orders"]), @r#"
    property	value
    format	delta
    location	file:///orders
    version	7
    committed_at	2026-11-09T12:00:00.000Z
    files	3
    bytes	5119
    rows	4
    deleted_rows	0
    columns.amount	decimal(10,2)
    columns.customer	string
    columns.order_id	bigint
    columns.ordered_on	date
    columns.status	string
    facts.created_at	2026-11-30T20:46:43.385Z
    facts.enabled_features	["invariants"]
    facts.features	["appendOnly","invariants"]
    facts.id	8ab9f0b7-1596-4eee-941c-f9b4b93883ba
    facts.min_reader_version	1
    facts.min_writer_version	2
    facts.partition_columns	[]
    facts.provider	parquet
    "#);
}

#[test]
fn configuration_tells_its_origin() {
    let world = World::new();
    std::fs::write(world.path("lakebed.toml"), "tz = 'Asia/Tokyo'\n").unwrap();
    let text = world.shown(&["config", "list", "--show-origin", "--memory", "1GiB"]);
    let set: Vec<&str> = text.lines().filter(|it| !it.ends_with("default") && !it.ends_with('\t')).collect();
    assert_snapshot!(set.join("\n"), @r#"
    key	value	origin
    memory	1GiB	flag --memory
    tz	Asia/Tokyo	/lakebed.toml:1
    "#);
}

#[test]
fn completions_and_pages_exist_for_every_verb() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(world.shown(&["completions", shell]).contains("timeline"), "{shell}");
    }
    assert!(world.shown(&["man"]).contains("EXIT STATUS"));
    world.shown(&["man", "--dir", "pages"]);
    assert!(world.path("pages/lakebed-sql.1").is_file());
}
