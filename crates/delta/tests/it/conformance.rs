//! Tables written by other engines, read through the reference reader: one test a case.
use std::sync::Arc;

use lakebed_core::{Result, change::ChangeSpan, format::TableFormat, table::Snapshot};
use lakebed_delta::Delta;
use lakebed_testkit::{
    corpus::{self, Case},
    corpus_tests, reference,
    rows::Rows,
};

use crate::world::{as_of, location, open};

async fn read(case: &Case) -> Result<Rows> {
    let storage = case.storage()?;
    assert!(Delta.detect(&storage).await?, "{} is a Delta table", case.name);
    let table = Delta.open(location(storage)).await?;
    match &case.spec.cdf {
        Some(range) => {
            let span = ChangeSpan { first: as_of(range.start), last: as_of(range.end) };
            let feed = table.change_feed(&span).await?;
            reference::read_changes(&Delta, table.storage(), feed).await
        }
        None => reference::read_table(&Delta, table.as_ref(), &case.as_of()).await,
    }
}

async fn run(case: Case) {
    let actual = read(&case).await;
    corpus::check(&case, &actual);
    if case.spec.txn.is_empty() && case.spec.domain.is_empty() {
        return;
    }
    let table = open(case.storage().unwrap()).await;
    let snapshot = table.latest().await.unwrap();
    for (application, version) in &case.spec.txn {
        assert_eq!(snapshot.transaction(application), Some(*version), "{application}");
    }
    for (domain, configuration) in &case.spec.domain {
        assert_eq!(snapshot.domain(domain), Some(configuration.as_str()), "{domain}");
    }
    let facts = Arc::clone(&snapshot).facts();
    assert!(!facts.is_empty());
}

corpus_tests! {
    "delta", run,
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
