//! Opening a version, and following the log from one version to the next.
//!
//! 1. The hint, then the listing from the version it names. For an older version the listing pages back from that
//!    version until it meets a complete checkpoint: what it costs depends on that distance, not on the log's age.
//! 2. The segment is fixed, so that a gap is an error now and not later.
//! 3. A checksum file at the very version answers for everything but files. Otherwise checkpoint and commits are
//!    read at once.
use std::sync::{Arc, Mutex};

use lakebed_core::Result;
use tokio::sync::OnceCell;

use super::{Base, State, base::Finder, commits, reconcile, required, times};
use crate::{
    layout,
    log::{Listed, Listing, Log, LogError, actions::SmallActions, hint, segment::Segment},
    spec::{LastCheckpoint, VersionChecksum},
};

/// How far back the first listing for an older version reaches; each further one reaches four times as far.
const PAGE_VERSIONS: u64 = 256;
/// After this many commits past its base a state is opened anew rather than extended.
const MAX_EXTENSION: u64 = 256;

impl State {
    /// Opens `version`, or the newest.
    ///
    /// # Errors
    /// Not found when there is no table or no such version; corrupt when the log has a gap or a commit is damaged,
    /// never because of a hint, checksum or checkpoint that the log itself can stand in for.
    pub(crate) async fn open(log: &Log, version: Option<u64>) -> Result<Self> {
        let mut warnings = Vec::new();
        let hint = hint::read(log, &mut warnings).await?;
        let listing = match version {
            None => newest(log, hint.as_ref(), &mut warnings).await?,
            Some(version) => older(log, hint.as_ref(), version).await?,
        };
        let newest = listing.newest().ok_or_else(|| not_a_table(log))?;
        let version = version.unwrap_or(newest);
        for name in &listing.staged {
            warnings.push(format!("{name} is a commit that only a catalog can ratify: ignored"));
        }
        let mut finder = Finder::new(log, listing, version, hint.as_ref());
        let segment = match finder.segment(&mut warnings).await {
            Ok(segment) => segment,
            Err(err) => return Err(expired(log, version, err).await?),
        };
        let state = match by_checksum(log, &finder, &segment, &mut warnings).await? {
            Some(known) => {
                let listing = finder.into_listing();
                known.into_state(log, listing, version, OnceCell::new(), warnings).await.map(|it| Self { hint, ..it })
            }
            None => {
                let base = Arc::new(finder.load(&mut warnings).await?);
                let known = Known::of(&base.small(), version)?;
                let cell = OnceCell::new_with(Some(base));
                known.into_state(log, finder.into_listing(), version, cell, warnings).await
            }
        }?;
        for warning in state.warnings() {
            tracing::warn!(table = log.storage().location(), "{warning}");
        }
        Ok(state)
    }

    /// The newest state, from this one: `None` when this is it.
    ///
    /// One listing from this version on shows that its commit is still the same file, and what came after.
    pub(crate) async fn refresh(&self) -> Result<Option<Self>> {
        let listing = Listing::read(self.log.storage(), self.version, u64::MAX).await?;
        let same = self.is_in(&listing);
        let newest = listing.newest().unwrap_or(0);
        let base = self.base.get().filter(|_| same && newest >= self.version);
        let extended = match base {
            _ if same && newest == self.version => return Ok(None),
            Some(base) if newest - self.base_version(base) <= MAX_EXTENSION => {
                self.extend(base, &listing, newest).await?
            }
            _ => None,
        };
        match extended {
            Some(state) => Ok(Some(state)),
            // Another table in the same place, a log that was cleaned away, or too far to follow.
            None => Self::open(&self.log, None).await.map(Some),
        }
    }

    /// The state of the later version `version`, from this one: what was committed in between is read, and one listing shows
    /// that this version's commit is still the same file. `None` where it must be opened anew.
    pub(super) async fn follow(&self, version: u64) -> Result<Option<Self>> {
        let Some(base) = self.base.get() else { return Ok(None) };
        if version <= self.version || version - self.base_version(base) > MAX_EXTENSION {
            return Ok(None);
        }
        let listing = Listing::read(self.log.storage(), self.version, version).await?;
        let there = self.is_in(&listing) && listing.newest() == Some(version);
        if there { self.extend(base, &listing, version).await } else { Ok(None) }
    }

    /// Whether this version is still what it was when it was read; takes one listing of its files.
    pub(super) async fn stands(&self) -> Result<bool> {
        let listing = Listing::read(self.log.storage(), self.version, self.version).await?;
        Ok(self.is_in(&listing))
    }

    /// Whether `listing` has this version's commit, or what stands for it, unchanged.
    fn is_in(&self, listing: &Listing) -> bool {
        let mine = |it: &&Listed| it.file.version == self.version;
        let own = |it: &Listing| it.commits().rev().find(mine).or_else(|| it.files.iter().find(mine)).cloned();
        own(listing).is_some() && own(listing) == own(&self.listing)
    }

    /// This state with what `base` says, whose action `what` the checksum file gave otherwise.
    pub(super) async fn of_log(&self, base: Arc<Base>, what: &str) -> Result<Self> {
        self.warn(format!("{}: its {what} is not the log's: ignored", layout::checksum_path(self.version)));
        let known = Known::of(&base.small(), self.version)?;
        let cell = OnceCell::new_with(Some(base));
        known.into_state(&self.log, self.listing.clone(), self.version, cell, self.warnings()).await
    }

    fn base_version(&self, base: &Base) -> u64 {
        base.segment.checkpoint.as_ref().map_or(0, |it| it.version)
    }

    /// This state and the commits up to `newest`; `None` when some are gone and only a checkpoint stands for them.
    async fn extend(&self, base: &Base, listing: &Listing, newest: u64) -> Result<Option<Self>> {
        let added: Vec<_> = listing.commits().filter(|it| it.file.version > self.version).cloned().collect();
        let dense = added.iter().map(|it| it.file.version).eq(self.version + 1..=newest);
        if !dense {
            return Ok(None);
        }
        let mut all = base.commits.clone();
        all.extend(commits::read_on(&self.log, &added).await?);
        let mut segment = base.segment.clone();
        segment.version = newest;
        segment.commits.extend(added);
        let (checkpoint, expected) = (base.checkpoint.clone(), base.expected.clone());
        let base = Arc::new(Base { segment, checkpoint, commits: all, expected });
        let mut whole = self.listing.clone();
        whole.files.retain(|it| it.file.version < self.version);
        whole.files.extend(listing.files.iter().cloned());
        let known = Known::of(&base.small(), newest)?;
        let cell = OnceCell::new_with(Some(base));
        known.into_state(&self.log, whole, newest, cell, self.warnings()).await.map(Some)
    }
}

/// Everything but files.
struct Known {
    small: SmallActions,
    txns: bool,
    domains: bool,
    /// The files counted, where a checksum file says all this.
    counted: Option<i64>,
}

impl Known {
    fn of(small: &SmallActions, version: u64) -> Result<Self> {
        required(small.protocol.as_ref(), version, "protocol")?;
        required(small.metadata.as_ref(), version, "metaData")?;
        Ok(Self { small: small.clone(), txns: true, domains: true, counted: None })
    }

    async fn into_state(
        self,
        log: &Log,
        listing: Listing,
        version: u64,
        base: OnceCell<Arc<Base>>,
        mut warnings: Vec<String>,
    ) -> Result<State> {
        let (txns, domains) = reconcile(&self.small);
        let metadata = required(self.small.metadata, version, "metaData")?;
        let stamp = self.small.in_commit_timestamp.filter(|(at, _)| *at == version).map(|(_, stamp)| stamp);
        let committed_at = times::committed_at(log, &listing, version, &metadata, stamp, &mut warnings).await?;
        Ok(State {
            log: log.clone(),
            version,
            committed_at,
            protocol: required(self.small.protocol, version, "protocol")?,
            metadata,
            txns: self.txns.then_some(txns),
            domains: self.domains.then_some(domains),
            counted: self.counted,
            hint: None,
            listing,
            base,
            files: OnceCell::new(),
            warnings: Mutex::new(warnings),
        })
    }
}

/// What the checksum file of the segment's version says, if there is a sound one and it saves a request.
async fn by_checksum(
    log: &Log,
    finder: &Finder<'_>,
    segment: &Segment,
    warnings: &mut Vec<String>,
) -> Result<Option<Known>> {
    let version = segment.version;
    if finder.checksum(version).is_none() {
        return Ok(None);
    }
    let path = layout::checksum_path(version);
    let Some(body) = log.read_cache(&path, warnings).await? else { return Ok(None) };
    let read: VersionChecksum = match serde_json::from_slice(&body) {
        Ok(read) => read,
        Err(err) => {
            warnings.push(format!("{path} is damaged ({err}): ignored"));
            return Ok(None);
        }
    };
    let small = SmallActions {
        protocol: Some(read.protocol),
        metadata: Some(read.metadata),
        in_commit_timestamp: read.in_commit_timestamp_opt.map(|it| (version, it)),
        txns: read.set_transactions.clone().unwrap_or_default(),
        domains: read.domain_metadata.clone().unwrap_or_default(),
        ..SmallActions::default()
    };
    let (txns, domains) = (read.set_transactions.is_some(), read.domain_metadata.is_some());
    Ok(Some(Known { small, txns, domains, counted: Some(read.num_files) }))
}

/// The listing for the newest version, from the hint on; from the start when the hint leads nowhere.
async fn newest(log: &Log, hint: Option<&LastCheckpoint>, warnings: &mut Vec<String>) -> Result<Listing> {
    let storage = log.storage();
    let Some(hint) = hint.filter(|it| it.version > 0 && i64::try_from(it.version).is_ok()) else {
        return Listing::read(storage, 0, u64::MAX).await;
    };
    let listing = Listing::read(storage, hint.version, u64::MAX).await?;
    if !listing.checkpoints().0.is_empty() {
        return Ok(listing);
    }
    let stale =
        format!("{} names checkpoint {}, which is not there or not complete", layout::LAST_CHECKPOINT, hint.version);
    warnings.push(format!("{stale}: ignored"));
    Listing::read(storage, 0, u64::MAX).await
}

/// The listing for `version`: from the newest complete checkpoint at or before it.
async fn older(log: &Log, hint: Option<&LastCheckpoint>, version: u64) -> Result<Listing> {
    let storage = log.storage();
    let complete = |listing: &Listing| listing.checkpoints().0.iter().any(|it| it.version <= version);
    let mut reach = PAGE_VERSIONS;
    let hinted = hint.map(|it| it.version).filter(|it| *it <= version);
    let mut first = hinted.unwrap_or(version.saturating_sub(reach));
    let mut listing = Listing::read(storage, first, version).await?;
    while first > 0 && !complete(&listing) {
        reach = reach.saturating_mul(4);
        let next = first.saturating_sub(reach);
        let mut earlier = Listing::read(storage, next, first - 1).await?;
        earlier.files.append(&mut listing.files);
        earlier.staged.append(&mut listing.staged);
        (listing, first) = (earlier, next);
    }
    let there = |it: &Listing| it.newest() == Some(version);
    if there(&listing) { Ok(listing) } else { Err(no_version(log, version).await?) }
}

/// Why `version` cannot be rebuilt: forgotten, where a newer one can be; else the log is damaged.
async fn expired(log: &Log, wanted: u64, err: lakebed_core::Error) -> Result<lakebed_core::Error> {
    let missing = match err.cause::<LogError>() {
        Some(LogError::NoBase { missing, .. } | LogError::Gap { missing, .. }) => *missing,
        _ => return Ok(err),
    };
    let newer = Listing::read(log.storage(), wanted.saturating_add(1), u64::MAX).await?;
    let oldest = newer.checkpoints().0.last().map(|it| it.version);
    Ok(if oldest.is_some() { LogError::Expired { wanted, missing, oldest }.into() } else { err })
}

/// Why `version` is not there: too new, or gone.
async fn no_version(log: &Log, wanted: u64) -> Result<lakebed_core::Error> {
    let listing = Listing::read(log.storage(), 0, u64::MAX).await?;
    let Some(newest) = listing.newest() else { return Ok(not_a_table(log)) };
    if newest < wanted {
        return Ok(LogError::TooNew { wanted, newest }.into());
    }
    let oldest = listing.checkpoints().0.last().map(|it| it.version);
    Ok(LogError::Expired { wanted, missing: wanted, oldest }.into())
}

fn not_a_table(log: &Log) -> lakebed_core::Error {
    LogError::NotATable { location: log.storage().location().to_owned() }.into()
}
