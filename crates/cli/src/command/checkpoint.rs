//! `checkpoint`: sum the log up, so that the table opens faster. Harmless, so it acts at once.
use lakebed_core::maintain::Maintenance;

use super::plan::{self, Job};
use crate::{
    args::writing::Checkpoint,
    door::Door,
    failure::{Failure, Verdict},
};

pub(crate) async fn run(door: &Door, args: &Checkpoint) -> Result<Verdict, Failure> {
    let opened = door.bare_table(&args.table).await?;
    let changer = if args.dry_run { door.lake.planner(&opened) } else { door.lake.changer(&opened)? };
    let words = vec!["checkpoint".to_owned(), args.table.clone()];
    let job = Job { schema: "lakebed.checkpoint/1", opened: &opened, action: Maintenance::Checkpoint, words };
    let prepared = changer.prepare(&job.action).await?;
    plan::show(door, &job, &prepared)?;
    if prepared.is_empty() {
        door.note("there is nothing to do: the newest version has a checkpoint");
    } else if args.dry_run {
        door.note("nothing was written");
    } else {
        plan::finish(door, changer.apply(prepared).await?)?;
    }
    Ok(Verdict::Yes)
}
