//! `at TABLE TIME`: which version a time names. `--explain` says by which rule.
use lakebed::readable;
use lakebed_core::version::AsOf;

use crate::{
    args::At,
    door::Door,
    failure::{Failure, Verdict},
    report::{Column, Kind, Report, Value},
};

const COLUMNS: [Column; 4] = [
    Column::new("id", "VERSION", Kind::Text),
    Column::new("committed_at", "COMMITTED", Kind::Time),
    Column::new("readable", "READABLE", Kind::Text),
    Column::new("rule", "RULE", Kind::Text).wide(),
];

pub(crate) async fn run(door: &Door, args: &At) -> Result<Verdict, Failure> {
    let opened = door.table(&args.table).await?;
    let time = door.time(&args.time)?;
    let resolved = opened.table.resolve(&AsOf::Time(time)).await?;
    for warning in &resolved.warnings {
        door.warn(warning);
    }
    let version = resolved.version;
    let readable = readable::check(opened.table.as_ref(), std::slice::from_ref(&version)).await?;
    let readable = readable.first().map(ToString::to_string);
    if door.explain {
        door.note(&format!("time: {time}"));
        door.note(&format!("rule: {}", resolved.rule));
    }
    let mut report = Report::new("lakebed.at/1", opened.table.storage().location(), &COLUMNS);
    report.rows.push(vec![
        Value::from(version.id.as_str()),
        Value::from(version.committed_at),
        Value::from(readable),
        Value::from(resolved.rule),
    ]);
    door.report(report)?;
    Ok(Verdict::Yes)
}
