//! Looking a revision up in a table.
use futures::TryStreamExt;

use super::{Base, Rev};
use crate::{
    Error, ErrorKind, Result,
    scan::Scan,
    storage::{Found, Inventory},
    table::Table,
    time::{Tz, parse_time},
    timeline::Timeline,
    version::{AsOf, Millis, Ref, RefKind, Resolved, Span, Version, VersionId},
};

/// Names shown when nothing fits.
const CANDIDATES: usize = 8;

/// The version `rev` names now. Times without a zone are in `tz`.
///
/// # Errors
/// [`ErrorKind::NotFound`] when nothing has the name or nothing is that far back, with what comes near it as a hint;
/// [`ErrorKind::Invalid`] when the name means two versions, or a time is none.
pub async fn resolve(rev: &Rev, table: &dyn Table, now: Millis, tz: &Tz) -> Result<Resolved> {
    let base = match &rev.base {
        Base::Head => table.resolve(&AsOf::Latest).await?,
        Base::Earliest => earliest(table).await?,
        Base::LatestReadable => latest_readable(table).await?,
        Base::Time(text) => table.resolve(&AsOf::Time(parse_time(text, tz, now)?)).await?,
        Base::Tag(name) => of_kind(name, RefKind::Tag, table).await?,
        Base::Branch(name) => of_kind(name, RefKind::Branch, table).await?,
        Base::Version(_) | Base::Name(_) => return by_name(rev, table).await,
    };
    go_back(rev, base, table).await
}

/// A ref by its whole name, else a ref or a version and the steps back from it.
async fn by_name(rev: &Rev, table: &dyn Table) -> Result<Resolved> {
    let refs = match (table.refs().await, &rev.base) {
        // A version's id needs no refs: they may be beyond what this build can read, or lie behind damage that came later.
        (Err(err), Base::Version(_)) if matches!(err.kind(), ErrorKind::Unsupported | ErrorKind::Corrupt) => Vec::new(),
        (refs, _) => refs?,
    };
    let whole: Vec<&Ref> = refs.iter().filter(|it| it.name == rev.text).collect();
    if rev.back > 0 && !whole.is_empty() {
        return by_refs(&rev.text, &whole, table).await;
    }
    let base = ref_or_version(rev, table, &refs).await?;
    go_back(rev, base, table).await
}

/// A ref or a version; both is an error unless they are the same version.
async fn ref_or_version(rev: &Rev, table: &dyn Table, refs: &[Ref]) -> Result<Resolved> {
    let without_steps = rev.text.split(['~', '^']).next().unwrap_or_default();
    let named: Vec<&Ref> = refs.iter().filter(|it| it.name == without_steps).collect();
    let by_ref = if named.is_empty() { None } else { Some(by_refs(without_steps, &named, table).await?) };
    let Base::Version(id) = &rev.base else {
        return by_ref.ok_or_else(|| nothing_named(without_steps, refs));
    };
    let by_id = table.resolve(&AsOf::Version(VersionId::new(id.as_str()))).await;
    match (by_ref, by_id) {
        (None, by_id) => by_id.map_err(|it| with_candidates(it, without_steps, refs)),
        (Some(by_ref), Ok(by_id)) if by_ref.version.id != by_id.version.id => {
            let (kind, version) = (kind_of(&named), &by_ref.version.id);
            let message =
                format!("`{without_steps}` is the {kind} of version {version}, and version {id} is there as well");
            let other = if without_steps == id { format!("v{id}") } else { id.clone() };
            Err(Error::invalid(message).with_hint(format!("write `{kind}:{without_steps}` or `{other}`")))
        }
        (Some(by_ref), Ok(_)) => Ok(by_ref),
        (Some(by_ref), Err(err)) if err.kind() == ErrorKind::NotFound => Ok(by_ref),
        (Some(_), Err(err)) => Err(err),
    }
}

async fn of_kind(name: &str, kind: RefKind, table: &dyn Table) -> Result<Resolved> {
    let refs = table.refs().await?;
    let named: Vec<&Ref> = refs.iter().filter(|it| it.name == name && it.kind == kind).collect();
    if !named.is_empty() {
        return by_refs(name, &named, table).await;
    }
    let Some(other) = refs.iter().find(|it| it.name == name) else { return Err(nothing_named(name, &refs)) };
    let (is, wanted) = (kind_name(other.kind), kind_name(kind));
    Err(Error::not_found(format!("`{}` is a {is}, not a {wanted}", name.escape_debug()))
        .with_hint(format!("write `{is}:{name}`")))
}

/// The version of refs of one name; a tag and a branch may share it.
async fn by_refs(name: &str, refs: &[&Ref], table: &dyn Table) -> Result<Resolved> {
    let Some(first) = refs.first() else { return Err(nothing_named(name, &[])) };
    if refs.iter().any(|it| it.version != first.version) {
        let message = format!("`{}` is both a tag and a branch, of different versions", name.escape_debug());
        return Err(Error::invalid(message).with_hint(format!("write `tag:{name}` or `branch:{name}`")));
    }
    let mut resolved = table.resolve(&AsOf::Version(first.version.clone())).await?;
    resolved.rule = format!("{} `{}` is version {}", kind_of(refs), name.escape_debug(), first.version);
    Ok(resolved)
}

fn kind_of(refs: &[&Ref]) -> &'static str {
    refs.first().map_or("ref", |it| kind_name(it.kind))
}

fn kind_name(kind: RefKind) -> &'static str {
    match kind {
        RefKind::Branch => "branch",
        RefKind::Tag => "tag",
    }
}

async fn every_version(table: &dyn Table) -> Result<Timeline> {
    table.timeline(&Span::all()).await
}

async fn earliest(table: &dyn Table) -> Result<Resolved> {
    let timeline = every_version(table).await?;
    let version = timeline.versions().next().ok_or_else(no_versions)?.clone();
    Ok(Resolved { version, rule: "the oldest version the table still knows".to_owned(), warnings: Vec::new() })
}

fn no_versions() -> Error {
    Error::not_found("the table has no version")
}

/// The newest version whose metadata rebuild and whose files are all there.
async fn latest_readable(table: &dyn Table) -> Result<Resolved> {
    let timeline = every_version(table).await?;
    let mut inventory = Inventory::list(table.storage()).await?;
    let mut skipped = 0_u64;
    for version in timeline.versions().rev() {
        match all_there(table, version, &mut inventory).await {
            Ok(true) => {
                let rule = format!("the newest version with all its files; {skipped} newer ones lack some");
                return Ok(Resolved { version: version.clone(), rule, warnings: Vec::new() });
            }
            // Storage that fails says nothing about the version.
            Err(err) if matches!(err.kind(), ErrorKind::Unavailable | ErrorKind::Unauthorized) => return Err(err),
            Ok(false) | Err(_) => skipped += 1,
        }
    }
    Err(Error::not_found(format!("none of the {skipped} versions has all its files")))
}

async fn all_there(table: &dyn Table, version: &Version, inventory: &mut Inventory) -> Result<bool> {
    let snapshot = table.snapshot(&AsOf::Version(version.id.clone())).await?;
    let mut tasks = snapshot.tasks(&Scan { statistics: false, ..Scan::all() });
    while let Some(task) = tasks.try_next().await? {
        let data = task.files.iter().map(|it| &it.path);
        let deletes = task.deletes.iter().filter_map(|it| it.place.path());
        for path in data.chain(deletes) {
            if !matches!(inventory.find(path).await?, Found::Object(_)) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Follows parents; where a version does not say its parent, the one before it on the timeline.
async fn go_back(rev: &Rev, from: Resolved, table: &dyn Table) -> Result<Resolved> {
    let steps = rev.back;
    if steps == 0 {
        return Ok(from);
    }
    let span = Span { after: None, until: AsOf::Version(from.version.id.clone()) };
    let timeline = table.timeline(&span).await?;
    let versions: Vec<&Version> = timeline.versions().collect();
    let start = versions.iter().rposition(|it| it.id == from.version.id);
    let mut at = start.ok_or_else(|| Error::internal(format!("version {} is not on its timeline", from.version.id)))?;
    for done in 0..steps {
        let parent = match &versions[at].parent {
            Some(parent) => versions[..at].iter().rposition(|it| it.id == *parent),
            None => at.checked_sub(1),
        };
        at = parent.ok_or_else(|| {
            let message =
                format!("`{rev}` goes back {steps} versions, but only {done} are known before {}", from.version.id);
            let oldest = versions.first().map_or_else(String::new, |it| it.id.to_string());
            Error::not_found(message).with_hint(format!("the oldest known version is {oldest}"))
        })?;
    }
    let rule = format!("{steps} before version {} ({})", from.version.id, from.rule);
    Ok(Resolved { version: versions[at].clone(), rule, warnings: from.warnings })
}

fn nothing_named(name: &str, refs: &[Ref]) -> Error {
    with_candidates(
        Error::not_found(format!("no version, tag or branch is named `{}`", name.escape_debug())),
        name,
        refs,
    )
}

/// Adds the refs that come near `name`, nearest first, unless the error has a better hint.
fn with_candidates(err: Error, name: &str, refs: &[Ref]) -> Error {
    if err.kind() != ErrorKind::NotFound || err.hint().is_some() {
        return err;
    }
    if refs.is_empty() {
        return err.with_hint("the table has no tags or branches; `log` shows its versions");
    }
    let mut near: Vec<(usize, &str)> = refs.iter().map(|it| (distance(name, &it.name), it.name.as_str())).collect();
    near.sort_unstable();
    near.dedup();
    let more = near.len().saturating_sub(CANDIDATES);
    let names: Vec<String> = near.iter().take(CANDIDATES).map(|(_, it)| format!("`{}`", it.escape_debug())).collect();
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    err.with_hint(format!("there is {}{rest}", names.join(", ")))
}

/// How many letters to change, without case; long names are compared by their beginning.
fn distance(a: &str, b: &str) -> usize {
    let letters = |it: &str| it.chars().flat_map(char::to_lowercase).take(64).collect::<Vec<char>>();
    let (a, b) = (letters(a), letters(b));
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = change.min(corner + 1).min(row[j] + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}
