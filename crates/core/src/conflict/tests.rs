//! The matrix: a line each way two commits can meet.
use super::*;
use crate::{
    change::Application,
    expr::{Cmp, ColumnPath, Scalar},
    file::{ColumnStats, DataFile, DeletePlace, FileKey},
    version::{AsOf, Millis, Ref, RefKind, Version},
};

fn file(path: &str) -> DataFile {
    DataFile::parquet(FilePath::below(path), 1)
}

fn key(path: &str) -> FileKey {
    FileKey { path: FilePath::below(path), vector: None }
}

fn intent(action: Action) -> Intent {
    Intent {
        action,
        operation: "TEST".to_owned(),
        parameters: Default::default(),
        metrics: Default::default(),
        branch: None,
        application: None,
        lineage: None,
        user_metadata: None,
    }
}

fn theirs(action: Action) -> VersionDelta {
    VersionDelta {
        version: Version { id: VersionId::new("7"), committed_at: Millis(0), parent: None, schema_id: None },
        write_id: None,
        applications: Vec::new(),
        action,
        native_action: String::new(),
        rows: RowDelta::default(),
        data_change: !matches!(action, Action::Compaction),
        blind_append: false,
        schema_changed: false,
        protocol_changed: false,
        claims: Vec::new(),
    }
}

/// A file that holds ids from `low` to `low + 9`.
fn ids(path: &str, low: i64) -> DataFile {
    let bounds =
        ColumnStats { lower: Some(Scalar::Int(low)), upper: Some(Scalar::Int(low + 9)), nulls: Some(0), exact: true };
    let mut file = file(path);
    file.stats.columns = vec![(ColumnPath::top("id"), bounds)];
    file
}

fn id_is(id: i64) -> Predicate {
    Predicate::Compare(ColumnPath::top("id"), Cmp::Eq, Scalar::Int(id))
}

fn vector(target: &str) -> DeleteFile {
    deletes(DeleteKind::Vector, &[target])
}

fn deletes(kind: DeleteKind, targets: &[&str]) -> DeleteFile {
    DeleteFile {
        kind,
        place: DeletePlace::File(FilePath::below("deletes")),
        id: None,
        targets: targets.iter().map(|it| FilePath::below(*it)).collect(),
        rows: None,
        native: Default::default(),
    }
}

fn equality() -> DeleteFile {
    deletes(DeleteKind::Equality { columns: vec![ColumnPath::top("id")] }, &[])
}

fn adds(files: Vec<DataFile>) -> RowDelta {
    RowDelta { added: files, ..RowDelta::default() }
}

/// Takes rows from `path` with a new vector, as Delta writes it.
fn marks(path: &str, old: Option<&str>) -> RowDelta {
    RowDelta {
        added: vec![file(path)],
        added_deletes: vec![vector(path)],
        removed: vec![FileKey { path: FilePath::below(path), vector: old.map(str::to_owned) }],
        ..RowDelta::default()
    }
}

/// Replaces `path` by `new`.
fn rewrites(path: &str, new: &str) -> RowDelta {
    RowDelta { added: vec![file(new)], removed: vec![key(path)], ..RowDelta::default() }
}

/// Leaves files alone and adds delete files, as Iceberg does.
fn deletes_only(delete: DeleteFile) -> RowDelta {
    RowDelta { added_deletes: vec![delete], ..RowDelta::default() }
}

#[derive(Clone, Copy)]
struct Us<'a> {
    action: Action,
    isolation: Isolation,
    read: Option<&'a Predicate>,
    read_files: Option<&'a [&'a str]>,
}

fn outcome(us: Us<'_>, changes: &[Change], theirs: &VersionDelta) -> String {
    let policy = ConflictPolicy { isolation: us.isolation, read: us.read.cloned(), claims: Vec::new(), retries: 0 };
    let files: Option<HashSet<FilePath>> = us.read_files.map(|it| it.iter().map(|it| FilePath::below(*it)).collect());
    let ours = Ours { intent: &intent(us.action), changes, read_files: files.as_ref() };
    match check(&ours, theirs, &policy) {
        Ok(()) => "ok".to_owned(),
        Err(conflict) => {
            let debug = format!("{conflict:?}");
            debug.split([' ', '{']).next().unwrap().to_owned()
        }
    }
}

#[test]
fn the_matrix_of_delta() {
    use Isolation::{Serializable, Snapshot, WriteSerializable};
    let five = id_is(5);
    let blind = |files| VersionDelta { rows: adds(files), blind_append: true, ..theirs(Action::Append) };
    let insert = |files| VersionDelta { rows: adds(files), ..theirs(Action::Append) };
    let dml = |rows| VersionDelta { rows, ..theirs(Action::RowDelta) };
    let compaction = |rows| VersionDelta { rows, ..theirs(Action::Compaction) };
    let metadata = VersionDelta { schema_changed: true, ..theirs(Action::Schema) };
    let protocol = VersionDelta { protocol_changed: true, ..theirs(Action::Schema) };

    let append = Us { action: Action::Append, isolation: Serializable, read: None, read_files: None };
    let writes =
        Us { action: Action::RowDelta, isolation: WriteSerializable, read: Some(&five), read_files: Some(&["a"]) };
    let serial = Us { isolation: Serializable, ..writes };
    let snapshot = Us { isolation: Snapshot, ..writes };
    let compacts =
        Us { action: Action::Compaction, isolation: Serializable, read: Some(&Predicate::True), read_files: None };
    let new = adds(vec![file("new")]);
    let rewrite = rewrites("a", "a2");

    for (name, us, ours, theirs, expected) in [
        // Blind appends.
        ("append, blind append", append, &new, blind(vec![ids("x", 0)]), "ok"),
        ("append, insert", append, &new, insert(vec![ids("x", 0)]), "ok"),
        ("append, delete", append, &new, dml(rewrites("a", "x")), "ok"),
        ("append, compaction", append, &new, compaction(rewrites("a", "x")), "ok"),
        ("append, metadata", append, &new, metadata.clone(), "SchemaChanged"),
        ("append, protocol", append, &new, protocol.clone(), "ProtocolChanged"),
        // Update, delete, merge under WriteSerializable.
        ("write, blind append that matches", writes, &rewrite, blind(vec![ids("x", 0)]), "ok"),
        ("write, insert that matches", writes, &rewrite, insert(vec![ids("x", 0)]), "PhantomRows"),
        ("write, insert that does not", writes, &rewrite, insert(vec![ids("x", 10)]), "ok"),
        ("write, insert without statistics", writes, &rewrite, insert(vec![file("x")]), "PhantomRows"),
        ("write, same file", writes, &rewrite, dml(rewrites("a", "x")), "RemovedTwice"),
        (
            "write, another file not read",
            writes,
            &rewrite,
            dml(RowDelta { removed: vec![key("b")], ..Default::default() }),
            "ok",
        ),
        (
            "write, rows of a file read",
            Us { read_files: Some(&["a", "b"]), ..writes },
            &rewrite,
            dml(marks("b", None)),
            "ReadRemoved",
        ),
        ("write, compaction of the file", writes, &rewrite, compaction(rewrites("a", "x")), "RemovedTwice"),
        ("write, compaction of others", writes, &rewrite, compaction(rewrites("b", "x")), "ok"),
        (
            "write, compaction of a file read only",
            Us { read_files: Some(&["a", "b"]), ..writes },
            &rewrite,
            compaction(rewrites("b", "x")),
            "ok",
        ),
        ("write, metadata", writes, &rewrite, metadata.clone(), "SchemaChanged"),
        ("write, protocol", writes, &rewrite, protocol.clone(), "ProtocolChanged"),
        // The same under Serializable.
        ("serial, blind append that matches", serial, &rewrite, blind(vec![ids("x", 0)]), "PhantomRows"),
        ("serial, blind append that does not", serial, &rewrite, blind(vec![ids("x", 10)]), "ok"),
        ("serial, insert that matches", serial, &rewrite, insert(vec![ids("x", 0)]), "PhantomRows"),
        ("serial, compaction adds nothing new", serial, &rewrite, compaction(adds(vec![ids("x", 0)])), "ok"),
        // Snapshot isolation looks at what is touched only.
        ("snapshot, insert that matches", snapshot, &rewrite, insert(vec![ids("x", 0)]), "ok"),
        (
            "snapshot, rows of a file read",
            Us { read_files: Some(&["b"]), ..snapshot },
            &rewrite,
            dml(marks("b", None)),
            "ok",
        ),
        ("snapshot, same file", snapshot, &rewrite, dml(rewrites("a", "x")), "RemovedTwice"),
        // Compaction holds whatever the policy says it read.
        ("compaction, blind append", compacts, &rewrite, blind(vec![file("x")]), "ok"),
        ("compaction, insert", compacts, &rewrite, insert(vec![file("x")]), "ok"),
        ("compaction, delete elsewhere", compacts, &rewrite, dml(rewrites("b", "x")), "ok"),
        ("compaction, delete of its input", compacts, &rewrite, dml(rewrites("a", "x")), "RemovedTwice"),
        ("compaction, vector on its input", compacts, &rewrite, dml(marks("a", None)), "DeleteWouldBeLost"),
        ("compaction, same files", compacts, &rewrite, compaction(rewrites("a", "x")), "RemovedTwice"),
        ("compaction, metadata", compacts, &rewrite, metadata.clone(), "SchemaChanged"),
    ] {
        assert_eq!(outcome(us, &[Change::Rows(ours.clone())], &theirs), expected, "{name}");
    }
}

#[test]
fn deletions_are_never_lost_and_rows_never_deleted_twice() {
    let us = Us { action: Action::RowDelta, isolation: Isolation::Snapshot, read: None, read_files: None };
    let positions = |targets: &[&str]| deletes_only(deletes(DeleteKind::Positions, targets));
    let removes = RowDelta { removed: vec![key("a")], ..RowDelta::default() };
    for (name, ours, theirs_rows, data_change, expected) in [
        ("two vectors on one file", marks("a", None), marks("a", None), true, "VectorReplaced"),
        ("two vectors, one replaces another", marks("a", Some("v1")), marks("a", Some("v1")), true, "VectorReplaced"),
        ("vectors on two files", marks("a", None), marks("b", None), true, "ok"),
        ("vector on a file that is gone", marks("a", None), removes.clone(), true, "RemovedTwice"),
        ("rewrite of a file that got a vector", rewrites("a", "x"), marks("a", None), true, "DeleteWouldBeLost"),
        ("removal of a file that got a vector", removes.clone(), marks("a", None), true, "DeleteWouldBeLost"),
        // Iceberg: data files stay, delete files come.
        ("vector file, file gone", deletes_only(vector("a")), removes.clone(), true, "TargetRemoved"),
        ("vector file, file compacted", deletes_only(vector("a")), rewrites("a", "x"), false, "TargetRemoved"),
        ("two vector files", deletes_only(vector("a")), deletes_only(vector("a")), true, "VectorReplaced"),
        ("two position files on one file", positions(&["a"]), positions(&["a"]), true, "DeletedTwice"),
        ("two position files on two files", positions(&["a"]), positions(&["b"]), true, "ok"),
        ("rewrite, position file", rewrites("a", "x"), positions(&["a"]), true, "DeleteWouldBeLost"),
        ("rewrite, position file elsewhere", rewrites("a", "x"), positions(&["b"]), true, "ok"),
        ("rewrite, position file rewritten", rewrites("a", "x"), positions(&["a"]), false, "ok"),
        ("position file anywhere, file gone", positions(&[]), removes.clone(), true, "TargetRemoved"),
        ("rewrite, positions anywhere", rewrites("a", "x"), positions(&[]), true, "DeleteWouldBeLost"),
        ("rewrite, equality delete", rewrites("a", "x"), deletes_only(equality()), true, "DeleteWouldBeLost"),
        ("vector, equality delete", marks("a", None), deletes_only(equality()), true, "ok"),
        ("equality delete, file compacted", deletes_only(equality()), rewrites("a", "x"), false, "ok"),
        ("two equality deletes", deletes_only(equality()), deletes_only(equality()), true, "ok"),
    ] {
        let theirs = VersionDelta { rows: theirs_rows, data_change, ..theirs(Action::RowDelta) };
        assert_eq!(outcome(us, &[Change::Rows(ours)], &theirs), expected, "{name}");
    }
    let merges_deletes = RowDelta { removed_deletes: vec![key("d1")], ..RowDelta::default() };
    let both = VersionDelta { rows: merges_deletes.clone(), ..theirs(Action::Compaction) };
    assert_eq!(outcome(us, &[Change::Rows(merges_deletes)], &both), "RemovedTwice");
}

#[test]
fn what_nobody_looked_up_counts_as_read() {
    let us = Us {
        action: Action::Append,
        isolation: Isolation::WriteSerializable,
        read: Some(&Predicate::True),
        read_files: None,
    };
    let new = [Change::Rows(adds(vec![file("new")]))];
    let gone =
        VersionDelta { rows: RowDelta { removed: vec![key("z")], ..Default::default() }, ..theirs(Action::Delete) };
    assert_eq!(outcome(us, &new, &gone), "ReadRemoved");
    assert_eq!(outcome(Us { read_files: Some(&[]), ..us }, &new, &gone), "ok");
    assert_eq!(outcome(Us { read: None, ..us }, &new, &gone), "ok");
    let anywhere = VersionDelta { rows: deletes_only(equality()), ..theirs(Action::Delete) };
    assert_eq!(outcome(Us { read_files: Some(&[]), ..us }, &new, &anywhere), "ReadRemoved");
    let policy = ConflictPolicy { isolation: us.isolation, read: us.read.cloned(), claims: vec![], retries: 0 };
    let ours = Ours { intent: &intent(us.action), changes: &new, read_files: None };
    assert!(asks_for_read_files(&ours, &gone, &policy));
    assert!(!asks_for_read_files(&ours, &VersionDelta { data_change: false, ..gone }, &policy));
    assert!(!asks_for_read_files(&ours, &theirs(Action::Append), &policy));
}

#[test]
fn metadata_restores_and_refs() {
    let blind = VersionDelta { rows: adds(vec![file("x")]), blind_append: true, ..theirs(Action::Append) };
    let schema = VersionDelta { schema_changed: true, ..theirs(Action::Schema) };
    let protocol = VersionDelta { protocol_changed: true, ..theirs(Action::Schema) };
    let us = Us {
        action: Action::Schema,
        isolation: Isolation::WriteSerializable,
        read: Some(&Predicate::True),
        read_files: Some(&[]),
    };
    let constraint = [Change::AddConstraint { name: "c".into(), expression: "id > 0".into() }];
    assert_eq!(outcome(us, &constraint, &blind), "PhantomRows", "a blind append may break the new constraint");
    assert_eq!(outcome(Us { read: None, ..us }, &constraint, &blind), "ok");
    let restore = [Change::Restore(AsOf::Latest)];
    let snapshot = Us { isolation: Isolation::Snapshot, read: None, ..us };
    assert_eq!(outcome(snapshot, &restore, &blind), "PhantomRows", "a restore would undo it in silence");
    assert_eq!(outcome(snapshot, &restore, &theirs(Action::Compaction)), "ok");
    let tag =
        Ref { name: "t".into(), kind: RefKind::Tag, version: VersionId::new("1"), created_at: None, expires_at: None };
    let refs = [Change::PutRef(tag), Change::DropRef("u".into())];
    assert_eq!(outcome(us, &refs, &schema), "ok");
    assert_eq!(outcome(us, &refs, &protocol), "ProtocolChanged");
}

#[test]
fn applications_and_claims() {
    let mut ours = intent(Action::Append);
    ours.application = Some(Application { id: "job".into(), version: 3 });
    let claim = Claim::Bucket { partition: "p=1".into(), bucket: 4 };
    let policy = ConflictPolicy { isolation: Isolation::Snapshot, read: None, claims: vec![claim.clone()], retries: 0 };
    let ours = Ours { intent: &ours, changes: &[], read_files: None };
    let job = |id: &str| VersionDelta {
        applications: vec![Application { id: id.into(), version: 1 }],
        ..theirs(Action::Append)
    };
    assert_eq!(check(&ours, &job("other"), &policy), Ok(()));
    let same = check(&ours, &job("job"), &policy).unwrap_err();
    assert_eq!(same.to_string(), "version 7 was also written by application `job`; give each job its own appId");
    let claims = |bucket| VersionDelta {
        claims: vec![Claim::Bucket { partition: "p=1".into(), bucket }],
        ..theirs(Action::Append)
    };
    assert_eq!(check(&ours, &claims(5), &policy), Ok(()));
    assert_eq!(check(&ours, &claims(4), &policy), Err(Conflict::ClaimedTwice { by: VersionId::new("7"), claim }));
}
