//! What is wrong or odd with a table: `doctor`.
//!
//! | code | about |
//! |---|---|
//! | D001 | `_last_checkpoint` is damaged, or names no complete checkpoint |
//! | D002 | a checkpoint is incomplete or empty |
//! | D003 | something of the newest version had to be read another way |
//! | D004 | a commit is missing; which versions can still be read |
//! | D005 | a commit is damaged |
//! | D006 | the table needs features this build does not have |
//! | D007 | the schema cannot be read |
//! | D008, D009 | a data file, a deletion vector's file is missing |
//! | D010 | a path lies outside the table |
//! | D011 | a file is added twice, or removed without having been added |
//! | D012 | statistics contradict themselves, or the file |
//! | D013 | times of commits go back |
//! | D014 | commits that only a catalog can ratify |
//! | D015 | an empty or unfinished file in the log |
//! | D016 | a checksum file disagrees with the table |
//! | D017 | a file has another size than the log says |
//! | D018 | many commits since the last checkpoint |
//! | D019 | the newest version cannot be rebuilt |
//! | D020 | a partition value is missing, or none of its column's type |
//! | D021 | a partition value is a local time without a zone, taken as UTC |
//! | D022 | a table property has a value of the wrong kind |
//! | D023 | a deletion vector is damaged |
//! | D024 | a data file cannot be opened (the first hundred are tried) |
//! | D025 | a checkpoint has other files than the commits it sums up: perhaps one of them was overwritten |
//!
//! 1. The log's listing: what is there, what is not, which versions can be rebuilt ([`log`]).
//! 2. Every commit that is left ([`commits`]).
//! 3. The newest state, and its files against one listing of the table ([`files`]).
//! 4. The newest checkpoint against the commits before it ([`agreement`]).
//!
//! Storage that does not answer is an error; everything else is a finding.
use std::collections::BTreeMap;

use lakebed_core::{
    Result,
    table::{Finding, Level},
};

use crate::table::DeltaTable;

mod agreement;
mod commits;
mod files;
mod log;

/// Findings of one code and level that are told one by one; the rest are counted.
const EACH: usize = 20;

/// The findings, worst first.
pub(crate) async fn examine(table: &DeltaTable) -> Result<Vec<Finding>> {
    let log = table.log();
    let mut report = Report::default();
    let listing = log.listing().await?;
    log::examine(log, &listing, &mut report).await?;
    commits::examine(log, &listing, &mut report).await?;
    files::examine(log, &listing, &mut report).await?;
    agreement::examine(log, &listing, &mut report).await?;
    Ok(report.finish())
}

/// Findings as they come, no more than [`EACH`] of a kind.
#[derive(Debug, Default)]
struct Report {
    findings: Vec<Finding>,
    counts: BTreeMap<(&'static str, Level), usize>,
}

impl Report {
    fn add(
        &mut self,
        code: &'static str,
        level: Level,
        object: impl Into<String>,
        evidence: impl Into<String>,
        fix: &str,
    ) {
        let count = self.counts.entry((code, level)).or_default();
        *count += 1;
        if *count <= EACH {
            let (object, evidence) = (object.into(), evidence.into());
            self.findings.push(Finding { code: code.to_owned(), level, object, evidence, fix: fix.to_owned() });
        }
    }

    fn finish(mut self) -> Vec<Finding> {
        for ((code, level), count) in &self.counts {
            let last = self.findings.iter().rfind(|it| it.code == *code && it.level == *level);
            if let Some((more, last)) = count.checked_sub(EACH).filter(|it| *it > 0).zip(last) {
                let (object, evidence) = (format!("{more} more"), "the same of other objects".to_owned());
                self.findings.push(Finding { object, evidence, ..last.clone() });
            }
        }
        self.findings.sort_by(|a, b| b.level.cmp(&a.level).then_with(|| a.code.cmp(&b.code)));
        self.findings
    }
}

/// Ascending numbers as people write them: `0-4, 7`.
fn ranges(numbers: impl IntoIterator<Item = u64>) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let show = |(first, last): &(u64, u64)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    if ranges.is_empty() { "none".to_owned() } else { ranges.iter().map(show).collect::<Vec<_>>().join(", ") }
}

#[cfg(test)]
mod tests;
