//! `doctor`: what is wrong or odd with a table. Exit 1 only when something is an ERROR.
//!
//! The format examines its own metadata; beside that, every file that a version needs must be there.
use lakebed::readable::{self, Readable};
use lakebed_core::{
    table::{Finding, Level, Table},
    version::{Span, Version},
};

use crate::{
    args::Named,
    door::Door,
    failure::{Failure, Verdict},
    report::{Column, Kind, Report, Value},
};

const COLUMNS: [Column; 5] = [
    Column::new("code", "CODE", Kind::Text),
    Column::new("level", "LEVEL", Kind::Text),
    Column::new("object", "OBJECT", Kind::Text),
    Column::new("evidence", "EVIDENCE", Kind::Text),
    Column::new("fix", "FIX", Kind::Text),
];

pub(crate) async fn run(door: &Door, args: &Named) -> Result<Verdict, Failure> {
    let opened = door.table(&args.table).await?;
    let busy = door.busy("examining");
    let mut findings = opened.table.examine().await?;
    let told = findings.iter().any(|it| it.level == Level::Error);
    findings.extend(files(opened.table.as_ref()).await?.into_iter().filter(|it| !(told && it.level == Level::Error)));
    drop(busy);
    findings.sort_by_key(|it| std::cmp::Reverse(it.level));
    let bad = findings.iter().any(|it| it.level == Level::Error);
    let mut report = Report::new("lakebed.doctor/1", opened.table.storage().location(), &COLUMNS);
    report.rows = findings.iter().map(row).collect();
    if report.rows.is_empty() {
        door.note(&format!("{}: nothing is wrong", opened.name));
    }
    door.report(report)?;
    Ok(if bad { Verdict::No } else { Verdict::Yes })
}

fn row(finding: &Finding) -> Vec<Value> {
    let level = match finding.level {
        Level::Error => "ERROR",
        Level::Warn => "WARN",
        Level::Info => "INFO",
    };
    vec![
        Value::from(finding.code.as_str()),
        Value::from(level),
        Value::from(finding.object.as_str()),
        Value::from(finding.evidence.as_str()),
        Value::from(finding.fix.as_str()),
    ]
}

/// Versions whose files are gone, where the format does not say so itself: an error for the newest, a warning for the older ones, which vacuum leaves so.
async fn files(table: &dyn Table) -> Result<Vec<Finding>, Failure> {
    // A timeline that cannot be read is the format's own finding.
    let Ok(timeline) = table.timeline(&Span::all()).await else { return Ok(Vec::new()) };
    let versions: Vec<Version> = timeline.versions().cloned().collect();
    let answers = readable::check(table, &versions).await?;
    let mut findings = Vec::new();
    if let (Some(head), Some(Readable::FilesMissing(count))) = (versions.last(), answers.last()) {
        findings.push(Finding {
            code: "L001".to_owned(),
            level: Level::Error,
            object: format!("version {}", head.id),
            evidence: format!("{count} files of the newest version are gone"),
            fix: match newest_readable(&versions, &answers) {
                Some(id) => format!("bring the files back from a backup; version {id} can still be read"),
                None => "bring the files back from a backup; no version can be read".to_owned(),
            },
        });
    }
    let older = versions.iter().zip(&answers).rev().skip(1).filter(|(_, it)| **it != Readable::Yes);
    let older: Vec<&Version> = older.map(|(version, _)| version).collect();
    if let (Some(newest), Some(oldest)) = (older.first(), older.last()) {
        findings.push(Finding {
            code: "L002".to_owned(),
            level: Level::Info,
            object: format!("versions {} to {}", oldest.id, newest.id),
            evidence: format!("{} older versions cannot be read any more", older.len()),
            fix: "nothing, if they were vacuumed or expired; `lakebed log` says why for each".to_owned(),
        });
    }
    Ok(findings)
}

fn newest_readable<'a>(versions: &'a [Version], answers: &[Readable]) -> Option<&'a str> {
    let known = versions.iter().zip(answers).rev();
    known.into_iter().find(|(_, it)| **it == Readable::Yes).map(|(version, _)| version.id.as_str())
}
