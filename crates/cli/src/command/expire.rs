//! `expire`: forget old versions. Their log goes; files that only they needed are left to `vacuum`.
use lakebed::Opened;
use lakebed_core::{
    Error,
    maintain::{Maintenance, Retain},
    version::AsOf,
};

use super::plan::{self, Job};
use crate::{
    args::writing::Expire,
    door::Door,
    failure::{Failure, Verdict},
};

pub(crate) async fn run(door: &Door, args: &Expire) -> Result<Verdict, Failure> {
    let opened = door.bare_table(&args.table).await?;
    let newer_than = args.older_than.as_deref().map(|it| door.past("--older-than", it)).transpose()?;
    let retain = match (newer_than, args.keep) {
        (None, None) => own_retention(&opened).await?,
        (newer_than, keep) => Retain { newer_than, at_least: keep.unwrap_or(1), ..Retain::default() },
    };
    let mut words = vec!["expire".to_owned(), args.table.clone()];
    if let Some(age) = &args.older_than {
        words.extend(["--older-than".to_owned(), age.clone()]);
    }
    if let Some(keep) = args.keep {
        words.extend(["--keep".to_owned(), keep.to_string()]);
    }
    let action = Maintenance::Expire(retain);
    plan::run(door, Job { schema: "lakebed.expire/1", opened: &opened, action, words }, &args.apply).await
}

/// What the table itself says.
async fn own_retention(opened: &Opened) -> Result<Retain, Failure> {
    let head = opened.table.snapshot(&AsOf::Latest).await?;
    head.retention().ok_or_else(|| {
        let message = format!("{} does not say how long its versions stay", opened.name);
        Error::invalid(message).with_hint("say it: --older-than 30d, or --keep 10").into()
    })
}
