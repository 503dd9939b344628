//! Which files a compaction puts together.
use futures::TryStreamExt;
use lakebed_core::{
    ErrorKind,
    expr::{Cmp, ColumnPath, Predicate, Scalar},
    maintain::{Maintenance, MaintenancePlan, Step},
    table::Snapshot,
};
use serde_json::{Value, json};

use super::Yard;
use crate::world::metadata;

const MB: u64 = 1 << 20;

fn add(path: &str, day: &str, megabytes: u64, rows: u64, gone: u64) -> Value {
    let mut add = json!({
        "path": path, "partitionValues": {"day": day}, "size": megabytes * MB, "modificationTime": 7, "dataChange": true,
        "stats": json!({"numRecords": rows, "minValues": {"id": 1}, "maxValues": {"id": 9}}).to_string(),
    });
    if gone > 0 {
        add["deletionVector"] = json!({"storageType": "u", "pathOrInlineDv": "00000000000000000000", "offset": 1,
            "sizeInBytes": 36, "cardinality": gone});
    }
    json!({ "add": add })
}

async fn yard(files: &[Value], configuration: Value) -> Yard {
    let protocol = json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}});
    let mut yard = Yard::with(protocol, metadata(&["day"], configuration)).await;
    yard.commit(files).await;
    yard
}

fn shown(plan: &MaintenancePlan) -> String {
    let bins = plan.steps.iter().map(|it| match it {
        Step::Rewrite(tasks) => {
            assert!(tasks.iter().all(|it| it.residual == Predicate::True));
            tasks.iter().map(|it| it.files[0].path.as_str()).collect::<Vec<_>>().join("+")
        }
        other => panic!("{other:?}"),
    });
    bins.collect::<Vec<_>>().join(" ")
}

async fn check(files: &[Value], target: Option<u64>, expected: &str) {
    let yard = yard(files, json!({})).await;
    let action = Maintenance::Compact { filter: Predicate::True, target_bytes: target };
    assert_eq!(shown(&yard.plan(&action).await.unwrap()), expected);
}

#[tokio::test]
async fn small_files_of_a_partition_go_together() {
    let one = |path, megabytes| add(path, "2026-11-01", megabytes, 100, 0);
    let two = |path, megabytes| add(path, "2026-11-02", megabytes, 100, 0);
    check(&[one("a", 1), one("b", 2), two("c", 1), two("d", 1)], None, "a+b c+d").await;
    check(&[one("a", 1), two("c", 1)], None, "").await;
    check(&[one("a", 600), one("b", 500), one("c", 400)], None, "c+b").await;
    check(&[one("a", 2000), one("b", 1)], None, "").await;
    check(&[one("a", 4), one("b", 5), one("c", 6), one("d", 7)], Some(10 * MB), "a+b").await;
    check(&[one("a", 3), one("b", 3), one("c", 3), one("d", 3), one("e", 3)], Some(6 * MB), "a+b c+d").await;
    check(&[one("a", 10), one("b", 1)], Some(10 * MB), "").await;
}

#[tokio::test]
async fn a_file_with_many_rows_gone_is_rewritten_alone() {
    let of = |path, megabytes, gone| add(path, "2026-11-01", megabytes, 100, gone);
    check(&[of("a", 2000, 5)], None, "").await;
    check(&[of("a", 2000, 6)], None, "a").await;
    check(&[of("a", 1, 6), of("b", 1, 0)], None, "a+b").await;
}

#[tokio::test]
async fn the_table_says_how_large_files_become() {
    let files = [add("a", "2026-11-01", 4, 1, 0), add("b", "2026-11-01", 5, 1, 0), add("c", "2026-11-01", 6, 1, 0)];
    let yard = yard(&files, json!({"delta.targetFileSize": "9mb"})).await;
    let action = Maintenance::Compact { filter: Predicate::True, target_bytes: None };
    let plan = yard.plan(&action).await.unwrap();
    assert_eq!(
        (shown(&plan).as_str(), plan.notes.as_slice()),
        ("a+b", ["2 files become about 1".to_owned()].as_slice())
    );
}

#[tokio::test]
async fn a_filter_chooses_whole_partitions() {
    let files = [
        add("a", "2026-11-01", 1, 1, 0),
        add("b", "2026-11-01", 1, 1, 0),
        add("c", "2026-11-02", 1, 1, 0),
        add("d", "2026-11-02", 1, 1, 0),
    ];
    let yard = yard(&files, json!({})).await;
    let compact = async |column: &str, value| {
        let filter = Predicate::Compare(ColumnPath::top(column), Cmp::Eq, value);
        yard.plan(&Maintenance::Compact { filter, target_bytes: None }).await
    };
    assert_eq!(shown(&compact("day", Scalar::Date(20_759)).await.unwrap()), "c+d");
    let err = compact("id", Scalar::Int(1)).await.unwrap_err();
    assert_eq!((err.kind(), err.to_string().as_str()), (ErrorKind::Invalid, "`id` does not partition the table"));
    let tasks: Vec<_> =
        yard.table().await.latest().await.unwrap().tasks(&lakebed_core::scan::Scan::all()).try_collect().await.unwrap();
    assert_eq!(tasks.len(), 4);
}
