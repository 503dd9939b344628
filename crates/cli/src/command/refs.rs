//! `refs`: the names that keep versions alive.
use lakebed::Opened;
use lakebed_core::version::{Ref, RefKind};

use crate::{
    args::Named,
    door::Door,
    failure::{Failure, Verdict},
    report::{Column, Kind, Report, Value},
};

const COLUMNS: [Column; 5] = [
    Column::new("name", "NAME", Kind::Text),
    Column::new("kind", "KIND", Kind::Text),
    Column::new("version", "VERSION", Kind::Text),
    Column::new("created_at", "CREATED", Kind::Time),
    Column::new("expires_at", "EXPIRES", Kind::Time),
];

pub(crate) async fn run(door: &Door, args: &Named) -> Result<Verdict, Failure> {
    let opened = door.table(&args.table).await?;
    list(door, &opened, |_| true).await
}

/// Prints the refs that `wanted` picks, by name.
pub(super) async fn list(door: &Door, opened: &Opened, wanted: impl Fn(&Ref) -> bool) -> Result<Verdict, Failure> {
    let mut refs = opened.table.refs().await?;
    refs.retain(wanted);
    refs.sort_by(|a, b| a.name.cmp(&b.name));
    let mut report = Report::new("lakebed.refs/1", opened.table.storage().location(), &COLUMNS);
    for it in refs {
        let kind = match it.kind {
            RefKind::Branch => "branch",
            RefKind::Tag => "tag",
        };
        report.rows.push(vec![
            Value::from(it.name),
            Value::from(kind),
            Value::from(it.version.as_str()),
            Value::from(it.created_at),
            Value::from(it.expires_at),
        ]);
    }
    door.report(report)?;
    Ok(Verdict::Yes)
}
