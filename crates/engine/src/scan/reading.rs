//! What one scan reads: tasks, and for change feeds what became of their rows.
use std::sync::Arc;

use lakebed_core::{
    change::{ChangeKind, ChangeTask},
    scan::ScanTask,
    version::Version,
};
use roaring::RoaringTreemap;

/// A task and what is said of all its rows.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub task: ScanTask,
    pub change: Option<(ChangeKind, Version)>,
    /// The number a statement that changes rows knows the task's file by.
    pub number: Option<i32>,
    pub part: Part,
}

/// Which of a file's rows are read, of those that its vectors leave.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Part {
    #[default]
    Whole,
    Only(Arc<RoaringTreemap>),
    Without(Arc<RoaringTreemap>),
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
        Self { task, change: None, number: None, part: Part::Whole }
    }
}

impl From<ChangeTask> for Reading {
    fn from(change: ChangeTask) -> Self {
        Self { change: Some((change.kind, change.version)), ..Self::from(change.task) }
    }
}
