//! The live files of a version, as a commit removes them.
use futures::TryStreamExt;
use lakebed_core::{
    Error, Result,
    expr::Predicate,
    file::{DeleteKind, FileKey},
    scan::{Merge, Scan, ScanTask},
    table::Snapshot,
};

/// The tasks of the files that may hold rows of `predicate`, without statistics.
pub(crate) async fn tasks_of(base: &dyn Snapshot, predicate: Predicate) -> Result<Vec<ScanTask>> {
    base.tasks(&Scan { predicate, statistics: false, ..Scan::all() }).try_collect().await
}

/// The files of `tasks` as a commit removes them.
///
/// # Errors
/// Unsupported where rows are deleted in ways this build does not write.
pub(crate) fn live_files(tasks: &[ScanTask]) -> Result<Vec<FileKey>> {
    let mut keys = Vec::new();
    for task in tasks {
        if !matches!(task.merge, Merge::Concat) || task.deletes.iter().any(|it| it.kind != DeleteKind::Vector) {
            return Err(Error::unsupported("this build does not replace files that others delete rows of by key"));
        }
        for file in &task.files {
            let vector = task.deletes.iter().find(|it| it.targets.contains(&file.path));
            keys.push(FileKey { path: file.path.clone(), vector: vector.and_then(|it| it.id.clone()) });
        }
    }
    Ok(keys)
}
