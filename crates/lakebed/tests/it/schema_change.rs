//! A table whose schema changes while a session is open.
use std::{fs, path::Path};

use futures::TryStreamExt;
use lakebed::Lakebed;
use lakebed_core::Result;
use lakebed_engine::{Session, error::of_datafusion};

/// A commit that gives the table these columns.
fn metadata(columns: &[&str]) -> String {
    let fields: Vec<String> = columns
        .iter()
        .map(|it| format!(r#"{{\"name\":\"{it}\",\"type\":\"long\",\"nullable\":true,\"metadata\":{{}}}}"#))
        .collect();
    let fields = fields.join(",");
    format!(
        r#"{{"metaData":{{"id":"t","format":{{"provider":"parquet","options":{{}}}},"schemaString":"{{\"type\":\"struct\",\"fields\":[{fields}]}}","partitionColumns":[],"configuration":{{}}}}}}"#
    )
}

fn commit(log: &Path, version: u64, lines: &[&str]) {
    fs::write(log.join(format!("{version:020}.json")), lines.join("\n")).unwrap();
}

/// The names of the answer's columns.
async fn columns(session: &Session, sql: &str) -> Result<Vec<String>> {
    let [statement] = &session.parse(sql)?[..] else { panic!("one statement: {sql}") };
    let output = session.run(statement).await?;
    let names = output.schema.fields().iter().map(|it| it.name().clone()).collect();
    output.rows.try_collect::<Vec<_>>().await.map_err(of_datafusion)?;
    Ok(names)
}

/// ClickHouse 107340 and 121641: each statement sees the schema of the version it reads, and an error names the column that is gone.
#[tokio::test]
async fn a_statement_sees_the_schema_of_its_version() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("lakehouse/default/t/_delta_log");
    fs::create_dir_all(&log).unwrap();
    let protocol = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#;
    commit(&log, 0, &[protocol, &metadata(&["id", "old"])]);
    let session = Lakebed::builder().base(folder.path()).build().unwrap().session().unwrap();
    assert_eq!(columns(&session, "SELECT * FROM t").await.unwrap(), ["id", "old"]);
    assert_eq!(columns(&session, "SELECT old FROM t").await.unwrap(), ["old"]);

    commit(&log, 1, &[&metadata(&["id", "new"])]);
    assert_eq!(columns(&session, "SELECT * FROM t").await.unwrap(), ["id", "new"]);
    assert_eq!(columns(&session, "SELECT old FROM t VERSION AS OF 0").await.unwrap(), ["old"]);
    let err = columns(&session, "SELECT old FROM t").await.unwrap_err();
    assert!(err.to_string().contains("`old`"), "{err}");
}
