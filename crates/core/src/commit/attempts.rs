//! The loop of a commit; its steps stand in the parent module.
use std::{collections::HashSet, sync::Arc, time::Duration};

use futures::TryStreamExt;

use super::{Committed, Lease, Publish, Publisher, Staged, Write};
use crate::{
    Error, ErrorKind, Result,
    change::{Change, VersionDelta},
    conflict::{self, Clash, ConflictPolicy, Ours},
    env::Env,
    path::FilePath,
    scan::Scan,
    storage::Put,
    table::{Snapshot, Table},
    version::{AsOf, Span, Version},
};

const FIRST_PAUSE_MS: u64 = 20;
/// Pauses double until then: 5 s.
const DOUBLINGS: u32 = 8;

/// Commits `changes`, rebasing over other writers as long as `policy` allows.
///
/// Calling it again with the same `write` is safe after [`ErrorKind::Unknown`] and [`ErrorKind::Unavailable`]: it finds
/// the first commit or makes it.
///
/// # Errors
/// [`ErrorKind::Conflict`] if a version committed since `write.base` breaks `policy`, or the retries are used up;
/// [`ErrorKind::Unknown`] if the outcome of the last attempt could not be learned; then the table may hold the commit,
/// and no file of it may be deleted. After every other error the table is unchanged, and the write abandoned unless it is
/// [`ErrorKind::Unavailable`].
pub async fn commit(
    table: &dyn Table,
    publisher: &dyn Publisher,
    env: &Env,
    write: &Write,
    changes: &[Change],
    policy: &ConflictPolicy,
) -> Result<Committed> {
    let base = Arc::clone(&write.base);
    let mut attempts = Attempts {
        table,
        publisher,
        env,
        write,
        changes,
        policy,
        base,
        rebased: 0,
        winner: None,
        published: 0,
        open: false,
    };
    let err = match attempts.run().await {
        Ok(committed) => {
            table.committed(write, &committed);
            return Ok(committed);
        }
        Err(err) => err,
    };
    if attempts.open {
        // One that says itself what to do next is not explained again.
        let explained = err.kind() == ErrorKind::Unknown && err.hint().is_some();
        return Err(if explained { err } else { unknown(write, &err) });
    }
    // Storage that does not answer may do so later: the write can be tried again.
    if err.kind() != ErrorKind::Unavailable
        && let Err(left) = table.abandon(write).await
    {
        tracing::warn!(write = %write.id, err = %left, "an abandoned write leaves traces");
    }
    Err(err)
}

struct Attempts<'a> {
    table: &'a dyn Table,
    publisher: &'a dyn Publisher,
    env: &'a Env,
    write: &'a Write,
    changes: &'a [Change],
    policy: &'a ConflictPolicy,
    /// What the commit stands on: `write.base`, or the last version checked.
    base: Arc<dyn Snapshot>,
    rebased: u32,
    /// What the last version of others that this commit could follow was.
    winner: Option<String>,
    published: u32,
    /// Something was sent whose slot is neither ours nor another's yet.
    open: bool,
}

/// What lies after the base.
enum Since {
    Ours(Version),
    /// Versions of others, all of which leave our commit standing; the base moved to the last of them.
    Others,
    Nothing,
}

impl Attempts<'_> {
    async fn run(&mut self) -> Result<Committed> {
        while self.may_publish() {
            let lease = self.table.lease(self.write).await?;
            let attempted = self.attempt(lease.as_deref()).await;
            if let Some(lease) = lease
                && let Err(err) = lease.release().await
            {
                tracing::warn!(write = %self.write.id, %err, "the lease was not released; it expires");
            }
            if let Some(committed) = attempted? {
                return Ok(committed);
            }
        }
        let operation = &self.write.intent.operation;
        let last = self.winner.as_ref().map(|it| format!(", last to {it}")).unwrap_or_default();
        let message = format!("{operation} lost {} times to other writers{last}", self.published);
        Err(Error::new(ErrorKind::Conflict, message).with_hint("run it again, or raise the number of retries"))
    }

    fn may_publish(&self) -> bool {
        self.published <= self.policy.retries
    }

    /// One staging, published until its slot is somebody's. `None`: not ours, or the retries are used up.
    async fn attempt(&mut self, lease: Option<&dyn Lease>) -> Result<Option<Committed>> {
        if (lease.is_some() || self.published > 0)
            && let Since::Ours(version) = self.look(lease).await?
        {
            return Ok(Some(self.committed(version)));
        }
        let staged = self.table.stage(self.write, self.base.as_ref(), self.changes).await?;
        self.assert_publishable(&staged);
        while self.may_publish() {
            if let Some(lease) = lease
                && !lease.still_held().await?
            {
                // With something sent, only its own slot can tell, and that may stay silent.
                self.published += 1;
                return if self.open { Err(lost_lease()) } else { Ok(None) };
            }
            if self.publish(&staged).await? {
                return Ok(Some(self.committed(staged.version)));
            }
            self.env.clock.sleep(self.pause()).await;
            match self.look(lease).await? {
                Since::Ours(version) => return Ok(Some(self.committed(version))),
                Since::Others => return Ok(None),
                Since::Nothing => (),
            }
        }
        Ok(if self.settle(&staged).await? { Some(self.committed(staged.version)) } else { None })
    }

    /// Looks into the slot itself, when the retries are used up and no listing showed whose it is. Whether it is ours.
    async fn settle(&mut self, staged: &Staged) -> Result<bool> {
        let Publish::Create { path, body } = &staged.publish else { return Ok(false) };
        if !self.open {
            return Ok(false);
        }
        let Some(there) = self.table.storage().read(&FilePath::below(path.as_str())).await? else { return Ok(false) };
        // Equal bytes prove it only where they carry what no other write has.
        let id = self.write.id.as_bytes();
        let ours = there == *body && !id.is_empty() && body.windows(id.len()).any(|it| it == id);
        self.open = there == *body && !ours;
        Ok(ours)
    }

    /// Whether the slot is surely ours.
    async fn publish(&mut self, staged: &Staged) -> Result<bool> {
        self.published += 1;
        match self.publisher.publish(self.table.storage(), &staged.publish).await {
            Ok(Put::Won) => self.confirm(staged).await,
            // Even "lost" may be our own first try, met by a client's second.
            Ok(Put::Lost | Put::Unknown) => {
                self.open = true;
                Ok(false)
            }
            // Refused before anything was sent; what was sent earlier is still out there, and looked for.
            Err(err) if self.open => {
                tracing::warn!(write = %self.write.id, %err, "the second try of a commit was refused");
                Ok(false)
            }
            Err(err) => Err(err),
        }
    }

    /// Whether the slot that was won is one that readers see. What could not be learned now is looked for like a lost answer.
    async fn confirm(&mut self, staged: &Staged) -> Result<bool> {
        let confirmed = self.table.confirm(staged).await;
        self.open = confirmed.is_err();
        match confirmed {
            Ok(()) => Ok(true),
            Err(err) if err.kind() == ErrorKind::Unknown => Err(err),
            Err(err) => {
                tracing::warn!(write = %self.write.id, %err, "a commit that won could not be looked at");
                Ok(false)
            }
        }
    }

    /// Reads what was committed since the base; checks it, and makes it the base.
    async fn look(&mut self, lease: Option<&dyn Lease>) -> Result<Since> {
        let span = Span { after: Some(self.base.version().id.clone()), until: AsOf::Latest };
        let theirs: Vec<VersionDelta> = match self.table.changes(&span).try_collect().await {
            // A table was made where ours should be: the slot is its, and this write has nowhere to go.
            Err(err) if err.kind() == ErrorKind::AlreadyExists => {
                self.open = false;
                return Err(err);
            }
            read => read?,
        };
        if let Some(ours) = theirs.iter().find(|it| it.write_id.as_ref() == Some(&self.write.id)) {
            self.open = false;
            return Ok(Since::Ours(ours.version.clone()));
        }
        let Some(last) = theirs.last() else { return Ok(Since::Nothing) };
        if lease.is_none() {
            // The slot was the one after the base, and it is another's.
            self.open = false;
        } else if self.open {
            return Err(Error::new(ErrorKind::Unknown, "another writer committed while this one held the lease"));
        }
        self.check(&theirs).await?;
        self.base = self.table.snapshot(&AsOf::Version(last.version.id.clone())).await?;
        assert_eq!(self.base.version().id, last.version.id, "a snapshot must be of the version asked for");
        self.rebased += 1;
        self.winner = Some(format!("{} of version {}", last.native_action, last.version.id));
        Ok(Since::Others)
    }

    async fn check(&self, theirs: &[VersionDelta]) -> Result<()> {
        let ours = Ours { intent: &self.write.intent, changes: self.changes, read_files: None };
        let asked = theirs.iter().any(|it| conflict::asks_for_read_files(&ours, it, self.policy));
        let read = if asked { Some(self.read_files(theirs).await?) } else { None };
        let ours = Ours { read_files: read.as_ref(), ..ours };
        theirs.iter().try_for_each(|it| {
            conflict::check(&ours, it, self.policy).map_err(|why| {
                Error::new(ErrorKind::Conflict, Clash::new(&ours, it, why))
                    .with_hint("nothing was committed: read the table again and redo the change")
            })
        })
    }

    /// Of the files that `theirs` removed or took rows from, those the writer had read from its own base.
    async fn read_files(&self, theirs: &[VersionDelta]) -> Result<HashSet<FilePath>> {
        let removed = theirs.iter().flat_map(|it| it.rows.removed.iter().map(|it| &it.path));
        let targets = theirs.iter().flat_map(|it| it.rows.added_deletes.iter().flat_map(|it| &it.targets));
        let wanted: HashSet<&FilePath> = removed.chain(targets).collect();
        // A restore reads everything, whatever the policy says.
        let predicate = match self.changes.iter().any(|it| matches!(it, Change::Restore(_))) {
            true => crate::expr::Predicate::True,
            false => self.policy.read.clone().unwrap_or(crate::expr::Predicate::True),
        };
        let mut tasks = self.write.base.tasks(&Scan { predicate, statistics: false, ..Scan::all() });
        let mut read = HashSet::new();
        while let Some(task) = tasks.try_next().await? {
            read.extend(task.files.into_iter().map(|it| it.path).filter(|it| wanted.contains(it)));
        }
        Ok(read)
    }

    /// Bugs of a format that would publish nonsense, found before anybody sees it.
    fn assert_publishable(&self, staged: &Staged) {
        let base = &self.base.version().id;
        assert_ne!(staged.version.id, *base, "a staged version must not be its own base");
        if let Publish::Create { path, body } = &staged.publish {
            assert!(!path.is_empty() && !body.is_empty(), "version {} would be an empty object", staged.version.id);
        }
    }

    fn committed(&self, version: Version) -> Committed {
        Committed { version, rebased: self.rebased }
    }

    /// Between half and all of a span that doubles with each try: writers that met once do not meet again.
    fn pause(&self) -> Duration {
        let span = FIRST_PAUSE_MS << self.published.saturating_sub(1).min(DOUBLINGS);
        let half = u128::from(span / 2);
        let dice = u64::try_from(self.env.ids.uuid() % (half + 1)).unwrap_or(0);
        Duration::from_millis(span / 2 + dice)
    }
}

fn lost_lease() -> Error {
    Error::new(ErrorKind::Unknown, "the lease was lost while a commit was under way")
}

fn unknown(write: &Write, cause: &Error) -> Error {
    let message = match cause.kind() {
        ErrorKind::Conflict => "storage did not say whether the commit landed".to_owned(),
        _ => format!("storage did not say whether the commit landed: {cause}"),
    };
    Error::new(ErrorKind::Unknown, message).with_hint(format!(
        "look in the table's log for a version with write id {} before writing again; delete none of its files",
        write.id
    ))
}
