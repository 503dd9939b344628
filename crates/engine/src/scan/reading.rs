//! What one scan reads: tasks, and for change feeds what became of their rows.
use lakebed_core::{
    change::{ChangeKind, ChangeTask},
    scan::ScanTask,
    version::Version,
};

/// A task and what is said of all its rows.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub task: ScanTask,
    pub change: Option<(ChangeKind, Version)>,
}

impl Reading {
    /// The file column that tells the kind of change row by row.
    pub(crate) fn change_column(&self) -> Option<&str> {
        match &self.change {
            Some((ChangeKind::InColumn(column), _)) => Some(column),
            _ => None,
        }
    }
}

impl From<ScanTask> for Reading {
    fn from(task: ScanTask) -> Self {
        Self { task, change: None }
    }
}

impl From<ChangeTask> for Reading {
    fn from(change: ChangeTask) -> Self {
        Self { task: change.task, change: Some((change.kind, change.version)) }
    }
}
