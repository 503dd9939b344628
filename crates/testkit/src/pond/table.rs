//! The table: reads the log, answers about it. Holds nothing of it.
use std::sync::Arc;

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use lakebed_core::{
    Error, ErrorKind, Result,
    change::{Change, ChangeSpan, VersionDelta},
    commit::{Committed, Intent, Lease, Staged, Write},
    file::{DeleteFile, DeletePlace},
    format::{FormatKind, TableLocation},
    maintain::{Maintenance, MaintenancePlan, Retain},
    path::FilePath,
    storage::{Put, Storage},
    table::{ChangeFeed, Finding, Level, Snapshot, Table},
    timeline::{Action, Details, Instant, State as Progress, Timeline},
    version::{AsOf, Millis, Ref, RefKind, Resolved, Span, Version, VersionId},
    write::NewVector,
};

use super::{
    POND, changes,
    entry::Entry,
    layout::{self, LogName},
    lease, maintain, rules,
    snapshot::PondSnapshot,
    stage,
    state::{CHECKPOINT_INTERVAL, State},
};

/// A pond table: where it is, and nothing else.
#[derive(Debug, Clone)]
pub struct PondTable {
    pub(super) at: TableLocation,
}

/// The readable log: a state to start from and the entries after it, oldest first.
#[derive(Debug, Clone)]
pub(super) struct History {
    /// Its version is empty when the log is whole.
    pub(super) start: State,
    pub(super) entries: Vec<(String, Entry)>,
    /// Every object of the log, forgotten ones included.
    pub(super) names: Vec<LogName>,
}

impl PondTable {
    pub(super) fn new(at: TableLocation) -> Self {
        Self { at }
    }

    /// Reads the log from its oldest readable start.
    pub(super) async fn history(&self) -> Result<History> {
        let mut names = self.names().await?;
        names.sort_by_key(|it| (layout::stem(&it.version), it.checkpoint));
        let whole = names.iter().any(|it| it.version == "0" && !it.checkpoint);
        let oldest = names.iter().find(|it| it.checkpoint).filter(|_| !whole).cloned();
        let start = match &oldest {
            Some(name) => self.checkpoint(&name.version).await?,
            None => State::default(),
        };
        let after = layout::stem(&start.version);
        let wanted = names.iter().filter(|it| !it.checkpoint);
        let wanted: Vec<String> = wanted
            .filter(|it| oldest.is_none() || layout::stem(&it.version) > after)
            .map(|it| it.version.clone())
            .collect();
        check_contiguous(&start.version, &wanted)?;
        let mut entries = Vec::new();
        for version in wanted {
            let path = layout::entry(&version);
            let body = self.storage().read(&FilePath::below(path.as_str())).await?;
            let body = body.ok_or_else(|| {
                Error::new(ErrorKind::Unavailable, format!("{path} went away while the log was read"))
            })?;
            entries.push((version, Entry::parse(&path, &body)?));
        }
        if entries.is_empty() && oldest.is_none() {
            return Err(Error::not_found(format!("no pond table at {}", self.storage().location())));
        }
        Ok(History { start, entries, names })
    }

    async fn names(&self) -> Result<Vec<LogName>> {
        let listed = self.storage().list_after(layout::LOG, "");
        listed.try_filter_map(|it| async move { Ok(LogName::parse(&it.path)) }).try_collect().await
    }

    async fn checkpoint(&self, version: &str) -> Result<State> {
        let path = layout::checkpoint(version);
        let body = self.storage().read(&FilePath::below(path.as_str())).await?;
        let body =
            body.ok_or_else(|| Error::new(ErrorKind::Unavailable, format!("{path} went away while the log was read")))?;
        serde_json::from_slice(&body).map_err(|it| Error::corrupt(format!("{path}: {it}")))
    }

    /// Writes of a leased table that have begun and not completed.
    async fn pending(&self, history: &History) -> Result<Vec<Instant>> {
        let begun: Vec<_> = self.storage().list_after(layout::PENDING, "").try_collect().await?;
        let done: Vec<&str> = history.entries.iter().map(|(_, entry)| entry.write_id.as_str()).collect();
        let open = begun.iter().filter(|it| {
            let id = it.path.rsplit('/').next().and_then(|it| it.strip_suffix(".json"));
            id.is_some_and(|id| !done.contains(&id))
        });
        let instant = |it: &lakebed_core::storage::Object| Instant {
            requested_at: it.modified_at,
            action: Action::Other,
            state: Progress::Inflight,
            native_action: "pending".into(),
            details: Details::default(),
        };
        Ok(open.map(instant).collect())
    }
}

fn check_contiguous(start: &str, versions: &[String]) -> Result<()> {
    let Some(mut next) = start.parse::<u64>().ok().map(|it| it + 1).or_else(|| start.is_empty().then_some(0)) else {
        return Ok(());
    };
    for version in versions {
        // Versions of leased tables are times, of which none is next to another.
        let Ok(number) = version.parse::<u64>() else { return Ok(()) };
        if number != next {
            return Err(Error::corrupt(format!("log version {next} is gone, but {number} is there")));
        }
        next += 1;
    }
    Ok(())
}

impl History {
    /// Every readable version with its state, oldest first, until `last` (`None`: to the end).
    pub(super) fn states(&self, last: Option<&str>) -> Result<Vec<State>> {
        let mut states: Vec<State> = Vec::new();
        let mut state = self.start.clone();
        if !state.version.is_empty() {
            states.push(state.clone());
        }
        let done = |it: Option<&State>| last.is_some() && it.map(|it| it.version.as_str()) == last;
        for (version, entry) in &self.entries {
            if done(states.last()) {
                break;
            }
            let applied = state.apply(version, entry);
            applied.map_err(|it| Error::corrupt(format!("{}: {it}", layout::entry(version))))?;
            states.push(state.clone());
        }
        Ok(states)
    }

    pub(super) fn head(&self) -> Result<State> {
        let states = self.states(None)?;
        Ok(states.into_iter().next_back().expect("a history has a version"))
    }

    pub(super) fn versions(&self) -> Vec<Version> {
        let mut versions = Vec::new();
        let mut before: Option<(VersionId, i64)> = None;
        if !self.start.version.is_empty() {
            versions.push(version_of(&self.start));
            before = Some((VersionId::new(self.start.version.as_str()), self.start.at));
        }
        for (id, entry) in &self.entries {
            let at = entry.at.max(before.as_ref().map_or(i64::MIN, |(_, at)| *at));
            let id = VersionId::new(id.as_str());
            let parent = before.map(|(id, _)| id);
            versions.push(Version { id: id.clone(), committed_at: Millis(at), parent, schema_id: None });
            before = Some((id, at));
        }
        versions
    }

    pub(super) fn resolve(&self, as_of: &AsOf) -> Result<Resolved> {
        let versions = self.versions();
        let (oldest, newest) = (&versions[0], &versions[versions.len() - 1]);
        let named = match as_of {
            AsOf::Latest => Some((newest, "the newest version".to_owned())),
            AsOf::Version(id) => versions.iter().find(|it| it.id == *id).map(|it| (it, "named".to_owned())),
            AsOf::Time(at) => {
                let rule = format!("the newest version at or before {at}");
                versions.iter().rfind(|it| it.committed_at <= *at).map(|it| (it, rule))
            }
            AsOf::Ref(name) => {
                let head = self.head()?;
                let tag = head.tags.iter().find(|it| it.name == *name);
                let tag = tag.ok_or_else(|| Error::not_found(format!("no tag `{name}`")))?;
                versions.iter().find(|it| it.id.as_str() == tag.version).map(|it| (it, format!("tag `{name}`")))
            }
        };
        let (version, rule) = named.ok_or_else(|| {
            Error::not_found(format!("{as_of:?} is not in the log, which has {} to {}", oldest.id, newest.id))
        })?;
        let late = matches!(as_of, AsOf::Time(at) if *at > newest.committed_at);
        let warnings = late.then(|| format!("the time is later than the newest version, {}", newest.committed_at));
        Ok(Resolved { version: version.clone(), rule, warnings: warnings.into_iter().collect() })
    }

    /// Entries of `span`, oldest first, each with the state before it.
    pub(super) fn span(&self, span: &Span) -> Result<Vec<(State, String, Entry)>> {
        let versions = self.versions();
        if let Some(after) = &span.after
            && !versions.iter().any(|it| it.id == *after)
        {
            return Err(Error::not_found(format!("version {after} is not in the log: it was forgotten")));
        }
        let until = self.resolve(&span.until)?.version.id;
        let mut state = self.start.clone();
        let mut inside = span.after.as_ref().is_none_or(|it| it.as_str() == state.version);
        let mut ended = until.as_str() == state.version;
        let mut wanted = Vec::new();
        for (version, entry) in &self.entries {
            if ended {
                break;
            }
            let before = state.clone();
            state.apply(version, entry).map_err(|it| Error::corrupt(it.to_string()))?;
            if inside {
                wanted.push((before, version.clone(), entry.clone()));
            }
            inside |= span.after.as_ref().is_some_and(|it| it.as_str() == version);
            ended = until.as_str() == version;
        }
        Ok(wanted)
    }
}

pub(super) fn version_of(state: &State) -> Version {
    Version {
        id: VersionId::new(state.version.as_str()),
        committed_at: Millis(state.at),
        parent: state.parent.as_deref().map(VersionId::new),
        schema_id: Some(state.schema_id),
    }
}

#[async_trait]
impl Table for PondTable {
    fn format(&self) -> FormatKind {
        POND
    }

    fn storage(&self) -> &Storage {
        &self.at.storage
    }

    async fn resolve(&self, as_of: &AsOf) -> Result<Resolved> {
        self.history().await?.resolve(as_of)
    }

    async fn timeline(&self, span: &Span) -> Result<Timeline> {
        let history = self.history().await?;
        let versions = history.versions();
        let mut instants: Vec<Instant> = Vec::new();
        for (_, id, entry) in history.span(span)? {
            let version = versions.iter().find(|it| it.id.as_str() == id).expect("an entry is a version");
            instants.push(changes::instant(version, &entry));
        }
        instants.extend(self.pending(&history).await?);
        Ok(Timeline::new(instants))
    }

    async fn refs(&self) -> Result<Vec<Ref>> {
        let tags = self.history().await?.head()?.tags;
        let tag = |it: super::entry::Tag| Ref {
            name: it.name,
            kind: RefKind::Tag,
            version: VersionId::new(it.version),
            created_at: Some(Millis(it.created_at)),
            expires_at: it.expires_at.map(Millis),
        };
        Ok(tags.into_iter().map(tag).collect())
    }

    async fn snapshot(&self, as_of: &AsOf) -> Result<Arc<dyn Snapshot>> {
        let history = self.history().await?;
        let wanted = history.resolve(as_of)?.version.id;
        let state = history.states(Some(wanted.as_str()))?.pop().expect("the version was resolved");
        state.check_readable()?;
        Ok(Arc::new(PondSnapshot::new(state)))
    }

    fn changes(&self, span: &Span) -> BoxStream<'_, Result<VersionDelta>> {
        let span = span.clone();
        let deltas = async move { changes::deltas(&self.history().await?, &span) };
        stream::once(deltas).map_ok(stream::iter).try_flatten().boxed()
    }

    async fn change_feed(&self, span: &ChangeSpan) -> Result<ChangeFeed> {
        changes::feed(&self.history().await?, span)
    }

    fn reachable(&self, retain: &Retain) -> BoxStream<'_, Result<FilePath>> {
        let retain = retain.clone();
        let found = async move {
            let history = self.history().await?;
            maintain::reachable(&history, &retain, self.at.env.clock.now())
        };
        stream::once(found).map_ok(stream::iter).try_flatten().boxed()
    }

    async fn examine(&self) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        let head = self.history().await?.head()?;
        if let Err(err) = head.check_readable() {
            findings.push(finding(
                "P001",
                &head.version,
                &err.to_string(),
                "read it with a build that has the feature",
            ));
        }
        for live in &head.files {
            let vector = live.vector.as_ref().and_then(|it| match &it.place {
                DeletePlace::File(path) | DeletePlace::Range { path, .. } => Some(path),
                DeletePlace::Inline(_) => None,
            });
            for path in [Some(&live.file.path), vector].into_iter().flatten() {
                if self.storage().head(path).await?.is_none() {
                    findings.push(finding("P002", path.as_str(), "the file is gone", "restore a version without it"));
                }
            }
        }
        Ok(findings)
    }

    async fn begin(&self, intent: Intent) -> Result<Write> {
        if let Some(branch) = &intent.branch {
            return Err(Error::unsupported(format!("pond has no branches, so none called `{branch}`")));
        }
        let base = self.snapshot(&AsOf::Latest).await?;
        let id = format!("{:032x}", self.at.env.ids.uuid());
        if PondSnapshot::of(base.as_ref())?.state.leased() {
            let body = intent.operation.clone().into_bytes().into();
            match self.storage().create(&layout::pending(&id), body).await? {
                Put::Won | Put::Unknown => (),
                Put::Lost => return Err(Error::internal("a write id came twice")),
            }
        }
        Ok(Write { base, intent, id })
    }

    async fn lease(&self, write: &Write) -> Result<Option<Box<dyn Lease>>> {
        if !PondSnapshot::of(write.base.as_ref())?.state.leased() {
            return Ok(None);
        }
        Ok(Some(Box::new(lease::acquire(self.storage(), &self.at.env, &write.id).await?)))
    }

    async fn write_vectors(&self, _write: &Write, vectors: Vec<NewVector>) -> Result<Vec<DeleteFile>> {
        rules::write_vectors(self, vectors).await
    }

    async fn evolve(&self, write: &Write, schema: &SchemaRef) -> Result<Arc<dyn Snapshot>> {
        let mut state = PondSnapshot::of(write.base.as_ref())?.state.clone();
        state.schema = Some(schema.as_ref().clone());
        Ok(Arc::new(PondSnapshot::new(state)))
    }

    async fn stage(&self, write: &Write, onto: &dyn Snapshot, changes: &[Change]) -> Result<Staged> {
        stage::stage(self, write, PondSnapshot::of(onto)?, changes).await
    }

    async fn abandon(&self, write: &Write) -> Result<()> {
        if PondSnapshot::of(write.base.as_ref())?.state.leased() {
            // What is left of it is a name without meaning.
            let _ = self.storage().delete(&[FilePath::below(layout::pending(&write.id))]).await?;
        }
        Ok(())
    }

    async fn plan(&self, action: &Maintenance) -> Result<MaintenancePlan> {
        maintain::plan(self, action).await
    }

    async fn due(&self, after: &Committed) -> Result<Vec<Maintenance>> {
        let head = self.history().await?.head()?;
        let every = head.properties.get(CHECKPOINT_INTERVAL).and_then(|it| it.parse::<u64>().ok());
        let number = after.version.id.as_str().parse::<u64>().ok();
        let due = matches!((number, every), (Some(number), Some(every)) if every > 0 && number % every == 0);
        Ok(if due { vec![Maintenance::Checkpoint] } else { Vec::new() })
    }
}

fn finding(code: &str, object: &str, evidence: &str, fix: &str) -> Finding {
    Finding {
        code: code.into(),
        level: Level::Error,
        object: object.into(),
        evidence: evidence.into(),
        fix: fix.into(),
    }
}
