//! Behaviours of reading.
use futures::TryStreamExt;
use lakebed_core::{
    ErrorKind,
    change::VersionDelta,
    expr::{Cmp, ColumnPath, Predicate, Scalar},
    file::DataFile,
    listing::{self, ListingColumns},
    scan::{Scan, ScanTask},
    table::Snapshot,
    version::{AsOf, Millis, Span, Version, VersionId},
};

use super::{Subject, World, ids, rows, three_appends};
use crate::{reference, rows::Rows, value::Value};

async fn versions(table: &dyn lakebed_core::table::Table) -> Vec<Version> {
    let timeline = table.timeline(&Span::all()).await.expect("a timeline");
    timeline.versions().cloned().collect()
}

async fn tasks(snapshot: &dyn Snapshot, scan: &Scan) -> Vec<ScanTask> {
    snapshot.tasks(scan).try_collect().await.expect("tasks")
}

/// A snapshot read again after other commits has the same files.
pub async fn a_snapshot_never_changes(subject: &dyn Subject, world: &World) {
    let table = three_appends(subject, world).await;
    let snapshot = table.snapshot(&AsOf::Latest).await.expect("a snapshot");
    let format = subject.format();
    let before = reference::read_snapshot(format.as_ref(), table.storage(), snapshot.as_ref()).await.expect("rows");
    subject.append(table.as_ref(), &world.env, &rows([7])).await.expect("an append");
    let after = reference::read_snapshot(format.as_ref(), table.storage(), snapshot.as_ref()).await.expect("rows");
    assert_eq!(before, after);
    assert_eq!(ids(subject, table.as_ref(), &AsOf::Latest).await.expect("rows"), [1, 2, 3, 4, 5, 6, 7]);
}

/// Each version is found by its id and by every moment until the next one.
pub async fn versions_and_times_name_states(subject: &dyn Subject, world: &World) {
    let table = three_appends(subject, world).await;
    let versions = versions(table.as_ref()).await;
    let expected: [&[i64]; 4] = [&[], &[1, 2], &[1, 2, 3], &[1, 2, 3, 4, 5, 6]];
    assert_eq!(versions.len(), expected.len());
    for (at, (version, expected)) in versions.iter().zip(expected).enumerate() {
        let by_id = AsOf::Version(version.id.clone());
        assert_eq!(ids(subject, table.as_ref(), &by_id).await.expect("rows"), expected, "version {}", version.id);
        assert_eq!(table.snapshot(&by_id).await.expect("a snapshot").version().id, version.id);
        let next = versions.get(at + 1).map_or(i64::MAX, |it| it.committed_at.0);
        for moment in [version.committed_at.0, next - 1] {
            if version.committed_at.0 <= moment && moment < next {
                let resolved = table.resolve(&AsOf::Time(Millis(moment))).await.expect("a version");
                assert_eq!(resolved.version.id, version.id, "at {moment}");
                assert!(!resolved.rule.is_empty(), "the rule is said");
            }
        }
    }
    let late = table.resolve(&AsOf::Time(Millis(i64::MAX / 2))).await.expect("the newest version");
    assert!(!late.warnings.is_empty(), "a time later than the newest version is worth a warning");
}

/// Versions, times and refs that name nothing are `NotFound`.
pub async fn what_is_not_there_is_not_found(subject: &dyn Subject, world: &World) {
    let table = three_appends(subject, world).await;
    let nothing = [AsOf::Version(VersionId::new("4711")), AsOf::Time(Millis(0)), AsOf::Ref("no-such-name".into())];
    for as_of in nothing {
        let err = table.resolve(&as_of).await.expect_err("nothing is named");
        assert_eq!(err.kind(), ErrorKind::NotFound, "{as_of:?}: {err}");
        assert_eq!(table.snapshot(&as_of).await.expect_err("nothing is named").kind(), ErrorKind::NotFound);
    }
}

/// Changes come oldest first, each version once, and their files add up to the newest state.
pub async fn changes_come_oldest_first(subject: &dyn Subject, world: &World) {
    let table = three_appends(subject, world).await;
    let deltas: Vec<VersionDelta> = table.changes(&Span::all()).try_collect().await.expect("changes");
    let versions = versions(table.as_ref()).await;
    let order = |deltas: &[VersionDelta]| deltas.iter().map(|it| it.version.id.clone()).collect::<Vec<_>>();
    assert_eq!(order(&deltas), versions.iter().map(|it| it.id.clone()).collect::<Vec<_>>());
    let mut added: Vec<_> = deltas.iter().flat_map(|it| &it.rows.added).map(|it| it.path.clone()).collect();
    let snapshot = table.snapshot(&AsOf::Latest).await.expect("a snapshot");
    let live = tasks(snapshot.as_ref(), &Scan::all()).await;
    let mut live: Vec<_> = live.iter().flat_map(|it| &it.files).map(|it| it.path.clone()).collect();
    added.sort();
    live.sort();
    assert_eq!(added, live, "nothing was removed");
    let middle = Span { after: Some(versions[1].id.clone()), until: AsOf::Version(versions[2].id.clone()) };
    let middle: Vec<VersionDelta> = table.changes(&middle).try_collect().await.expect("changes");
    assert_eq!(order(&middle), [versions[2].id.clone()], "after is left out, until is in");
}

/// The listing has the files, bytes and rows of the tasks; columns not asked for are not there.
pub async fn files_agree_with_tasks(subject: &dyn Subject, world: &World) {
    let table = three_appends(subject, world).await;
    let snapshot = table.snapshot(&AsOf::Latest).await.expect("a snapshot");
    let listed: Vec<_> = snapshot.files(&Scan::all(), ListingColumns::ALL).try_collect().await.expect("a listing");
    for batch in &listed {
        assert_eq!(batch.schema(), listing::schema(ListingColumns::ALL));
    }
    let listed =
        Rows::from_batches(&listed).expect("known types").project(&["path", "bytes", "rows"]).expect("columns");
    let tasks = tasks(snapshot.as_ref(), &Scan::all()).await;
    let files: Vec<&DataFile> = tasks.iter().flat_map(|it| &it.files).collect();
    let number = |it: Option<u64>| it.map_or(Value::Null, |it| Value::Int(it.into()));
    let mut planned = Rows::new(["path", "bytes", "rows"]);
    planned.rows = files
        .iter()
        .map(|it| vec![Value::Text(it.path.as_str().into()), number(Some(it.bytes)), number(it.stats.rows)])
        .collect();
    crate::rows::assert_same(&planned, &listed);
    let counted: Vec<_> = snapshot.files(&Scan::all(), ListingColumns::NONE).try_collect().await.expect("a listing");
    assert!(counted.iter().all(|it| it.num_columns() == 0));
    assert_eq!(counted.iter().map(|it| it.num_rows()).sum::<usize>(), files.len());
    let totals = snapshot.totals().await.expect("totals");
    assert_eq!(totals.files, files.len() as u64);
    assert_eq!(totals.bytes, files.iter().map(|it| it.bytes).sum::<u64>());
    assert!(totals.rows.is_none_or(|it| it == 6), "rows are right or unknown");
}

/// Whatever the predicate, the rows it wants are in the files that stay.
pub async fn pruning_never_drops_a_wanted_row(subject: &dyn Subject, world: &World) {
    let table = three_appends(subject, world).await;
    let snapshot = table.snapshot(&AsOf::Latest).await.expect("a snapshot");
    let id = || ColumnPath::top("id");
    let name = || ColumnPath::top("name");
    let compare = |cmp, value| Predicate::Compare(id(), cmp, Scalar::Int(value));
    let mut predicates: Vec<(Predicate, Vec<i64>)> = vec![
        (Predicate::True, (1..=6).collect()),
        (Predicate::False, vec![]),
        (Predicate::IsNull(id()), vec![]),
        (Predicate::Not(Box::new(Predicate::IsNull(name()))), (1..=6).collect()),
        (Predicate::In(id(), vec![Scalar::Int(2), Scalar::Int(5)]), vec![2, 5]),
        (Predicate::StartsWith(name(), "n3".into()), vec![3]),
        (Predicate::Or(vec![compare(Cmp::Eq, 1), compare(Cmp::Gt, 5)]), vec![1, 6]),
        (Predicate::And(vec![compare(Cmp::Gt, 1), compare(Cmp::Lt, 4)]), vec![2, 3]),
        (Predicate::Not(Box::new(compare(Cmp::LtEq, 4))), vec![5, 6]),
    ];
    for value in 0..=7 {
        predicates.push((compare(Cmp::Eq, value), (1..=6).filter(|it| *it == value).collect()));
        predicates.push((compare(Cmp::Lt, value), (1..=6).filter(|it| *it < value).collect()));
        predicates.push((compare(Cmp::GtEq, value), (1..=6).filter(|it| *it >= value).collect()));
    }
    let reading = reference::Reading { residual: true, ..reference::Reading::default() };
    for (predicate, wanted) in predicates {
        let scan = Scan { predicate: predicate.clone(), ..Scan::all() };
        let kept = tasks(snapshot.as_ref(), &scan).await;
        let pruning = snapshot.pruning(&scan).await.expect("pruning");
        assert_eq!(pruning.files_kept, kept.iter().map(|it| it.files.len() as u64).sum::<u64>(), "{predicate:?}");
        let found = reference::read_with(subject.format().as_ref(), table.storage(), &kept, &reading).await;
        let found = found.expect("rows");
        let mut found: Vec<i64> = found.rows.iter().map(|row| row[0].text().parse().expect("an id")).collect();
        found.sort_unstable();
        assert_eq!(found, wanted, "{predicate:?}");
    }
}

/// A limit may leave tasks out, never so many that rows are missing.
pub async fn a_limit_is_a_hint(subject: &dyn Subject, world: &World) {
    let table = three_appends(subject, world).await;
    let snapshot = table.snapshot(&AsOf::Latest).await.expect("a snapshot");
    for limit in 0..=8u64 {
        let kept = tasks(snapshot.as_ref(), &Scan { limit: Some(limit), ..Scan::all() }).await;
        let found = reference::read(subject.format().as_ref(), table.storage(), &kept).await.expect("rows");
        assert!(found.len() as u64 >= limit.min(6), "limit {limit} found {}", found.len());
    }
}

/// A table that needs more than this build has: its rows are refused by name, its history is not.
pub async fn an_unknown_feature_is_refused_by_name(subject: &dyn Subject, world: &World) {
    let table = three_appends(subject, world).await;
    let feature = subject.demand_unknown_feature(&world.store.storage("t")).await.expect("a foreign write");
    // A format may show such a snapshot's schema and properties; its rows it must refuse.
    let err = match table.snapshot(&AsOf::Latest).await {
        Err(err) => err,
        Ok(snapshot) => {
            let planned = snapshot.tasks(&Scan::all()).try_collect::<Vec<_>>().await;
            planned.expect_err("the feature is unknown")
        }
    };
    assert_eq!(err.kind(), ErrorKind::Unsupported);
    assert!(err.to_string().contains(&feature), "`{err}` names {feature}");
    table.resolve(&AsOf::Latest).await.expect("which version it is can be said");
    table.timeline(&Span::all()).await.expect("history can be shown");
}

/// No read path writes, deletes or copies.
pub async fn reading_never_writes(subject: &dyn Subject, world: &World) {
    three_appends(subject, world).await;
    let store = world.store.restarted();
    let table = subject.format().open(super::location(store.storage("t"), &world.env)).await.expect("a table");
    table.refs().await.expect("refs");
    table.examine().await.expect("findings");
    table.timeline(&Span::all()).await.expect("a timeline");
    ids(subject, table.as_ref(), &AsOf::Latest).await.expect("rows");
    let wrote: Vec<_> = store.log().into_iter().filter(|it| it.op.writes()).collect();
    assert!(wrote.is_empty(), "{wrote:?}");
}

/// `detect` tells a table from a folder; `open` of nothing is `NotFound`, at the latest when it is first asked.
pub async fn a_folder_without_a_table_is_none(subject: &dyn Subject, world: &World) {
    let format = subject.format();
    let storage = world.store.storage("t");
    assert!(!format.detect(&storage).await.expect("a listing"));
    let err = match format.open(world.location()).await {
        Err(err) => err,
        Ok(table) => table.resolve(&AsOf::Latest).await.expect_err("there is no table"),
    };
    assert_eq!(err.kind(), ErrorKind::NotFound, "{err}");
    subject.create(world.location()).await.expect("a new table");
    assert!(format.detect(&storage).await.expect("a listing"));
}
