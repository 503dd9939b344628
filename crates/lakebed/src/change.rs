//! Changes that need no rows: tags, and going back to an earlier version.
//!
//! Each is one commit through [`commit::commit`], and afterwards what the table's own properties say is due. A tag is made
//! so that two writers never both make one name: the commit claims the place where tags are kept, and who loses begins
//! again, with the names of then.
use std::collections::BTreeMap;

use lakebed_core::{
    Error, ErrorKind, Result,
    change::{Change, Claim},
    commit::{self, Committed, Intent, Publisher, Write},
    conflict::{ConflictPolicy, Isolation},
    env::Env,
    expr::Predicate,
    maintain,
    rev::check_ref_name,
    table::Table,
    timeline::Action,
    version::{AsOf, Millis, Ref, RefKind, VersionId},
};

pub use self::restore::{Fate, Return, Returning};
use crate::{Lakebed, Opened};

mod restore;

/// How often a commit is rebased over other writers.
const RETRIES: u32 = 20;
/// How often a change of tags begins again because somebody else changed them.
const TRIES: u32 = 10;

/// A tag to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTag {
    pub name: String,
    pub version: VersionId,
    pub expires_at: Option<Millis>,
    pub upgrade: Upgrade,
}

/// Whether a table may be upgraded for what is asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upgrade {
    Refused,
    Agreed,
}

/// A change that is committed.
#[derive(Debug, Clone)]
pub struct Changed {
    pub committed: Committed,
    /// What a careful reader should know: who does not respect it.
    pub notes: Vec<String>,
}

/// Changes one table.
#[derive(Debug, Clone, Copy)]
pub struct Changer<'a> {
    pub(crate) table: &'a dyn Table,
    pub(crate) publisher: &'a dyn Publisher,
    pub(crate) env: &'a Env,
}

impl Lakebed {
    /// # Errors
    /// [`ErrorKind::Refused`] where writes are switched off.
    pub fn changer<'a>(&'a self, on: &'a Opened) -> Result<Changer<'a>> {
        self.stores.check_writes()?;
        Ok(self.planner(on))
    }

    /// [`Self::changer`] for what only looks.
    pub fn planner<'a>(&'a self, on: &'a Opened) -> Changer<'a> {
        Changer { table: on.table.as_ref(), publisher: on.publisher.as_ref(), env: &self.env }
    }
}

impl Changer<'_> {
    /// Makes a tag.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a name that could be taken for something else; [`ErrorKind::AlreadyExists`];
    /// [`ErrorKind::Refused`] for a table that has to be upgraded first; everything of [`commit::commit`].
    pub async fn create_tag(&self, tag: &NewTag) -> Result<Changed> {
        check_ref_name(&tag.name)?;
        for _ in 1..TRIES {
            match self.try_create_tag(tag).await {
                // Somebody else was first with the same claim.
                Err(err) if err.kind() == ErrorKind::Conflict => (),
                done => return done,
            }
        }
        self.try_create_tag(tag).await
    }

    /// Drops a tag; the version it named. What the tag alone kept is garbage from now on.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], with the nearest name; everything of [`commit::commit`].
    pub async fn drop_tag(&self, name: &str) -> Result<(Changed, VersionId)> {
        for _ in 1..TRIES {
            match self.try_drop_tag(name).await {
                Err(err) if err.kind() == ErrorKind::Conflict => (),
                done => return done,
            }
        }
        self.try_drop_tag(name).await
    }

    async fn try_create_tag(&self, tag: &NewTag) -> Result<Changed> {
        let parameters = [("name", tag.name.clone()), ("version", tag.version.to_string())];
        let write = self.table.begin(intent(Action::Ref, "CREATE TAG", parameters)).await?;
        let prepared = self.prepare_tag(&write, tag).await;
        let (changes, claims, notes) = self.or_abandon(&write, prepared).await?;
        let committed = self.commit(&write, &changes, policy(claims)).await?;
        Ok(Changed { committed, notes })
    }

    async fn prepare_tag(&self, write: &Write, tag: &NewTag) -> Result<(Vec<Change>, Vec<Claim>, Vec<String>)> {
        let rules = write.base.ref_rules()?;
        let refs = self.table.refs().await?;
        if let Some(there) = refs.iter().find(|it| it.name.to_lowercase() == tag.name.to_lowercase()) {
            return Err(taken(there, tag));
        }
        // A version that is forgotten has no files to keep.
        self.table.resolve(&AsOf::Version(tag.version.clone())).await?;
        let mut changes = Vec::new();
        let mut notes = Vec::new();
        if !rules.missing.is_empty() {
            if tag.upgrade == Upgrade::Refused {
                return Err(needs_upgrade(&rules.missing, rules.upgrade_costs.as_deref()));
            }
            notes.extend(rules.upgrade_costs.map(|it| format!("the table was upgraded: {it}")));
            changes.push(Change::Upgrade { features: rules.missing });
        }
        notes.extend(rules.caution);
        changes.push(Change::PutRef(Ref {
            name: tag.name.clone(),
            kind: RefKind::Tag,
            version: tag.version.clone(),
            created_at: Some(self.env.clock.now()),
            expires_at: tag.expires_at,
        }));
        Ok((changes, rules.claim.into_iter().collect(), notes))
    }

    async fn try_drop_tag(&self, name: &str) -> Result<(Changed, VersionId)> {
        let parameters = [("name", name.to_owned())];
        let write = self.table.begin(intent(Action::Ref, "DROP TAG", parameters)).await?;
        let found = self.tag(name).await;
        let found = self.or_abandon(&write, found).await?;
        let claims = write.base.ref_rules()?.claim.into_iter().collect();
        let committed = self.commit(&write, &[Change::DropRef(found.name)], policy(claims)).await?;
        Ok((Changed { committed, notes: Vec::new() }, found.version))
    }

    async fn tag(&self, name: &str) -> Result<Ref> {
        let refs = self.table.refs().await?;
        let tags: Vec<&Ref> = refs.iter().filter(|it| it.kind == RefKind::Tag).collect();
        if let Some(found) = tags.iter().find(|it| it.name == name) {
            return Ok((*found).clone());
        }
        let err = Error::not_found(format!("no tag is named `{}`", name.escape_debug()));
        Err(match crate::similar::closest(name, tags.iter().map(|it| it.name.as_str())) {
            Some(near) => err.with_hint(format!("did you mean `{near}`?")),
            None if tags.is_empty() => err.with_hint("the table has no tags"),
            None => err.with_hint("`lakebed tag list TABLE` shows those that are there"),
        })
    }

    /// What was prepared; a write that is not going on is undone.
    pub(crate) async fn or_abandon<T>(&self, write: &Write, prepared: Result<T>) -> Result<T> {
        if prepared.is_err()
            && let Err(left) = self.table.abandon(write).await
        {
            tracing::warn!("an abandoned write leaves traces: {left}");
        }
        prepared
    }

    /// Commits, and does what is due then.
    pub(crate) async fn commit(&self, write: &Write, changes: &[Change], policy: ConflictPolicy) -> Result<Committed> {
        let committed = commit::commit(self.table, self.publisher, self.env, write, changes, &policy).await?;
        // What went wrong is told there; the commit stands.
        let _ = maintain::after(self.table, self.publisher, self.env, &committed).await;
        Ok(committed)
    }
}

pub(crate) fn intent<const N: usize>(action: Action, operation: &str, parameters: [(&str, String); N]) -> Intent {
    Intent {
        action,
        operation: operation.to_owned(),
        parameters: parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        metrics: BTreeMap::new(),
        branch: None,
        application: None,
        lineage: None,
        user_metadata: None,
    }
}

/// Nothing is read but the claimed part.
fn policy(claims: Vec<Claim>) -> ConflictPolicy {
    ConflictPolicy { isolation: Isolation::Snapshot, read: None, claims, retries: RETRIES }
}

/// Everything is read: whoever changes a row in between wins.
pub(crate) fn of_everything() -> ConflictPolicy {
    ConflictPolicy {
        isolation: Isolation::Serializable,
        read: Some(Predicate::True),
        claims: Vec::new(),
        retries: RETRIES,
    }
}

fn taken(there: &Ref, tag: &NewTag) -> Error {
    let kind = match there.kind {
        RefKind::Branch => "branch",
        RefKind::Tag => "tag",
    };
    let message = format!("there is a {kind} `{}`, of version {}", there.name.escape_debug(), there.version);
    let hint = format!("`lakebed tag delete {} TABLE` drops it; a tag never moves by itself", tag.name);
    Error::new(ErrorKind::AlreadyExists, message).with_hint(hint)
}

fn needs_upgrade(missing: &[String], costs: Option<&str>) -> Error {
    let message = format!("the table lacks the feature {} that keeps tags", missing.join(", "));
    let costs = costs.map(|it| format!(": {it}")).unwrap_or_default();
    Error::new(ErrorKind::Refused, message).with_hint(format!("--upgrade adds it{costs}"))
}
