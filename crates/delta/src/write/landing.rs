//! Whether a commit that won is where readers look.
//!
//! A writer may be paused for longer than the log goes back. Clean-up has then taken the versions after its base, its slot
//! is free, and a commit there is created like any other: below the newest checkpoint, where nobody sees it. It shows by
//! what comes behind it: a log goes on after each of its versions without a gap, as long as the version is part of it.
//!
//! Such a gap may also be that of a clean-up which has just begun to take this very commit with others. So nothing is undone,
//! and the outcome is unknown.
use lakebed_core::{Error, ErrorKind, Result, path::FilePath};

use crate::{layout, log::Log};

/// # Errors
/// Unknown if later versions are there, but not the next one.
pub(crate) async fn confirm(log: &Log, version: u64) -> Result<()> {
    let listing = log.listing_from(version).await?;
    let Some(newest) = listing.newest().filter(|it| *it > version) else { return Ok(()) };
    let next = version.saturating_add(1);
    if listing.commits().any(|it| it.file.version == next) {
        return Ok(());
    }
    // A listing takes time: the next version may have come after its place in it was passed.
    let path = FilePath::below(layout::commit_path(next));
    if log.storage().head(&path).await?.is_some() {
        return Ok(());
    }
    let message = format!(
        "{} was written, but version {next} is gone and {newest} is there: the log was cleaned up while the write ran, and \
         readers may not see it",
        layout::commit_path(version)
    );
    Err(Error::new(ErrorKind::Unknown, message)
        .with_hint("look whether the newest version has the rows, and if not, write them again; delete nothing"))
}
