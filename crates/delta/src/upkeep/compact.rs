//! Finding small files that belong together.
//!
//! 1. Candidates are files smaller than the target, and files of which more than a twentieth of the rows is gone.
//! 2. Within a partition they are put into bins, smallest first; a bin that would grow past the target is closed.
//! 3. A bin is worth rewriting if it has two files, or one with many rows gone.
//!
//! A filter may name partition columns only: it chooses whole partitions, and no row is left out of a rewrite.
use std::{collections::BTreeMap, sync::Arc};

use futures::TryStreamExt;
use lakebed_core::{
    Error, Result,
    expr::{ColumnPath, Predicate},
    maintain::{MaintenancePlan, Step},
    scan::{Scan, ScanTask},
    table::Snapshot,
};

use crate::{properties::Properties, prune, snapshot::DeltaSnapshot, state::State, write};

/// How large files become where nobody says.
const TARGET_BYTES: u64 = 1 << 30;
/// One row in so many may be gone before the file is written anew.
const GONE_ONE_IN: u64 = 20;

pub(super) async fn plan(state: &Arc<State>, filter: &Predicate, target: Option<u64>) -> Result<MaintenancePlan> {
    let own = Properties(&state.metadata.configuration).bytes("delta.targetFileSize")?;
    let target = target.or(own).unwrap_or(TARGET_BYTES).max(1);
    let snapshot = DeltaSnapshot::new(Arc::clone(state))?;
    write::rules::check(&state.protocol, &state.metadata, &snapshot.schema)?;
    check_filter(&snapshot, filter)?;
    let scan = Scan { predicate: filter.clone(), projection: Some(Vec::new()), statistics: true, ..Scan::all() };
    let mut partitions: BTreeMap<String, Vec<Candidate>> = BTreeMap::new();
    let mut tasks = snapshot.tasks(&scan);
    while let Some(task) = tasks.try_next().await? {
        if let Some(candidate) = Candidate::of(task, target) {
            partitions.entry(candidate.partition()).or_default().push(candidate);
        }
    }
    let (mut steps, mut files) = (Vec::new(), 0);
    for candidates in partitions.into_values() {
        for bin in bins(candidates, target) {
            files += bin.len();
            steps.push(Step::Rewrite(bin.into_iter().map(|it| it.task).collect()));
        }
    }
    let mut plan = MaintenancePlan { steps, ..MaintenancePlan::default() };
    if files > 0 {
        plan.notes.push(format!("{files} files become about {}", plan.steps.len()));
    }
    Ok(plan)
}

fn check_filter(snapshot: &DeltaSnapshot, filter: &Predicate) -> Result<()> {
    let mut named = std::collections::BTreeSet::new();
    prune::columns(filter, &mut named);
    let partition: Vec<&ColumnPath> = snapshot.layout().partition.iter().map(|it| &it.source).collect();
    match named.iter().find(|it| !partition.contains(it)) {
        Some(other) => Err(Error::invalid(format!("`{other}` does not partition the table"))
            .with_hint("a compaction chooses whole partitions: name partition columns only")),
        None => Ok(()),
    }
}

struct Candidate {
    task: ScanTask,
    bytes: u64,
    /// Many of its rows are gone.
    sparse: bool,
}

impl Candidate {
    fn of(mut task: ScanTask, target: u64) -> Option<Self> {
        let file = task.files.first()?;
        let gone: u64 = task.deletes.iter().map(|it| it.rows.unwrap_or(0)).fold(0, u64::saturating_add);
        let sparse = gone > 0 && file.stats.rows.is_none_or(|rows| gone.saturating_mul(GONE_ONE_IN) > rows);
        let bytes = file.bytes;
        // What chose the file must not choose among its rows.
        task.residual = Predicate::True;
        (sparse || bytes < target).then_some(Self { task, bytes, sparse })
    }

    fn partition(&self) -> String {
        self.task.files.first().map(|it| format!("{:?}", it.partition)).unwrap_or_default()
    }
}

fn bins(mut candidates: Vec<Candidate>, target: u64) -> Vec<Vec<Candidate>> {
    candidates.sort_by(|a, b| (a.bytes, &a.task.files[0].path).cmp(&(b.bytes, &b.task.files[0].path)));
    let mut bins: Vec<(u64, Vec<Candidate>)> = Vec::new();
    for candidate in candidates {
        match bins.last_mut() {
            Some((bytes, bin)) if bytes.saturating_add(candidate.bytes) <= target => {
                *bytes += candidate.bytes;
                bin.push(candidate);
            }
            _ => bins.push((candidate.bytes, vec![candidate])),
        }
    }
    let worth = |bin: &Vec<Candidate>| bin.len() > 1 || bin.iter().any(|it| it.sparse);
    bins.into_iter().map(|it| it.1).filter(worth).collect()
}
