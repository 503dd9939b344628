//! Ranges of revisions.
use std::collections::HashSet;

use super::{Rev, invalid, resolve::resolve};
use crate::{
    Error, Result,
    table::Table,
    time::Tz,
    version::{AsOf, Millis, Resolved, Span, Version, VersionId},
};

/// The versions after one revision up to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevRange {
    /// `None` starts before the first version.
    from: Option<Rev>,
    to: Rev,
    /// Starts at the newest version that both have behind them, not at `from`.
    since_common: bool,
}

impl RevRange {
    /// Reads `a..b`, `a..`, `..b` or `a...b`; `None` when `text` is no range.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) when one of its ends is no revision.
    pub fn parse(text: &str) -> Result<Option<Self>> {
        let Some(at) = dots(text) else { return Ok(None) };
        let since_common = text[at..].starts_with("...");
        let (from, to) = (text[..at].trim(), text[at + if since_common { 3 } else { 2 }..].trim());
        if since_common && (from.is_empty() || to.is_empty()) {
            return Err(invalid(text, "needs a version on both sides of `...`"));
        }
        let from = if from.is_empty() { None } else { Some(Rev::parse(from)?) };
        let to = if to.is_empty() { Rev::head() } else { Rev::parse(to)? };
        Ok(Some(Self { from, to, since_common }))
    }
}

/// Where the first dots outside of braces are.
fn dots(text: &str) -> Option<usize> {
    let mut open = false;
    for (at, it) in text.char_indices() {
        match it {
            '{' => open = true,
            '}' => open = false,
            '.' if !open && text[at..].starts_with("..") => return Some(at),
            _ => (),
        }
    }
    None
}

/// The version a range starts after, and the one it ends with.
///
/// # Errors
/// As [`resolve`]; [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) when the ends of `a...b` have no version in common.
pub async fn resolve_range(
    range: &RevRange,
    table: &dyn Table,
    now: Millis,
    tz: &Tz,
) -> Result<(Option<Version>, Resolved)> {
    let to = resolve(&range.to, table, now, tz).await?;
    let Some(from) = &range.from else { return Ok((None, to)) };
    let from = resolve(from, table, now, tz).await?.version;
    if !range.since_common {
        return Ok((Some(from), to));
    }
    let ours: HashSet<VersionId> = behind(&from, table).await?.into_iter().map(|it| it.id).collect();
    let theirs = behind(&to.version, table).await?;
    match theirs.into_iter().rev().find(|it| ours.contains(&it.id)) {
        Some(common) => Ok((Some(common), to)),
        None => {
            let message = format!("versions {} and {} have no version in common", from.id, to.version.id);
            Err(Error::not_found(message))
        }
    }
}

/// `version` and what came before it, oldest first.
async fn behind(version: &Version, table: &dyn Table) -> Result<Vec<Version>> {
    let span = Span { after: None, until: AsOf::Version(version.id.clone()) };
    let timeline = table.timeline(&span).await?;
    Ok(timeline.versions().cloned().collect())
}
