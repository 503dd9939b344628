//! What was tried, what was answered, what was seen; and whether all of it can be true.
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Mutex, PoisonError},
};

use futures::TryStreamExt;
use lakebed_core::{
    ErrorKind, Result,
    change::VersionDelta,
    table::Table,
    version::{Millis, Span, VersionId},
};

use super::Report;
use crate::seed::Seed;

/// A rule of the [simulator](super) that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    seed: Option<Seed>,
    what: String,
}

impl Violation {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self { seed: None, what: what.into() }
    }

    pub(super) fn of(self, seed: Seed) -> Self {
        Self { seed: Some(seed), ..self }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seed {
            Some(seed) => write!(f, "{seed}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for Violation {}

/// What one write means to the rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Effect {
    pub(super) added: BTreeSet<i64>,
    pub(super) removed: BTreeSet<i64>,
    /// The rows become those of this version again.
    pub(super) restored: Option<VersionId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    /// No answer yet, or none that says which.
    Unknown,
    Acknowledged(VersionId),
    Refused(String),
}

/// A version, the write that made it, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    id: VersionId,
    write_id: Option<String>,
    at: Millis,
}

/// How long a commit may take from being staged to being visible: its tombstones are older than it.
const PUBLISHING_MS: i64 = 45_000;

/// Everything known of a table's past. See the [simulator](super) for what must hold of it.
#[derive(Debug, Default)]
pub struct History {
    attempts: BTreeMap<String, (Effect, Outcome)>,
    /// Versions in the order they were listed.
    order: Vec<Seen>,
    rows: BTreeMap<String, Vec<i64>>,
    /// The latest cutoff of a vacuum.
    vacuumed: Option<Millis>,
    pub(super) report: Report,
}

impl History {
    /// Notes a write before it is tried.
    pub(super) fn note_attempt(&mut self, write_id: &str, effect: Effect) {
        self.attempts.insert(write_id.to_owned(), (effect, Outcome::Unknown));
    }

    /// Notes what a writer was told; of a write that was tried again, it must be the same.
    pub(super) fn note_answer(&mut self, write_id: &str, answer: &Result<VersionId>) -> Result<(), Violation> {
        let known = self.attempts.get(write_id).map(|(_, outcome)| outcome);
        if let Some(Outcome::Acknowledged(known)) = known {
            return match answer {
                Ok(again) if again != known => {
                    Err(Violation::new(format!("version {known} was acknowledged again, as {again}")))
                }
                Err(err) if !matches!(err.kind(), ErrorKind::Unknown | ErrorKind::Unavailable) => Err(Violation::new(
                    format!("version {known} was acknowledged, and refused when tried again: {err}"),
                )),
                _ => Ok(()),
            };
        }
        let outcome = match answer {
            Ok(version) => {
                self.report.acknowledged += 1;
                Outcome::Acknowledged(version.clone())
            }
            Err(err) if err.kind() == ErrorKind::Unknown => {
                self.report.unknown += 1;
                Outcome::Unknown
            }
            Err(err) => {
                self.report.refused += 1;
                Outcome::Refused(err.to_string())
            }
        };
        if let Some((_, known)) = self.attempts.get_mut(write_id) {
            *known = outcome;
        }
        Ok(())
    }

    pub(super) fn note_vacuum(&mut self, cutoff: Millis) {
        self.vacuumed = self.vacuumed.max(Some(cutoff));
    }

    /// Whether a vacuum may have taken files of this version: the next one is older than its cutoff.
    pub(super) fn may_be_emptied(&self, version: &VersionId) -> bool {
        let next = self.order.iter().position(|it| it.id == *version).and_then(|at| self.order.get(at + 1));
        let cutoff = self.vacuumed.map(|it| it.0.saturating_add(PUBLISHING_MS));
        next.zip(cutoff).is_some_and(|(next, cutoff)| next.at.0 < cutoff)
    }

    /// The versions that are left at the end: the newest of all, and as many others as had to stay.
    pub(super) fn check_end(&self, listed: &[VersionId], at_least: usize) -> Result<(), Violation> {
        let (newest, last) = (self.order.last().map(|it| &it.id), listed.last());
        if newest != last {
            return Err(Violation::new(format!("version {newest:?} was the newest, and now {last:?} is")));
        }
        let wanted = at_least.min(self.order.len());
        if listed.len() < wanted {
            return Err(Violation::new(format!("{} versions are left, and {wanted} had to stay", listed.len())));
        }
        Ok(())
    }

    /// Notes the rows of a version; whoever reads it must read the same.
    pub(super) fn note_rows(&mut self, version: &VersionId, ids: Vec<i64>) -> Result<(), Violation> {
        self.report.reads += 1;
        match self.rows.get(version.as_str()) {
            Some(known) if *known != ids => {
                Err(Violation::new(format!("version {version} had {known:?} once, and has {ids:?} now")))
            }
            _ => {
                self.rows.insert(version.as_str().to_owned(), ids);
                Ok(())
            }
        }
    }

    /// Notes versions as they are listed: what was listed before must still stand there, up to what was forgotten at
    /// the front and what this listing does not show yet.
    fn note_order(&mut self, deltas: &[VersionDelta]) -> Result<(), Violation> {
        let Some(first) = deltas.first() else { return Ok(()) };
        let start = self.order.iter().position(|it| it.id == first.version.id);
        let start = start.or_else(|| self.order.is_empty().then_some(0));
        let start = start.or_else(|| {
            // The first listed one may be new, when everything before it was forgotten or is its parent.
            let parent = first.version.parent.as_ref()?;
            (self.order.last().map(|it| &it.id) == Some(parent)).then_some(self.order.len())
        });
        let start =
            start.ok_or_else(|| Violation::new(format!("version {} came before all others", first.version.id)))?;
        for (at, delta) in deltas.iter().enumerate() {
            let (id, at_time) = (delta.version.id.clone(), delta.version.committed_at);
            let seen = Seen { id, write_id: delta.write_id.clone(), at: at_time };
            match self.order.get(start + at) {
                Some(known) if (&known.id, &known.write_id) != (&seen.id, &seen.write_id) => {
                    return Err(Violation::new(format!(
                        "where version {} by {:?} was, there is version {} by {:?}",
                        known.id, known.write_id, seen.id, seen.write_id
                    )));
                }
                Some(_) => (),
                None => self.order.push(seen),
            }
        }
        Ok(())
    }

    /// Checks the whole of it; see the [simulator](super).
    pub(super) fn judge(&mut self) -> Result<Report, Violation> {
        let mut rows: BTreeSet<i64> = BTreeSet::new();
        let mut states: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
        let mut landed: BTreeMap<&str, &VersionId> = BTreeMap::new();
        self.check_gaps()?;
        for (at, Seen { id: version, write_id, .. }) in self.order.iter().enumerate() {
            // The first version is the table's creation, which nobody tried.
            let Some(write_id) = write_id.as_deref().filter(|_| at > 0) else {
                states.insert(version.as_str().to_owned(), rows.clone());
                continue;
            };
            let attempt = self.attempts.get(write_id);
            let (effect, outcome) =
                attempt.ok_or_else(|| Violation::new(format!("nobody tried to make version {version}")))?;
            if let Some(before) = landed.insert(write_id, version) {
                return Err(Violation::new(format!("versions {before} and {version} are the same commit")));
            }
            match outcome {
                Outcome::Refused(why) => {
                    return Err(Violation::new(format!("version {version} was refused (`{why}`), and is there")));
                }
                Outcome::Acknowledged(as_version) if as_version != version => {
                    return Err(Violation::new(format!("version {version} was acknowledged as {as_version}")));
                }
                Outcome::Acknowledged(_) | Outcome::Unknown => (),
            }
            apply(&mut rows, effect, version, &states)?;
            states.insert(version.as_str().to_owned(), rows.clone());
        }
        for (write_id, (_, outcome)) in &self.attempts {
            if let Outcome::Acknowledged(version) = outcome
                && !landed.contains_key(write_id.as_str())
            {
                return Err(Violation::new(format!("version {version} was acknowledged, and is lost")));
            }
        }
        for (version, seen) in &self.rows {
            let expected: Option<Vec<i64>> = states.get(version).map(|it| it.iter().copied().collect());
            if expected.as_ref() != Some(seen) {
                return Err(Violation::new(format!("version {version} has {seen:?}, not {expected:?}")));
            }
        }
        self.report.versions = self.order.len();
        Ok(self.report)
    }

    /// Where versions have numbers, each is the one after the one before.
    fn check_gaps(&self) -> Result<(), Violation> {
        let number = |it: &Seen| it.id.as_str().parse::<u64>().ok().filter(|_| it.id.as_str().len() < 10);
        for pair in self.order.windows(2) {
            if let [Some(before), Some(next)] = [number(&pair[0]), number(&pair[1])]
                && before + 1 != next
            {
                return Err(Violation::new(format!("version {next} follows version {before}")));
            }
        }
        Ok(())
    }
}

fn apply(
    rows: &mut BTreeSet<i64>,
    effect: &Effect,
    version: &VersionId,
    states: &BTreeMap<String, BTreeSet<i64>>,
) -> Result<(), Violation> {
    if let Some(id) = effect.removed.iter().find(|it| !rows.contains(it)) {
        return Err(Violation::new(format!("version {version} deletes row {id}, which was gone: an update is lost")));
    }
    if let Some(id) = effect.added.iter().find(|it| rows.contains(it)) {
        return Err(Violation::new(format!("version {version} adds row {id} a second time")));
    }
    if let Some(to) = &effect.restored {
        let old = states.get(to.as_str());
        *rows = old.ok_or_else(|| Violation::new(format!("version {version} restores {to}, which never was")))?.clone();
    }
    rows.retain(|it| !effect.removed.contains(it));
    rows.extend(&effect.added);
    Ok(())
}

/// Notes every version the table lists now. Errors of the store are none of the history's, and neither is a log whose
/// start goes away while it is read.
pub(super) async fn note_versions(history: &Mutex<History>, table: &dyn Table) -> Result<(), Violation> {
    match listed(table).await {
        Err(err) if matches!(err.kind(), ErrorKind::Unavailable | ErrorKind::NotFound) => Ok(()),
        listed => note(history, listed),
    }
}

/// The same, when nothing goes on any more and the store does not fail.
pub(super) async fn note_last_versions(history: &Mutex<History>, table: &dyn Table) -> Result<(), Violation> {
    note(history, listed(table).await)
}

async fn listed(table: &dyn Table) -> Result<Vec<VersionDelta>> {
    table.changes(&Span::all()).try_collect().await
}

fn note(history: &Mutex<History>, listed: Result<Vec<VersionDelta>>) -> Result<(), Violation> {
    let listed = listed.map_err(|it| Violation::new(format!("the log cannot be read: {it}")))?;
    history.lock().unwrap_or_else(PoisonError::into_inner).note_order(&listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(added: &[i64], removed: &[i64]) -> Effect {
        Effect { added: added.iter().copied().collect(), removed: removed.iter().copied().collect(), restored: None }
    }

    /// Attempts are `(write id, effect, answer)`; versions are named by their write id.
    fn judged(attempts: &[(&str, Effect, Option<Result<&str>>)], order: &[&str], rows: &[(&str, &[i64])]) -> String {
        let mut history = History::default();
        for (id, effect, answer) in attempts {
            history.note_attempt(id, effect.clone());
            match answer {
                Some(Ok(version)) => history.note_answer(id, &Ok(VersionId::new(*version))).unwrap(),
                Some(Err(err)) => {
                    history.note_answer(id, &Err(lakebed_core::Error::new(err.kind(), err.to_string()))).unwrap();
                }
                None => (),
            }
        }
        let seen = |id: &str, write_id: Option<&str>| Seen {
            id: VersionId::new(id),
            write_id: write_id.map(str::to_owned),
            at: Millis(0),
        };
        history.order.push(seen("0", None));
        history.order.extend(order.iter().map(|it| seen(it, Some(it))));
        for (version, ids) in rows {
            history.note_rows(&VersionId::new(*version), ids.to_vec()).unwrap();
        }
        history.judge().map_or_else(|it| it.to_string(), |_| "fine".into())
    }

    #[test]
    fn each_rule_has_its_sentence() {
        let refused = || Some(Err(lakebed_core::Error::new(ErrorKind::Conflict, "no")));
        let add = || effect(&[1], &[]);
        assert_eq!(judged(&[("a", add(), Some(Ok("a")))], &["a"], &[("a", &[1])]), "fine");
        assert_eq!(judged(&[("a", add(), None)], &["a"], &[]), "fine");
        assert_eq!(judged(&[("a", add(), None)], &[], &[]), "fine");
        assert_eq!(judged(&[("a", add(), Some(Ok("a")))], &[], &[]), "version a was acknowledged, and is lost");
        assert_eq!(judged(&[("a", add(), refused())], &["a"], &[]), "version a was refused (`no`), and is there");
        assert_eq!(judged(&[], &["a"], &[]), "nobody tried to make version a");
        assert_eq!(judged(&[("a", add(), None)], &["a", "a"], &[]), "versions a and a are the same commit");
        assert_eq!(judged(&[("a", add(), None)], &["a"], &[("a", &[2])]), "version a has [2], not Some([1])");
        let twice = [("a", add(), None), ("b", effect(&[], &[1]), None), ("c", effect(&[], &[1]), None)];
        let said = judged(&twice, &["a", "b", "c"], &[]);
        assert_eq!(said, "version c deletes row 1, which was gone: an update is lost");
    }
    #[test]
    fn a_write_tried_again_is_the_same_version() {
        let mut history = History::default();
        history.note_attempt("a", effect(&[1], &[]));
        history.note_answer("a", &Err(lakebed_core::Error::new(ErrorKind::Unknown, "no answer"))).unwrap();
        history.note_answer("a", &Ok(VersionId::new("3"))).unwrap();
        history.note_answer("a", &Err(lakebed_core::Error::new(ErrorKind::Unavailable, "no answer"))).unwrap();
        history.note_answer("a", &Ok(VersionId::new("3"))).unwrap();
        let said = history.note_answer("a", &Ok(VersionId::new("4"))).unwrap_err().to_string();
        assert_eq!(said, "version 3 was acknowledged again, as 4");
    }

    #[test]
    fn a_vacuum_may_empty_what_was_followed_before_its_cutoff() {
        let mut history = History::default();
        for (id, at) in [("0", 0), ("1", 1_000), ("2", 100_000)] {
            history.order.push(Seen { id: VersionId::new(id), write_id: None, at: Millis(at) });
        }
        assert!(!history.may_be_emptied(&VersionId::new("0")));
        history.note_vacuum(Millis(2_000));
        let emptied: Vec<bool> = ["0", "1", "2"].map(|it| history.may_be_emptied(&VersionId::new(it))).into();
        assert_eq!(emptied, [true, false, false]);
        assert!(history.check_end(&[VersionId::new("1")], 1).is_err(), "version 2 is lost");
        assert!(history.check_end(&[VersionId::new("2")], 3).is_err(), "too many were forgotten");
    }
}
