//! `orphans`: delete files that no version of the table ever named, as writers that died leave them.
use lakebed_core::{Error, ErrorKind, maintain::Maintenance};

use super::plan::{self, Job};
use crate::{
    args::writing::Orphans,
    door::Door,
    failure::{Failure, Verdict},
};

/// A file of a write under way looks like an orphan until its commit; few writes take longer.
const SAFE_AGE_MS: i64 = 86_400_000;

pub(crate) async fn run(door: &Door, args: &Orphans) -> Result<Verdict, Failure> {
    let opened = door.bare_table(&args.table).await?;
    let older_than = door.past("--older-than", &args.older_than)?;
    if !args.force && door.env().clock.now().0.saturating_sub(older_than.0) < SAFE_AGE_MS {
        let message = format!("--older-than {}: younger files may belong to a write under way", args.older_than);
        return Err(Error::new(ErrorKind::Refused, message)
            .with_hint("a day at least; --force accepts less, when surely nobody writes")
            .into());
    }
    let mut words = vec!["orphans".to_owned(), args.table.clone(), "--older-than".to_owned(), args.older_than.clone()];
    words.extend(args.force.then(|| "--force".to_owned()));
    let action = Maintenance::RemoveOrphans { older_than };
    plan::run(door, Job { schema: "lakebed.orphans/1", opened: &opened, action, words }, &args.apply).await
}
