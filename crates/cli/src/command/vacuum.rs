//! `vacuum`: delete files that no kept version needs.
use lakebed_core::maintain::{Maintenance, Retain};

use super::plan::{self, Job};
use crate::{
    args::writing::Vacuum,
    door::Door,
    failure::{Failure, Verdict},
};

pub(crate) async fn run(door: &Door, args: &Vacuum) -> Result<Verdict, Failure> {
    let opened = door.bare_table(&args.table).await?;
    let older_than = args.older_than.as_deref().map(|it| door.past("--older-than", it)).transpose()?;
    let action = Maintenance::Vacuum { retain: Retain::default(), older_than, lite: args.lite, forced: args.force };
    let mut words = vec!["vacuum".to_owned(), args.table.clone()];
    if let Some(age) = &args.older_than {
        words.extend(["--older-than".to_owned(), age.clone()]);
    }
    words.extend(args.lite.then(|| "--lite".to_owned()));
    words.extend(args.force.then(|| "--force".to_owned()));
    plan::run(door, Job { schema: "lakebed.vacuum/1", opened: &opened, action, words }, &args.apply).await
}
