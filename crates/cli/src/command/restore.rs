//! `restore TABLE@REV`: the rows of an earlier version become those of a new one; what came in between stays in the log.
use lakebed::{
    Opened,
    change::{Fate, Returning},
};
use lakebed_core::Error;
use serde_json::json;

use crate::{
    args::writing::Restore,
    door::Door,
    failure::{Failure, Verdict},
    report::{Column, Kind, Record, Report, Value},
};

const COLUMNS: [Column; 3] = [
    Column::new("action", "ACTION", Kind::Text),
    Column::new("bytes", "BYTES", Kind::Int),
    Column::new("path", "PATH", Kind::Text),
];

pub(crate) async fn run(door: &Door, args: &Restore) -> Result<Verdict, Failure> {
    let opened = door.table(&args.table).await?;
    if opened.revision.is_none() {
        return Err(Error::invalid(format!("`{}` names no version to go back to", args.table))
            .with_hint("write TABLE@REV: `orders@5`, `orders@{2 hours ago}`; `lakebed log TABLE` lists versions")
            .into());
    }
    if args.dry_run {
        let to = door.version(&opened).await?.version.id;
        let returning = door.lake.planner(&opened).returning(&to).await?;
        return plan(door, &opened, &returning);
    }
    let changer = door.lake.changer(&opened)?;
    let to = door.version(&opened).await?.version.id;
    let (returning, changed) = changer.restore(&to).await?;
    let Some(changed) = changed else {
        door.note(&format!("nothing was changed: version {to} is the newest"));
        return Ok(Verdict::Yes);
    };
    let sums = [Fate::Comes, Fate::Goes, Fate::Vector].map(|it| returning.sum(it));
    let mut record = Record::new("lakebed.restore/1", opened.table.storage().location());
    record.put("version", Kind::Text, changed.committed.version.id.as_str());
    record.put("restored", Kind::Text, to.as_str());
    record.put("files_added", Kind::Int, sums[0].0);
    record.put("bytes_added", Kind::Int, sums[0].1);
    record.put("files_removed", Kind::Int, sums[1].0);
    record.put("bytes_removed", Kind::Int, sums[1].1);
    record.put("vectors_changed", Kind::Int, sums[2].0);
    door.record(record)?;
    Ok(Verdict::Yes)
}

fn plan(door: &Door, opened: &Opened, returning: &Returning) -> Result<Verdict, Failure> {
    let mut report = Report::new("lakebed.restore-plan/1", opened.table.storage().location(), &COLUMNS);
    let mut totals = json!({"version": returning.from.as_str(), "restored": returning.to.as_str()});
    let mut said = Vec::new();
    for fate in [Fate::Comes, Fate::Goes, Fate::Vector] {
        let (files, bytes) = returning.sum(fate);
        totals[fate.name()] = json!({"files": files, "bytes": bytes});
        said.push(format!("{} {files}", fate.name()));
    }
    report.envelope.totals = Some(totals);
    report.title = vec![format!(
        "PLAN  restore {}  version {} -> the rows of {}  files: {}",
        opened.name,
        returning.from,
        returning.to,
        said.join(", ")
    )];
    let rows = returning.files.iter();
    report.rows = rows.map(|it| vec![Value::from(it.fate.name()), it.bytes.into(), it.path.as_str().into()]).collect();
    door.report(report)?;
    door.note("nothing was changed");
    Ok(Verdict::Yes)
}
