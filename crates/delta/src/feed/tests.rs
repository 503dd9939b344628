use std::sync::Arc;

use lakebed_core::version::Millis;
use object_store::{ObjectStoreExt, memory::InMemory, path::Path};

use super::*;

fn head(fields: &[(&str, &str)], on: bool) -> String {
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, kind)| serde_json::json!({"name": name, "type": kind, "nullable": true, "metadata": {}}))
        .collect();
    let schema = serde_json::json!({"type": "struct", "fields": fields}).to_string();
    let configuration = serde_json::json!({"delta.enableChangeDataFeed": on.to_string()});
    let format = serde_json::json!({"provider": "parquet", "options": {}});
    let metadata = serde_json::json!({"metaData": {"id": "t", "format": format, "schemaString": schema, "partitionColumns": [], "configuration": configuration}});
    format!("{{\"protocol\":{{\"minReaderVersion\":1,\"minWriterVersion\":4}}}}\n{metadata}")
}

const ID: &[(&str, &str)] = &[("id", "long")];

fn action(kind: &str, path: &str, vector: Option<&str>, data_change: bool) -> String {
    let vector = vector.map(|it| serde_json::json!({"storageType": "u", "pathOrInlineDv": it, "offset": 1, "sizeInBytes": 4, "cardinality": 1}));
    let action = serde_json::json!({kind: {"path": path, "partitionValues": {}, "size": 5, "modificationTime": 0, "dataChange": data_change, "deletionVector": vector}});
    action.to_string()
}

const ONE: &str = "^-aqEH.-t@S}K{vb[*k^";
const TWO: &str = "ab^-aqEH.-t@S}K{vb[*k^";

async fn log(commits: &[String]) -> Log {
    let store = InMemory::new();
    for (version, body) in commits.iter().enumerate() {
        store.put(&Path::from(format!("t/_delta_log/{version:020}.json")), body.clone().into()).await.unwrap();
    }
    Log::new(Storage::new(Arc::new(store), Path::from("t"), "memory:///t"))
}

fn span(first: u64, last: u64) -> ChangeSpan {
    ChangeSpan { first: AsOf::Version(first.into()), last: AsOf::Version(last.into()) }
}

/// One line a task: version, kind, file, rows of it.
async fn tasks(log: &Log, span: ChangeSpan) -> Result<Vec<String>> {
    let ids = |it: &[DeleteFile]| {
        it.iter().map(|it| it.id.clone().unwrap().chars().take(3).collect::<String>()).collect::<String>()
    };
    let tasks: Vec<ChangeTask> = of_log(log, &span).await?.tasks.try_collect().await?;
    let show = |it: &ChangeTask| {
        let kind = format!("{:?}", it.kind).to_lowercase();
        let file = it.task.files[0].path.clone();
        format!("{} {kind} {file} only[{}] not[{}]", it.version.id, ids(&it.task.only), ids(&it.task.deletes))
    };
    Ok(tasks.iter().map(show).collect())
}

#[tokio::test]
async fn adds_and_removes_are_inserts_and_deletes() {
    let log = log(&[
        head(ID, true),
        action("add", "a", None, true),
        format!("{}\n{}", action("add", "b", None, false), action("remove", "a", None, false)),
        action("remove", "b", Some(ONE), true),
    ])
    .await;
    assert_eq!(tasks(&log, span(0, 3)).await.unwrap(), ["1 insert a only[] not[]", "3 delete b only[] not[u^-]"]);
    assert_eq!(tasks(&log, span(3, 3)).await.unwrap().len(), 1, "both ends belong to the range");
}

#[tokio::test]
async fn another_vector_is_the_difference_of_the_two() {
    let both = |new, old| format!("{}\n{}", action("remove", "a", old, true), action("add", "a", new, true));
    let log = log(&[
        head(ID, true),
        both(Some(ONE), None),
        both(Some(TWO), Some(ONE)),
        both(None, Some(TWO)),
        both(Some(TWO), Some(TWO)),
    ])
    .await;
    assert_eq!(
        tasks(&log, span(1, 4)).await.unwrap(),
        [
            "1 delete a only[u^-] not[]",
            "2 delete a only[uab] not[u^-]",
            "2 insert a only[u^-] not[uab]",
            "3 insert a only[uab] not[]",
        ]
    );
}

#[tokio::test]
async fn change_files_win_over_the_rest_of_their_commit() {
    let cdc = r#"{"cdc":{"path":"_change_data/c","partitionValues":{},"size":9,"dataChange":false}}"#;
    let log = log(&[
        head(ID, true),
        format!("{}\n{cdc}\n{}", action("add", "a", None, true), action("remove", "b", None, true)),
    ])
    .await;
    assert_eq!(tasks(&log, span(0, 1)).await.unwrap(), [r#"1 incolumn("_change_type") _change_data/c only[] not[]"#]);
}

async fn fails(commits: &[String], wanted: ChangeSpan, reason: &str) {
    let err = tasks(&log(commits).await, wanted).await.unwrap_err();
    assert!(err.to_string().contains(reason), "{err}");
}

#[tokio::test]
async fn the_feed_must_be_on_in_every_version() {
    fails(&[head(ID, false)], span(0, 0), "not on in version 0").await;
    let off = [head(ID, true), head(ID, false), head(ID, true)];
    fails(&off, span(0, 2), "not on in version 1").await;
    let late = [head(ID, false), head(ID, true), action("add", "a", None, true)];
    assert_eq!(tasks(&log(&late).await, span(1, 2)).await.unwrap().len(), 1);
    fails(&late, span(0, 2), "not on in version 0").await;
}

#[tokio::test]
async fn schemas_must_fit_the_last() {
    let wider = &[("id", "long"), ("name", "string")];
    let feed_of = |commits: Vec<String>| async move { log(&commits).await };
    let grown = feed_of(vec![head(ID, true), head(wider, true)]).await;
    assert_eq!(of_log(&grown, &span(0, 1)).await.unwrap().schema.fields().len(), 2);
    fails(&[head(wider, true), head(ID, true)], span(0, 1), "column `name` is gone").await;
}

/// As Spark: a range before a column was added shows it, empty; a schema that no longer fits is not used.
#[tokio::test]
async fn an_old_range_is_shown_in_the_newest_schema_that_fits() {
    let wider = &[("id", "long"), ("name", "string")];
    let grown = log(&[head(ID, true), head(wider, true)]).await;
    assert_eq!(of_log(&grown, &span(0, 0)).await.unwrap().schema.fields().len(), 2);
    let replaced = log(&[head(wider, true), head(ID, true)]).await;
    assert_eq!(of_log(&replaced, &span(0, 0)).await.unwrap().schema.fields().len(), 2);
}

#[tokio::test]
async fn ranges_that_cannot_be_are_refused() {
    let commits = [head(ID, true), action("add", "a", None, true)];
    fails(&commits, span(1, 0), "starts at version 1 and ends before it").await;
    fails(&commits, span(0, 9), "newest is 1").await;
    let later = ChangeSpan { first: AsOf::Time(Millis(i64::MAX / 4)), last: AsOf::Latest };
    fails(&commits, later, "starts at version 2").await;
    let all = ChangeSpan { first: AsOf::Time(Millis(0)), last: AsOf::Latest };
    assert_eq!(
        tasks(&log(&commits).await, all).await.unwrap().len(),
        1,
        "a moment before the first version is its start"
    );
}
