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
    value::Value,
};

corpus_tests! {
    "delta",
    read,
    catalog_managed_refused = "catalog-managed-refused",
    cdf_update_delete = "cdf-update-delete",
    checkpoint_struct_stats_only = "checkpoint-struct-stats-only",
    classic_checkpoint_deletes = "classic-checkpoint-deletes",
    column_mapping_id_all_types = "column-mapping-id-all-types",
    corrupt_last_checkpoint = "corrupt-last-checkpoint",
    dv_checksum_mismatch = "dv-checksum-mismatch",
    dv_column_mapping_name = "dv-column-mapping-name",
    dv_inline = "dv-inline",
    dv_partitioned_checkpoint = "dv-partitioned-checkpoint",
    escaped_partition_paths = "escaped-partition-paths",
    forward_compat_unknown_actions = "forward-compat-unknown-actions",
    int96_timestamps = "int96-timestamps",
    liquid_clustering_row_tracking = "liquid-clustering-row-tracking",
    log_compaction = "log-compaction",
    log_gap = "log-gap",
    map_types = "map-types",
    multipart_checkpoint = "multipart-checkpoint",
    multipart_missing_part = "multipart-missing-part",
    only_checkpoint_files = "only-checkpoint-files",
    parquet_all_types_legacy = "parquet-all-types-legacy",
    partition_all_types_cm = "partition-all-types-cm",
    partition_iso8601_timestamp = "partition-iso8601-timestamp",
    set_transaction = "set-transaction",
    time_travel_ict_timestamp = "time-travel-ict-timestamp",
    time_travel_version = "time-travel-version",
    timestamp_ntz_partition_cm_name = "timestamp-ntz-partition-cm-name",
    truncated_commit = "truncated-commit",
    type_widening = "type-widening",
    unknown_reader_feature = "unknown-reader-feature",
    v2_checkpoint_json_sidecars = "v2-checkpoint-json-sidecars",
    v2_checkpoint_no_sidecar_no_hint = "v2-checkpoint-no-sidecar-no-hint",
    v2_checkpoint_parquet_many_sidecars = "v2-checkpoint-parquet-many-sidecars",
    variant_unshredded = "variant-unshredded",
}

async fn read(case: Case) {
    let sql = query(&case);
    let actual = rows(&sql).await;
    if case.spec.extra.as_ref().is_some_and(|it| it.select.is_some()) {
        return check_json_text(&case, actual.unwrap());
    }
    check(&case, &actual);
}

/// The expected rows hold JSON text as another engine spells it; what it says counts, not how.
fn check_json_text(case: &Case, actual: Rows) {
    let expected = said(case.expected().unwrap());
    let actual = said(actual.project(&expected.columns).unwrap());
    assert_eq!((expected.len(), expected.difference(&actual)), (case.spec.rows.unwrap(), None), "{}", case.name);
}

fn said(mut rows: Rows) -> Rows {
    for value in rows.rows.iter_mut().flatten() {
        if let Value::Text(text) = value {
            *value = Value::Text(json(text).to_string());
        }
    }
    rows
}

/// DuckDB's `to_json` of a variant is a JSON string that holds its own rendering: `"{'key': 0}"`.
fn json(text: &str) -> serde_json::Value {
    match serde_json::from_str(text).unwrap() {
        serde_json::Value::String(inner) => serde_json::from_str(&inner.replace('\'', "\"")).unwrap_or(inner.into()),
        other => other,
    }
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
