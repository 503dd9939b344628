//! A commit being put together: the table as it will be, and the actions that make it so.
use std::collections::BTreeSet;

use bytes::Bytes;
use lakebed_core::{
    Error, ErrorKind, Result,
    change::Change,
    commit::{Publish, Staged, Write},
    env::Env,
    version::{Millis, Version, VersionId},
};

use super::{
    files::{Describer, FileActions},
    info, rules, stats,
};
use crate::{
    layout,
    properties::Properties,
    schema::TableSchema,
    snapshot::DeltaSnapshot,
    spec::{Action, DomainMetadata, Metadata, Protocol, Txn},
    state::State,
    timeline::times::Clock,
};

const ENABLED_AT: &str = "delta.inCommitTimestampEnablementTimestamp";
const ENABLED_IN: &str = "delta.inCommitTimestampEnablementVersion";

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(super) write: &'a Write,
    pub(crate) onto: &'a DeltaSnapshot,
    pub(super) env: &'a Env,
    /// Milliseconds since the epoch: one moment for the whole commit.
    pub(crate) now: i64,
    pub(crate) protocol: Protocol,
    pub(crate) metadata: Metadata,
    pub(crate) domains: Vec<DomainMetadata>,
    pub(crate) files: FileActions,
}

impl<'a> Draft<'a> {
    pub(super) fn new(write: &'a Write, onto: &'a DeltaSnapshot, env: &'a Env) -> Self {
        let State { protocol, metadata, .. } = &*onto.state;
        let (protocol, metadata) = (protocol.clone(), metadata.clone());
        let (domains, files) = (Vec::new(), FileActions::default());
        Self { write, onto, env, now: env.clock.now().0, protocol, metadata, domains, files }
    }

    /// Whether the commit makes the table.
    pub(super) fn creates(&self) -> bool {
        self.onto.state.is_before_first()
    }

    /// Whether the commit puts another table in place of the one that is there.
    pub(super) fn replaces(&self) -> bool {
        super::ours(self.write.base.as_ref()).is_ok_and(|it| it.replaces.is_some())
    }

    /// Whether the commit says all that the table is, whatever was there.
    pub(super) fn describes_anew(&self) -> bool {
        self.creates() || self.replaces()
    }

    pub(super) fn supports(&self, feature: &str) -> bool {
        self.protocol.supports(feature)
    }

    /// Makes sure that the table has `feature`. A new one gets it; an old one only by an upgrade that was asked for.
    ///
    /// # Errors
    /// Unsupported where this build does not write it; refused, with the statement that upgrades, where the table lacks it.
    pub(super) fn require(&mut self, feature: &str, what: &str) -> Result<()> {
        if self.supports(feature) {
            return Ok(());
        }
        super::upgrade::check_known(feature)?;
        if self.describes_anew() {
            let (reader, writer) = (self.protocol.min_reader_version, self.protocol.min_writer_version);
            self.protocol = Protocol::lowest(&self.with_features([feature])).at_least(reader, writer);
            return Ok(());
        }
        let message = format!("{what} needs the table feature `{feature}`, which the table does not have");
        Err(Error::new(ErrorKind::Refused, message).with_hint(format!(
            "`ALTER TABLE … SET TBLPROPERTIES ('delta.feature.{feature}' = 'supported')` adds it: engines that do not know \
             it can no longer write to the table, and perhaps not read it"
        )))
    }

    fn with_features<'f>(&self, features: impl IntoIterator<Item = &'f str>) -> BTreeSet<String> {
        self.protocol.features().into_iter().chain(features.into_iter().map(str::to_owned)).collect()
    }

    /// The schema as it will be.
    pub(super) fn schema(&self) -> Result<TableSchema> {
        Ok(TableSchema::of(&self.protocol, &self.metadata)?)
    }

    /// The files of every change of rows.
    pub(super) async fn rows(&mut self, changes: &[Change]) -> Result<()> {
        let rows = || changes.iter().filter_map(|it| if let Change::Rows(rows) = it { Some(rows) } else { None });
        if rows().next().is_none() {
            return Ok(());
        }
        let schema = self.schema()?;
        let properties = Properties(&self.metadata.configuration);
        let (columns, _) = stats::indexed_columns(&schema, properties);
        let describer = Describer {
            schema: &schema,
            columns: &columns,
            says_tight: self.protocol.supports("deletionVectors"),
            data_change: !info::moves_rows(&self.write.intent),
            now: self.now,
        };
        for rows in rows() {
            let more = describer.actions(&self.onto.state, rows).await?;
            self.files.adds.extend(more.adds);
            self.files.removes.extend(more.removes);
            self.files.cdc.extend(more.cdc);
        }
        self.check_append_only()
    }

    /// Actions that another part of the format made.
    pub(super) fn take(&mut self, actions: Vec<Action>) -> Result<()> {
        for action in actions {
            match action {
                Action::Protocol(it) => self.protocol = it,
                Action::Metadata(it) => self.metadata = it,
                Action::Add(it) => self.files.adds.push(it),
                Action::Remove(it) => self.files.removes.push(it),
                Action::Cdc(it) => self.files.cdc.push(it),
                Action::DomainMetadata(it) => {
                    // One commit names a domain once.
                    self.domains.retain(|other| other.domain != it.domain);
                    self.domains.push(it);
                }
                other => return Err(Error::internal(format!("a change became the action `{}`", other.name()))),
            }
        }
        Ok(())
    }

    /// A table that only takes rows loses none; moving them is allowed. What is replaced is not of the table any more.
    pub(super) fn check_append_only(&self) -> Result<()> {
        if self.replaces() {
            return Ok(());
        }
        let append_only = rules::append_only(&self.protocol, &self.metadata)?;
        match self.files.removes.iter().find(|it| append_only && it.data_change) {
            None => Ok(()),
            Some(remove) => Err(rules::keeps_rows(&remove.path)),
        }
    }

    /// How far the job came, where the write is part of one.
    ///
    /// # Errors
    /// Already exists if the table has come as far.
    async fn txn(&self) -> Result<Option<Txn>> {
        let Some(application) = &self.write.intent.application else { return Ok(None) };
        let done = self.onto.state.txns().await?.get(&application.id).map(|it| it.version);
        if let Some(done) = done.filter(|it| *it >= application.version) {
            let id = application.id.escape_debug();
            let message =
                format!("application `{id}` wrote version {done} of its work before: {} is done", application.version);
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
        let (app_id, version) = (application.id.clone(), application.version);
        Ok(Some(Txn { app_id, version, last_updated: Some(self.now) }))
    }

    /// The time in the commit, where the table has them: never before the version below, and that version's own time
    /// where it had none.
    fn stamp(&mut self, version: u64) -> Option<i64> {
        let stamps = |it: &Metadata| Clock::of(it) != Clock::Files;
        let (before, now) = (&self.onto.state.metadata, stamps(&self.metadata));
        let had = !self.creates() && stamps(before);
        if !now {
            if had {
                self.metadata.configuration.retain(|name, _| name != ENABLED_AT && name != ENABLED_IN);
            }
            return None;
        }
        if self.creates() {
            return Some(self.now);
        }
        let stamp = self.now.max(self.onto.state.committed_at.0.saturating_add(1));
        if !had {
            self.metadata.configuration.insert(ENABLED_AT.to_owned(), stamp.to_string());
            self.metadata.configuration.insert(ENABLED_IN.to_owned(), version.to_string());
        }
        Some(stamp)
    }

    /// The commit, ready to be published.
    pub(super) async fn finish(mut self) -> Result<Staged> {
        rules::check(&self.protocol, &self.metadata, &self.schema()?)?;
        self.check_paths()?;
        let version = self.onto.state.next_version();
        let stamp = self.stamp(version);
        let txn = self.txn().await?;
        let base = &self.onto.state;
        let properties = Properties(&self.metadata.configuration);
        let read = base.version_number();
        let info = info::commit_info(self.write, read, properties, &self.files, self.now, stamp);
        let mut lines = Lines::default();
        lines.push(&Action::CommitInfo(info))?;
        if self.creates() || !self.protocol.says_the_same(&base.protocol) {
            lines.push(&Action::Protocol(self.protocol))?;
        }
        if read.is_none() || self.metadata != base.metadata {
            lines.push(&Action::Metadata(self.metadata))?;
        }
        for domain in self.domains {
            lines.push(&Action::DomainMetadata(domain))?;
        }
        if let Some(txn) = txn {
            lines.push(&Action::Txn(txn))?;
        }
        let FileActions { adds, removes, cdc } = self.files;
        removes.into_iter().try_for_each(|it| lines.push(&Action::Remove(it)))?;
        adds.into_iter().try_for_each(|it| lines.push(&Action::Add(it)))?;
        cdc.into_iter().try_for_each(|it| lines.push(&Action::Cdc(it)))?;
        let committed_at = Millis(stamp.unwrap_or(self.now).max(base.committed_at.0));
        Ok(Staged {
            version: Version {
                id: VersionId::from(version),
                committed_at,
                parent: read.map(VersionId::from),
                schema_id: None,
            },
            publish: Publish::Create { path: layout::commit_path(version), body: lines.bytes() },
        })
    }

    /// One commit names a path once among the files it adds: nobody could tell which of two counts.
    fn check_paths(&self) -> Result<()> {
        let mut paths = BTreeSet::new();
        match self.files.adds.iter().find(|it| !paths.insert(it.path.as_str())) {
            Some(twice) => Err(Error::internal(format!("one commit adds {} twice", twice.path))),
            None => Ok(()),
        }
    }
}

/// Actions as the text of a commit: one a line.
#[derive(Debug, Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn push(&mut self, action: &Action) -> Result<()> {
        serde_json::to_writer(&mut self.0, action).map_err(|it| Error::internal(it.to_string()))?;
        self.0.push(b'\n');
        Ok(())
    }

    fn bytes(self) -> Bytes {
        self.0.into()
    }
}
