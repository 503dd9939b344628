//! What every table format must do, whatever its bytes look like: one `async fn` a behaviour.
//!
//! A format takes part with a [`Subject`]: how to make a table of `id BIGINT, name VARCHAR` and how to put rows into it.
//! Subjects that only read write by hand what another engine would have written, and run [`reading`] alone. The
//! others run [`writing`], [`racing`] and [`upkeep`], too, and, in memory, [`crashing`] and [`interrupting`]. Worlds are in
//! memory or on a disk, behind a [`FaultyStore`] in any case.
//!
//! [`conformance_tests!`](crate::conformance_tests) makes one test a behaviour.
pub mod crashing;
pub mod interrupting;
mod points;
pub mod racing;
pub mod reading;
pub mod upkeep;
pub mod writing;

use std::{fmt::Debug, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use lakebed_core::{
    Error, Result,
    change::{Change, RowDelta},
    commit::{self, Committed, Publisher, StoragePublisher, Write},
    conflict::{ConflictPolicy, Isolation},
    env::Env,
    expr::Predicate,
    file::DataFile,
    format::{OpenOptions, TableFormat, TableLocation},
    storage::{LocalDisk, Storage},
    table::Table,
    timeline::Action,
    version::{AsOf, Millis, Version, VersionId},
};
use tempfile::TempDir;

use crate::{
    env::{self, SeededIds, SteppingClock},
    pond, reference,
    rows::Rows,
    seed::Seed,
    store::FaultyStore,
    value::Value,
};

/// One format's part in the suite.
#[async_trait]
pub trait Subject: Debug + Send + Sync {
    fn format(&self) -> Arc<dyn TableFormat>;

    /// Makes an empty table of `id BIGINT, name VARCHAR`, with one version.
    async fn create(&self, at: TableLocation) -> Result<Arc<dyn Table>>;

    /// Adds rows as one version. By default the format's own write path does it.
    async fn append(&self, table: &dyn Table, env: &Env, rows: &Rows) -> Result<()> {
        let write = table.begin(pond::intent(Action::Append)).await?;
        let added = vec![self.data_file(table, env, &write, rows).await?];
        let changes = [Change::Rows(RowDelta { added, ..RowDelta::default() })];
        commit(table, env, &write, &changes).await.map(|_| ())
    }

    /// The table that is there, as a new process opens it. A mutant answers with one that does something wrong.
    async fn open(&self, at: TableLocation) -> Result<Arc<dyn Table>> {
        self.format().open(at).await
    }

    /// Makes the table need a feature that no build has, as another engine might; says the feature's name.
    async fn demand_unknown_feature(&self, storage: &Storage) -> Result<String>;

    /// Whether the format writes. Those that do not run the reading behaviours only.
    fn writes(&self) -> bool {
        false
    }

    /// Writes a data file for a write under way.
    async fn data_file(&self, _table: &dyn Table, _env: &Env, _write: &Write, _rows: &Rows) -> Result<DataFile> {
        Err(Error::unsupported("this subject does not write"))
    }

    /// Changes that delete the rows with these ids from the write's base, vectors or rewritten files.
    async fn deletion(&self, _table: &dyn Table, _env: &Env, _write: &Write, _ids: &[i64]) -> Result<Vec<Change>> {
        Err(Error::unsupported("this subject does not write"))
    }

    /// Changes that put the rows of the write's base into fewer files; empty when there is nothing to gain.
    async fn compaction(&self, _table: &dyn Table, _env: &Env, _write: &Write) -> Result<Vec<Change>> {
        Err(Error::unsupported("this subject does not write"))
    }

    /// Tells of an object below the root whether it holds rows, or takes some away: what a sweep looks at.
    fn holds_rows(&self) -> fn(&str) -> bool {
        |_| false
    }

    /// Which of all the objects below the root the table must be the same without.
    fn caches(&self, _all: &[String]) -> Vec<String> {
        Vec::new()
    }

    /// A writer of another engine, where the subject has one.
    fn foreigner(&self) -> Option<&dyn Foreigner> {
        None
    }

    /// What the objects, keys and bodies in the order they were written, say against each other: nothing, or a sentence.
    fn audit(&self, _written: &[(String, Bytes)]) -> Result<(), String> {
        Ok(())
    }
}

/// A writer that keeps to the format's own rules and knows nothing of Lakebed.
///
/// An error is [`Conflict`](lakebed_core::ErrorKind::Conflict) where the table surely is as before.
#[async_trait]
pub trait Foreigner: Debug + Send + Sync {
    /// Adds rows as one version named `id` in its metadata; tries the next version when another writer is first.
    async fn append(&self, storage: &Storage, env: &Env, id: &str, rows: &Rows) -> Result<VersionId>;

    /// Removes a whole file without vector as the version right after `base`, or not at all.
    async fn remove(
        &self,
        storage: &Storage,
        env: &Env,
        id: &str,
        base: &Version,
        file: &DataFile,
    ) -> Result<VersionId>;
}

/// A place for one table, with its clock and ids.
#[derive(Debug)]
pub struct World {
    pub store: FaultyStore,
    pub env: Env,
    _folder: Option<TempDir>,
}

impl World {
    pub fn memory() -> Self {
        Self { store: FaultyStore::new(Seed(1)), env: env::env(Seed(2)), _folder: None }
    }

    /// On this machine's disk, through Lakebed's own local store.
    ///
    /// # Panics
    /// If there is no place for temporary files.
    pub fn disk() -> Self {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let disk = Arc::new(LocalDisk::new(folder.path()));
        Self { store: FaultyStore::over(disk, Seed(1)), env: env::env(Seed(2)), _folder: Some(folder) }
    }

    /// This world as it is now, for a run of its own: a copy of the objects, no faults, other ids, a clock that starts at
    /// `now`. Two runs that do the same leave the same bytes.
    ///
    /// # Panics
    /// If it is on a disk.
    #[must_use]
    pub fn forked(&self, now: Millis) -> Self {
        let store = self.store.forked().expect("a world in memory");
        let env = Env { clock: Arc::new(SteppingClock::at(now)), ids: Arc::new(SeededIds::new(Seed(3))) };
        Self { store, env, _folder: None }
    }

    pub fn location(&self) -> TableLocation {
        location(self.store.storage("t"), &self.env)
    }

    /// The table as a new process sees it: the same bytes, no faults.
    pub async fn reopened(&self, subject: &dyn Subject) -> Result<Arc<dyn Table>> {
        subject.open(location(self.store.restarted().storage("t"), &self.env)).await
    }
}

/// Where a table in `storage` lives that is its own catalog.
pub fn location(storage: Storage, env: &Env) -> TableLocation {
    let publisher: Arc<dyn Publisher> = Arc::new(StoragePublisher);
    TableLocation { storage, publisher, env: env.clone(), options: OpenOptions::default() }
}

/// Commits to a table that is its own catalog: serializable, as if everything had been read unless it is an append.
pub async fn commit(table: &dyn Table, env: &Env, write: &Write, changes: &[Change]) -> Result<Committed> {
    let appends = write.intent.action == Action::Append;
    commit_as(table, env, write, changes, Isolation::Serializable, (!appends).then_some(Predicate::True)).await
}

/// Commits with this isolation, having read what `read` says.
pub async fn commit_as(
    table: &dyn Table,
    env: &Env,
    write: &Write,
    changes: &[Change],
    isolation: Isolation,
    read: Option<Predicate>,
) -> Result<Committed> {
    let policy = ConflictPolicy { isolation, read, claims: Vec::new(), retries: 20 };
    commit::commit(table, &StoragePublisher, env, write, changes, &policy).await
}

/// Rows of the suite's tables: `name` is `n<id>`.
pub fn rows(ids: impl IntoIterator<Item = i64>) -> Rows {
    let mut rows = Rows::new(["id", "name"]);
    rows.rows = ids.into_iter().map(|id| vec![id.into(), format!("n{id}").as_str().into()]).collect();
    rows
}

/// The ids of a version, sorted, read by the reference.
pub async fn ids(subject: &dyn Subject, table: &dyn Table, as_of: &AsOf) -> Result<Vec<i64>> {
    let rows = reference::read_table(subject.format().as_ref(), table, as_of).await?;
    let mut ids: Vec<i64> = rows
        .project(&["id"])?
        .rows
        .iter()
        .map(|row| match &row[0] {
            Value::Int(id) => i64::try_from(*id).map_err(|_| Error::corrupt(format!("id {id}"))),
            other => Err(Error::corrupt(format!("id {other}"))),
        })
        .collect::<Result<_>>()?;
    ids.sort_unstable();
    Ok(ids)
}

/// A table with the versions 1, 2, 3 of ids 1 and 2, then 3, then 4 to 6, after an empty one; and those four ids.
pub(crate) async fn three_appends(subject: &dyn Subject, world: &World) -> Arc<dyn Table> {
    let table = subject.create(world.location()).await.expect("a new table");
    for ids in [vec![1, 2], vec![3], vec![4, 5, 6]] {
        subject.append(table.as_ref(), &world.env, &rows(ids)).await.expect("an append without faults");
    }
    table
}

/// The behaviours as tests: `conformance_tests!(reading, subject, world)`, or `all` for subjects that write; `healthy` is
/// all but those of processes that die, which are the same in every world.
///
/// `subject` and `world` are expressions that make a fresh one for each test.
#[macro_export]
macro_rules! conformance_tests {
    (reading, $subject:expr, $world:expr) => {
        $crate::conformance_tests! { @group reading, $subject, $world,
            a_snapshot_never_changes, versions_and_times_name_states, what_is_not_there_is_not_found,
            changes_come_oldest_first, files_agree_with_tasks, pruning_never_drops_a_wanted_row,
            a_limit_is_a_hint, an_unknown_feature_is_refused_by_name, reading_never_writes,
            a_folder_without_a_table_is_none,
        }
    };
    (healthy, $subject:expr, $world:expr) => {
        $crate::conformance_tests! { reading, $subject, $world }
        $crate::conformance_tests! { @group writing, $subject, $world,
            deleted_rows_are_gone_and_stay_in_old_versions, tags_name_versions, a_restore_is_a_new_version,
            a_change_feed_adds_up,
        }
        $crate::conformance_tests! { @group racing, $subject, $world,
            writers_that_only_add_all_win, an_answer_that_was_lost_is_found, a_request_that_was_lost_is_sent_again,
            without_answers_the_outcome_is_unknown, deleting_the_same_rows_twice_conflicts,
            a_schema_change_stops_older_writes, an_append_conflicts_with_who_read_all_only_when_serializable,
        }
        $crate::conformance_tests! { @group upkeep, $subject, $world,
            a_plan_changes_nothing, expired_versions_are_named_and_others_stay, orphans_go_and_files_in_use_stay,
            tags_keep_versions, a_vacuum_keeps_what_versions_need,
        }
    };
    (all, $subject:expr, $world:expr) => {
        $crate::conformance_tests! { healthy, $subject, $world }
        $crate::conformance_tests! { @group crashing, $subject, $world,
            an_append_is_all_or_nothing, a_delete_is_all_or_nothing, a_merge_is_all_or_nothing,
            a_compaction_changes_no_row, a_restore_is_all_or_nothing, a_tag_is_there_or_not, a_tag_goes_or_stays,
            an_append_beside_others_is_all_or_nothing, a_delete_beside_others_is_all_or_nothing,
            a_merge_beside_others_is_all_or_nothing, a_compaction_beside_others_changes_no_row,
            a_restore_beside_others_is_refused, a_tag_beside_others_is_there_or_not,
        }
        $crate::conformance_tests! { @group interrupting, $subject, $world,
            a_checkpoint_stops_anywhere_unharmed, log_clean_up_stops_anywhere_unharmed,
            a_vacuum_stops_anywhere_unharmed, a_lite_vacuum_stops_anywhere_unharmed,
            the_search_for_orphans_stops_anywhere_unharmed,
        }
    };
    (@group $group:ident, $subject:expr, $world:expr, $($behaviour:ident),+ $(,)?) => {
        mod $group {
            #[allow(unused_imports)]
            use super::*;
            $(
                #[tokio::test]
                async fn $behaviour() {
                    $crate::conformance::$group::$behaviour(&$subject, &$world).await;
                }
            )+
        }
    };
}
