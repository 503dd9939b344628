//! What verbs share whose act is a plan: the plan is printed, and with `--apply` exactly that plan is carried out.
//!
//! Rows go to stdout before anything is done, so that a run that dies half-way has said what it was about to do. A plan
//! has an id; `--apply=ID` does nothing when the plan made now is another one.
use lakebed::{
    Opened,
    upkeep::{Act, Prepared, Sum},
};
use lakebed_core::maintain::{Applied, Maintenance};
use serde_json::json;

use crate::{
    args::writing::{ANY_PLAN, Apply},
    door::Door,
    failure::{Failure, Verdict},
    report::{Column, Kind, Report},
};

const COLUMNS: [Column; 4] = [
    Column::new("action", "ACTION", Kind::Text),
    Column::new("bytes", "BYTES", Kind::Int),
    Column::new("path", "PATH", Kind::Text),
    Column::new("why", "WHY", Kind::Text),
];

/// One verb's plan.
pub(super) struct Job<'a> {
    /// `lakebed.vacuum/1`.
    pub(super) schema: &'static str,
    pub(super) opened: &'a Opened,
    pub(super) action: Maintenance,
    /// The words of the command without `--apply`.
    pub(super) words: Vec<String>,
}

/// Plans, prints, and carries out if that was asked for.
pub(super) async fn run(door: &Door, job: Job<'_>, apply: &Apply) -> Result<Verdict, Failure> {
    let changer = match apply.apply {
        Some(_) => door.lake.changer(job.opened)?,
        None => door.lake.planner(job.opened),
    };
    let busy = door.busy("planning");
    let prepared = changer.prepare(&job.action).await?;
    drop(busy);
    if let Some(wanted) = apply.apply.as_deref().filter(|it| *it != ANY_PLAN) {
        prepared.check(wanted)?;
    }
    show(door, &job, &prepared)?;
    let empty = prepared.is_empty();
    match &apply.apply {
        _ if empty => door.note("there is nothing to do"),
        None => {
            let command = job.words.iter().map(|it| typed(it)).collect::<Vec<_>>().join(" ");
            door.note(&format!("nothing was changed; to do it: lakebed {command} --apply={}", prepared.id));
        }
        Some(_) => {
            let busy = door.busy("carrying out the plan");
            let applied = changer.apply(prepared).await?;
            drop(busy);
            finish(door, applied)?;
        }
    }
    Ok(Verdict::Yes)
}

/// Prints what a plan would do.
pub(super) fn show(door: &Door, job: &Job<'_>, prepared: &Prepared) -> Result<(), Failure> {
    let mut report = Report::new(job.schema, job.opened.table.storage().location(), &COLUMNS);
    let head = prepared.plan.head.as_ref().map(|it| it.as_str().to_owned());
    let sums = [Act::Delete, Act::Rewrite, Act::Write].map(|it| (it, prepared.sum(it)));
    let said: Vec<String> = sums.iter().filter(|(_, sum)| sum.files > 0).map(|(act, sum)| said(*act, *sum)).collect();
    let verb = job.words.first().map_or("", String::as_str);
    let said = if said.is_empty() { "nothing to do".to_owned() } else { said.join(", ") };
    let version = head.as_ref().map(|it| format!("  version {it}")).unwrap_or_default();
    report.title = vec![format!("PLAN {}  {verb} {}{version}  {said}", prepared.id, job.opened.name)];
    let sum_of = |sum: Sum| json!({"files": sum.files, "bytes": sum.bytes});
    let mut totals = json!({"plan": prepared.id, "version": head, "notes": prepared.plan.notes});
    for (act, sum) in sums {
        totals[act.name()] = sum_of(sum);
    }
    report.envelope.totals = Some(totals);
    report.rows = prepared
        .lines()
        .into_iter()
        .map(|it| {
            let path = it.path.map(|path| path.as_str().to_owned());
            vec![it.act.name().into(), it.bytes.into(), path.into(), it.why.into()]
        })
        .collect();
    if report.rows.is_empty() && door.printer.format == crate::args::Format::Table {
        door.lines(&report.title)?;
    } else {
        door.report(report)?;
    }
    for note in &prepared.plan.notes {
        door.note(&format!("note: {note}"));
    }
    Ok(())
}

fn said(act: Act, sum: Sum) -> String {
    let files = if sum.files == 1 { "file" } else { "files" };
    format!("{} {} {files}, {} bytes", act.name(), sum.files, sum.bytes)
}

/// Says what was done; what was not is the failure.
pub(super) fn finish(door: &Door, applied: Applied) -> Result<(), Failure> {
    if applied.removed > 0 || applied.missing > 0 {
        let gone = if applied.missing > 0 { format!("; {} were gone already", applied.missing) } else { String::new() };
        door.note(&format!("deleted {} files, {} bytes{gone}", applied.removed, applied.bytes));
    }
    match applied.stopped {
        None => Ok(()),
        Some(err) => {
            door.note(&format!("stopped after {} of {} steps", applied.steps, applied.of));
            Err(err.into())
        }
    }
}

/// A word as one types it into a shell.
pub(super) fn typed(word: &str) -> String {
    let bare = !word.is_empty() && word.chars().all(|it| it.is_alphanumeric() || "@-_./,=:".contains(it));
    match word {
        _ if bare => word.to_owned(),
        _ if word.contains('\'') && !word.contains(['"', '$', '`', '\\', '!']) => format!("\"{word}\""),
        _ => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::typed;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        let cases = [
            ("orders@5", "orders@5"),
            ("a b", "'a b'"),
            ("", "''"),
            ("it's", "\"it's\""),
            ("it's $x", "'it'\\''s $x'"),
            ("$x", "'$x'"),
        ];
        for (word, expected) in cases {
            assert_eq!(typed(word), expected);
        }
    }
}
