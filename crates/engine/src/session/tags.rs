//! Tags: names that keep versions alive.
//!
//! Where a table keeps its names in one place, every commit that moves one claims it, so that two writers never both make
//! one name; who loses begins again, with the names of then.
use lakebed_core::{
    Error, ErrorKind, Result,
    change::{Change, Claim},
    commit,
    conflict::{ConflictPolicy, Isolation},
    maintain,
    rev::check_ref_name,
    table::RefRules,
    timeline::Action,
    version::{AsOf, Ref, RefKind, VersionId},
};

use super::{Destination, Output, Session, writes::answer};
use crate::{system::rows::Columns, text::did_you_mean};

const RETRIES: u32 = 20;
/// How often a change of names begins again because somebody else changed them.
const TRIES: u32 = 10;

impl Session {
    /// Gives the version that `as_of` names now a tag; one row of both.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] where the table needs features for it and nobody agreed to an upgrade.
    pub(super) async fn create_tag(&self, to: &Destination, name: &str, as_of: &AsOf, upgrade: bool) -> Result<Output> {
        check_ref_name(name)?;
        let id = to.table.resolve(as_of).await?.version.id;
        let mut left = TRIES;
        loop {
            left -= 1;
            match self.try_create_tag(to, name, &id, upgrade).await {
                Err(err) if err.kind() == ErrorKind::Conflict && left > 0 => (),
                done => break done?,
            }
        }
        tag_row(name, &id)
    }

    async fn try_create_tag(&self, to: &Destination, name: &str, id: &VersionId, upgrade: bool) -> Result<()> {
        let parameters = [("name", name.to_owned()), ("version", id.to_string())];
        let write = to.table.begin(self.intent(Action::Ref, "CREATE TAG", parameters)?).await?;
        let prepared = self.new_tag(to, &write, name, id, upgrade).await;
        self.commit_refs(to, &write, prepared).await
    }

    async fn new_tag(
        &self,
        to: &Destination,
        write: &commit::Write,
        name: &str,
        id: &VersionId,
        upgrade: bool,
    ) -> Result<(Vec<Change>, Vec<Claim>)> {
        let RefRules { missing, upgrade_costs, caution, claim } = write.base.ref_rules()?;
        if let Some(there) = to.table.refs().await?.iter().find(|it| it.name.to_lowercase() == name.to_lowercase()) {
            let message = format!("there is a name `{}`, of version {}", there.name, there.version);
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        let mut changes = Vec::new();
        if !missing.is_empty() {
            let costs = upgrade_costs.map(|it| format!(": {it}")).unwrap_or_default();
            let features = missing.join(", ");
            if !upgrade {
                let message = format!("the table lacks the feature {features} that keeps tags");
                return Err(
                    Error::new(ErrorKind::Refused, message).with_hint(format!("upgrade => true adds it{costs}"))
                );
            }
            tracing::warn!("the table is upgraded to {features}{costs}");
            changes.push(Change::Upgrade { features: missing });
        }
        caution.iter().for_each(|it| tracing::warn!("{it}"));
        changes.push(Change::PutRef(Ref {
            name: name.to_owned(),
            kind: RefKind::Tag,
            version: id.clone(),
            created_at: Some(self.shared.env.clock.now()),
            expires_at: None,
        }));
        Ok((changes, claim.into_iter().collect()))
    }

    pub(super) async fn delete_tag(&self, to: &Destination, name: &str) -> Result<Output> {
        let mut left = TRIES;
        loop {
            left -= 1;
            match self.try_delete_tag(to, name).await {
                Err(err) if err.kind() == ErrorKind::Conflict && left > 0 => (),
                done => return tag_row(name, &done?),
            }
        }
    }

    async fn try_delete_tag(&self, to: &Destination, name: &str) -> Result<VersionId> {
        let write = to.table.begin(self.intent(Action::Ref, "DROP TAG", [("name", name.to_owned())])?).await?;
        let refs = to.table.refs().await;
        let found = refs.and_then(|it| found(&it, name));
        let version = found.as_ref().map(|it| it.version.clone()).ok();
        let prepared = found.and_then(|tag| {
            let claim = write.base.ref_rules()?.claim;
            Ok((vec![Change::DropRef(tag.name)], claim.into_iter().collect()))
        });
        self.commit_refs(to, &write, prepared).await?;
        version.ok_or_else(|| Error::internal("a tag was dropped that nobody found"))
    }

    async fn commit_refs(
        &self,
        to: &Destination,
        write: &commit::Write,
        prepared: Result<(Vec<Change>, Vec<Claim>)>,
    ) -> Result<()> {
        let (changes, claims) = match prepared {
            Ok(prepared) => prepared,
            Err(err) => {
                if let Err(left) = to.table.abandon(write).await {
                    tracing::warn!("an abandoned write leaves traces: {left}");
                }
                return Err(err);
            }
        };
        let policy = ConflictPolicy { isolation: Isolation::Snapshot, read: None, claims, retries: RETRIES };
        let (table, publisher) = (to.table.as_ref(), to.publisher.as_ref());
        let env = &self.shared.env;
        let committed = commit::commit(table, publisher, env, write, &changes, &policy).await?;
        // What went wrong is told there; the tag stands.
        let _ = maintain::after(table, publisher, env, &committed).await;
        Ok(())
    }
}

fn found(refs: &[Ref], name: &str) -> Result<Ref> {
    let tags = || refs.iter().filter(|it| it.kind == RefKind::Tag);
    if let Some(found) = tags().find(|it| it.name == name) {
        return Ok(found.clone());
    }
    let error = Error::not_found(format!("no tag is called `{name}`"));
    Err(match did_you_mean(name, tags().map(|it| it.name.as_str())) {
        Some(near) => error.with_hint(format!("did you mean `{near}`?")),
        None => error,
    })
}

fn tag_row(name: &str, version: &VersionId) -> Result<Output> {
    let columns = Columns::default().text("tag", std::iter::once(name));
    answer(columns.text("version", std::iter::once(version.as_str())).batch()?)
}
