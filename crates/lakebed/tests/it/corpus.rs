//! The conformance corpus through SQL: one test a case, named as the case.
use arrow_array::RecordBatch;
use futures::TryStreamExt as _;
use lakebed::Lakebed;
use lakebed_core::{Error, Result};
use lakebed_engine::error::of_datafusion;
use lakebed_testkit::{
    corpus::{Case, check},
    corpus_tests,
    rows::Rows,
};

corpus_tests! { delta, read }

async fn read(case: Case) {
    let sql = query(&case);
    let actual = rows(&sql).await;
    check(&case, &actual);
}

/// The statement a user would write for the case.
fn query(case: &Case) -> String {
    let path = case.table().display().to_string();
    if let Some(range) = &case.spec.cdf {
        return format!("SELECT * FROM table_changes('{path}', {}, {})", range.start, range.end);
    }
    let as_of = &case.spec.as_of;
    let pinned = match (&as_of.version, &as_of.timestamp) {
        (Some(version), _) => format!(" VERSION AS OF {version}"),
        (None, Some(time)) => format!(" TIMESTAMP AS OF '{time}'"),
        (None, None) => String::new(),
    };
    format!("SELECT * FROM delta.`{path}`{pinned}")
}

async fn rows(sql: &str) -> Result<Rows> {
    let lake = Lakebed::builder().build()?;
    let session = lake.session()?;
    let statements = session.parse(sql)?;
    let output = session.run(&statements[0]).await?;
    let batches: Vec<RecordBatch> = output.rows.try_collect().await.map_err(of_datafusion)?;
    Rows::from_batches(&batches).map_err(|it| Error::internal(it.to_string()))
}
