//! Tables that other engines wrote, with the rows they hold: the conformance corpus.
//!
//! `<corpus>/<format>/<case>/` has the table's files in `table/`, the expected rows in `expected/rows.parquet` (absent
//! when an error is expected) and `case.json`. The corpus lies where `LAKEBED_CONFORMANCE` says (an absolute path),
//! else at `../shared/conformance` beside the workspace; without either there are no cases. A variable that names no
//! folder is a failure, not an empty corpus.
//!
//! This is the dialect of Delta's cases; the other formats' cases say some things differently and come with their crates.
//!
//! A format's tests name every case it runs with [`corpus_tests!`](crate::corpus_tests), one test a case, and one test
//! more fails when the names and the folders differ.
use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use lakebed_core::{
    Error, ErrorKind, Result,
    storage::{LocalDisk, Storage},
    version::{AsOf, Millis, VersionId},
};
use object_store::{ObjectStore, path::Path as Key};
use serde::Deserialize;

use crate::{reference, rows::Rows};

/// One table and what must come of reading it.
#[derive(Debug, Clone)]
pub struct Case {
    pub name: String,
    pub folder: PathBuf,
    pub spec: Spec,
}

/// `case.json`, as far as tests act on it.
#[derive(Debug, Clone, Deserialize)]
pub struct Spec {
    pub format: String,
    pub why: String,
    pub as_of: AsOfSpec,
    pub expect: Expect,
    pub error_contains: Option<String>,
    pub rows: Option<usize>,
    /// The closed range of versions whose change feed is expected.
    pub cdf: Option<ChangeRange>,
    /// The newest version of each application.
    #[serde(default)]
    pub txn: BTreeMap<String, i64>,
    /// Metadata domains and their configuration.
    #[serde(default)]
    pub domain: BTreeMap<String, String>,
    pub extra: Option<Extra>,
}

#[derive(Debug, Clone, Default, Deserialize)]
pub struct AsOfSpec {
    pub version: Option<serde_json::Value>,
    /// RFC 3339.
    pub timestamp: Option<String>,
    #[serde(rename = "ref")]
    pub reference: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Expect {
    Rows,
    Error,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub struct ChangeRange {
    pub start: u64,
    pub end: u64,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Extra {
    /// Says in words which projection of the table the expected rows are.
    pub select: Option<String>,
}

/// Where the corpus is; `None` when there is none and none was asked for.
///
/// # Panics
/// If `LAKEBED_CONFORMANCE` is set and names no folder.
pub fn root() -> Option<PathBuf> {
    if let Some(named) = env::var_os("LAKEBED_CONFORMANCE") {
        let folder = PathBuf::from(named);
        assert!(folder.is_dir(), "LAKEBED_CONFORMANCE names {}, which is no folder", folder.display());
        return Some(folder);
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    let beside = workspace.parent()?.join("shared/conformance");
    beside.is_dir().then_some(beside)
}

/// The cases of one format by name; empty without a corpus.
///
/// # Panics
/// If a case cannot be read.
pub fn cases(format: &str) -> Vec<Case> {
    let Some(root) = root() else { return Vec::new() };
    let folder = root.join(format);
    let entries = fs::read_dir(&folder).unwrap_or_else(|err| panic!("{}: {err}", folder.display()));
    let mut cases: Vec<Case> = entries
        .map(|it| it.unwrap_or_else(|err| panic!("{}: {err}", folder.display())).path())
        .filter(|it| it.join("case.json").is_file())
        .map(|it| load(&it))
        .collect();
    cases.sort_by(|one, two| one.name.cmp(&two.name));
    cases
}

/// The case of that name; `None` without a corpus.
///
/// # Panics
/// If there is a corpus but no such case.
pub fn case(format: &str, name: &str) -> Option<Case> {
    let folder = root()?.join(format).join(name);
    assert!(folder.is_dir(), "the corpus has no case {format}/{name}");
    Some(load(&folder))
}

fn load(folder: &Path) -> Case {
    let file = folder.join("case.json");
    let text = fs::read(&file).unwrap_or_else(|err| panic!("{}: {err}", file.display()));
    let spec = serde_json::from_slice(&text).unwrap_or_else(|err| panic!("{}: {err}", file.display()));
    let name = folder.file_name().expect("a case is a folder with a name").to_string_lossy().into_owned();
    Case { name, folder: folder.to_owned(), spec }
}

/// Fails unless `names` are exactly the cases on disk. Passes without a corpus.
///
/// # Panics
/// If they differ.
pub fn assert_complete(format: &str, names: &[&str]) {
    if root().is_none() {
        return;
    }
    let on_disk: Vec<String> = cases(format).into_iter().map(|it| it.name).collect();
    let unnamed: Vec<_> = on_disk.iter().filter(|it| !names.contains(&it.as_str())).collect();
    let gone: Vec<_> = names.iter().filter(|it| !on_disk.iter().any(|name| name == *it)).collect();
    assert!(unnamed.is_empty(), "cases of {format} that no test runs: {unnamed:?}");
    assert!(gone.is_empty(), "tests for cases of {format} that are not there: {gone:?}");
}

impl Case {
    /// The folder of the table itself.
    pub fn table(&self) -> PathBuf {
        self.folder.join("table")
    }

    /// The table's files, read from the local disk.
    pub fn storage(&self) -> Result<Storage> {
        self.storage_through(|it| it)
    }

    /// The table's files through another store around the local disk.
    pub fn storage_through(&self, wrap: impl FnOnce(Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore>) -> Result<Storage> {
        let folder = self.table().canonicalize().map_err(|it| Error::not_found(it.to_string()))?;
        let store: Arc<dyn ObjectStore> = Arc::new(LocalDisk::new(folder.clone()));
        Ok(Storage::new(wrap(store), Key::default(), format!("file://{}", folder.display())))
    }

    /// # Panics
    /// If the case's time is not RFC 3339.
    pub fn as_of(&self) -> AsOf {
        let as_of = &self.spec.as_of;
        if let Some(id) = &as_of.version {
            let text = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
            return AsOf::Version(VersionId::new(text));
        }
        if let Some(name) = &as_of.reference {
            return AsOf::Ref(name.clone());
        }
        match &as_of.timestamp {
            Some(text) => {
                let at = chrono::DateTime::parse_from_rfc3339(text);
                AsOf::Time(Millis(at.unwrap_or_else(|err| panic!("{}: {text}: {err}", self.name)).timestamp_millis()))
            }
            None => AsOf::Latest,
        }
    }

    /// The rows of `expected/rows.parquet`.
    pub fn expected(&self) -> Result<Rows> {
        let file = self.folder.join("expected/rows.parquet");
        let body = fs::read(&file).map_err(|it| Error::not_found(format!("{}: {it}", file.display())))?;
        let mut rows = reference::parquet_rows(&body.into(), "expected/rows.parquet")?;
        if self.select().is_some_and(|it| it.contains("JSON text")) {
            rows.read_json_text();
        }
        Ok(rows)
    }

    /// Which columns the expected rows have, in words, where they are not the table's.
    fn select(&self) -> Option<&str> {
        self.spec.extra.as_ref()?.select.as_deref()
    }

    /// Whether the expected rows have fewer columns than the table.
    fn projected(&self) -> bool {
        self.spec.cdf.is_some() || self.select().is_some()
    }
}

/// What is wrong with what a reader made of the case; `None` when it passes.
pub fn verdict(case: &Case, actual: &Result<Rows>) -> Option<String> {
    match (case.spec.expect, actual) {
        (Expect::Error, Ok(rows)) => Some(format!("read {} rows, an error was expected", rows.len())),
        (Expect::Error, Err(err)) if err.kind() == ErrorKind::Internal => Some(format!("a bug, not a refusal: {err}")),
        (Expect::Error, Err(err)) => {
            let wanted = case.spec.error_contains.as_deref().unwrap_or_default().to_lowercase();
            let said = err.to_string().to_lowercase();
            (!said.contains(&wanted)).then(|| format!("the error does not say `{wanted}`: {err}"))
        }
        (Expect::Rows, Err(err)) => Some(format!("rows were expected: {err}")),
        (Expect::Rows, Ok(actual)) => match case.expected() {
            Err(err) => Some(err.to_string()),
            Ok(expected) => wrong_rows(case, &expected, actual),
        },
    }
}

fn wrong_rows(case: &Case, expected: &Rows, actual: &Rows) -> Option<String> {
    if case.spec.rows.is_some_and(|it| it != actual.len()) {
        return Some(format!("{} rows, expected {:?}", actual.len(), case.spec.rows));
    }
    let projected = if case.projected() { actual.project(&expected.columns) } else { Ok(actual.clone()) };
    match projected {
        Ok(actual) => expected.difference(&actual).map(|it| it.to_string()),
        Err(err) => Some(err.to_string()),
    }
}

/// # Panics
/// If the case does not pass, with its reason for being and the difference.
#[track_caller]
pub fn check(case: &Case, actual: &Result<Rows>) {
    if let Some(wrong) = verdict(case, actual) {
        panic!("{}/{} ({}): {wrong}", case.spec.format, case.name, case.spec.why);
    }
}

/// One test a case, named as the case, and one that finds cases without a test.
///
/// `corpus_tests! { delta, read_case }`: the cases of a format stand here once, for the crate that reads its metadata and
/// for SQL. The function is an `async fn(Case)`; it ends in [`check`](crate::corpus::check).
#[macro_export]
macro_rules! corpus_tests {
    (delta, $run:path) => {
        $crate::corpus_tests! {
            "delta", $run,
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
    };
    ($format:literal, $run:path, $($test:ident = $name:literal),+ $(,)?) => {
        #[test]
        fn every_case_has_a_test() {
            $crate::corpus::assert_complete($format, &[$($name),+]);
        }
        $(
            #[tokio::test]
            async fn $test() {
                if let Some(case) = $crate::corpus::case($format, $name) {
                    $run(case).await;
                }
            }
        )+
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_of_the_corpus_can_be_loaded() {
        let Some(root) = root() else { return };
        let cases = cases("delta");
        assert!(!cases.is_empty(), "{} has no cases of delta", root.display());
        for case in &cases {
            case.as_of();
            if case.spec.expect == Expect::Rows {
                check(case, &case.expected());
            }
        }
    }

    fn data_files(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("_delta_log") {
                data_files(&path, found);
            } else if path.extension().is_some_and(|it| it == "parquet") {
                found.push(path);
            }
        }
    }

    /// INT96, lists of two levels, decimals in bytes: whatever lies there.
    #[test]
    fn every_data_file_of_the_corpus_can_be_read() {
        for case in cases("delta") {
            let mut files = Vec::new();
            data_files(&case.table(), &mut files);
            for file in files {
                let body = fs::read(&file).unwrap();
                reference::parquet_rows(&body.into(), &file.to_string_lossy()).unwrap();
            }
        }
    }

    #[test]
    fn a_wrong_answer_is_told_from_a_right_one() {
        let Some(case) = case("delta", "time-travel-version") else { return };
        let mut rows = case.expected().unwrap();
        assert_eq!(verdict(&case, &Ok(rows.clone())), None);
        rows.rows.pop();
        assert!(verdict(&case, &Ok(rows)).unwrap().contains("rows, expected"));
        assert!(verdict(&case, &Err(Error::corrupt("no"))).unwrap().contains("rows were expected"));
    }
}
