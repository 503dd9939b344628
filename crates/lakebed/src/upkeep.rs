//! Upkeep as doors do it: a plan first, to be read, and carried out exactly as it is.
//!
//! A plan has an id made of what it would do. A caller who saw one can ask for that very plan ([`Prepared::check`]): where
//! the plan made now is another one, nothing is done. While it is carried out, [`maintain::run`] reads head and refs again
//! before each batch of deletes.
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use lakebed_core::{
    Error, ErrorKind, Result,
    maintain::{self, Applied, Body, Maintenance, MaintenancePlan, Step},
    path::FilePath,
};

use crate::change::Changer;

/// A plan, and what it is called.
#[derive(Debug)]
pub struct Prepared {
    pub plan: MaintenancePlan,
    /// Equal for plans that do the same on the same version, within one build of Lakebed.
    pub id: String,
}

/// One thing that a plan would do to one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub act: Act,
    /// `None` for a publish that is no object.
    pub path: Option<FilePath>,
    /// `None` where nobody knows yet.
    pub bytes: Option<u64>,
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    Delete,
    Write,
    Rewrite,
    Publish,
}

impl Act {
    /// The word for tables and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Write => "write",
            Self::Rewrite => "rewrite",
            Self::Publish => "publish",
        }
    }
}

/// Sums over the lines of one act.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    pub files: u64,
    /// Of those whose size is known.
    pub bytes: u64,
}

impl Changer<'_> {
    /// Makes the plan of `action`; nothing is changed.
    pub async fn prepare(&self, action: &Maintenance) -> Result<Prepared> {
        let plan = self.table.plan(action).await?;
        let id = id_of(&plan);
        Ok(Prepared { plan, id })
    }

    /// Carries out a plan.
    ///
    /// # Errors
    /// As [`maintain::run`].
    pub async fn apply(&self, prepared: Prepared) -> Result<Applied> {
        maintain::run(self.table, self.publisher, self.env, prepared.plan).await
    }
}

impl Prepared {
    /// # Errors
    /// [`ErrorKind::Refused`] where this is another plan than the one that `wanted` names.
    pub fn check(&self, wanted: &str) -> Result<()> {
        if wanted == self.id {
            return Ok(());
        }
        let message =
            format!("plan {} is out of date: the table or its files changed since it was made", wanted.escape_debug());
        Err(Error::new(ErrorKind::Refused, message)
            .with_hint(format!("nothing was done; look at the plan of now, {}, and apply that", self.id)))
    }

    /// Everything the plan would do, in its order.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut group = 0;
        for step in &self.plan.steps {
            match step {
                Step::Delete(batch) => lines.extend(batch.iter().map(|it| Line {
                    act: Act::Delete,
                    path: Some(it.path.clone()),
                    bytes: it.bytes,
                    why: it.why.clone(),
                })),
                Step::Write { path, body } => lines.push(Line {
                    act: Act::Write,
                    path: Some(FilePath::below(path.as_str())),
                    bytes: size_of(body),
                    why: String::new(),
                }),
                Step::Rewrite(tasks) => {
                    group += 1;
                    lines.extend(tasks.iter().flat_map(|it| &it.files).map(|it| Line {
                        act: Act::Rewrite,
                        path: Some(it.path.clone()),
                        bytes: Some(it.bytes),
                        why: format!("together with its neighbours, group {group}"),
                    }));
                }
                Step::Publish(publish) => lines.push(published(publish)),
            }
        }
        lines
    }

    /// What the lines of `act` come to.
    pub fn sum(&self, act: Act) -> Sum {
        let lines = self.lines().into_iter().filter(|it| it.act == act);
        lines.fold(Sum::default(), |sum, it| Sum {
            files: sum.files + 1,
            bytes: sum.bytes.saturating_add(it.bytes.unwrap_or(0)),
        })
    }

    pub fn is_empty(&self) -> bool {
        self.plan.steps.is_empty()
    }
}

fn size_of(body: &Body) -> Option<u64> {
    match body {
        Body::Bytes(bytes) => u64::try_from(bytes.len()).ok(),
        Body::Stream(_) => None,
    }
}

fn published(publish: &lakebed_core::commit::Publish) -> Line {
    use lakebed_core::commit::Publish;
    let (path, bytes) = match publish {
        Publish::Create { path, body } => (Some(FilePath::below(path.as_str())), u64::try_from(body.len()).ok()),
        Publish::Swap { .. } | Publish::Request(_) => (None, None),
    };
    Line { act: Act::Publish, path, bytes, why: String::new() }
}

/// A digest of what the plan would do, not of the sentences that say why: those tell ages.
fn id_of(plan: &MaintenancePlan) -> String {
    let mut hasher = DefaultHasher::new();
    plan.head.as_ref().map(lakebed_core::version::VersionId::as_str).hash(&mut hasher);
    for step in &plan.steps {
        match step {
            Step::Delete(batch) => batch.iter().for_each(|it| (Act::Delete, &it.path, it.bytes).hash(&mut hasher)),
            Step::Write { path, .. } => (Act::Write, path).hash(&mut hasher),
            Step::Rewrite(tasks) => {
                (Act::Rewrite, tasks.len()).hash(&mut hasher);
                tasks.iter().flat_map(|it| &it.files).for_each(|it| it.path.hash(&mut hasher));
            }
            Step::Publish(_) => Act::Publish.hash(&mut hasher),
        }
    }
    format!("{:012x}", hasher.finish() & 0xffff_ffff_ffff)
}
