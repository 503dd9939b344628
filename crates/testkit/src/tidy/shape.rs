//! Four siblings, one shape: know one format crate, know all.
use std::collections::BTreeSet;

use super::{Complaint, Source};

const FORMATS: [&str; 4] = ["delta", "iceberg", "hudi", "paimon"];

/// Top-level modules that every format has.
const COMMON: [&str; 17] = [
    "changes",
    "deletes",
    "error",
    "examine",
    "extensions",
    "feed",
    "layout",
    "lib",
    "properties",
    "scan",
    "schema",
    "snapshot",
    "spec",
    "table",
    "timeline",
    "upkeep",
    "write",
];

/// Modules that one format has besides, with the reason.
const MORE: [(&str, &str, &str); 8] = [
    ("delta", "checkpoint", "three layouts of checkpoints and their sidecars"),
    ("delta", "listing", "the columnar list of live files"),
    ("delta", "log", "listing and reading the log's many kinds of files"),
    ("delta", "partition", "partition values are text"),
    ("delta", "protocol", "versions and features decide what may be read"),
    ("delta", "prune", "statistics as text and as structs"),
    ("delta", "state", "replay of actions"),
    ("delta", "stats", "statistics as text and as structs"),
];

/// Modules that one format lacks, with the reason.
const LESS: [(&str, &str, &str); 0] = [];

pub(super) fn check(sources: &[Source]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for format in FORMATS {
        let have = modules(sources, format);
        if have.is_empty() {
            continue;
        }
        let folder = format!("crates/{format}/src");
        let mut complain = |what: String| complaints.push(Complaint { file: folder.clone(), line: 0, what });
        for module in &have {
            let known =
                COMMON.contains(&module.as_str()) || MORE.iter().any(|(of, name, _)| *of == format && name == module);
            if !known {
                complain(format!("`{module}` is in no sibling: list it with its reason, or find it a home"));
            }
        }
        for module in COMMON {
            let excused = LESS.iter().any(|(of, name, _)| *of == format && *name == module);
            if have.contains(module) == excused {
                let what = if excused { "is there: take it off the list of what is missing" } else { "is missing" };
                complain(format!("`{module}` {what}"));
            }
        }
    }
    complaints
}

fn modules(sources: &[Source], format: &str) -> BTreeSet<String> {
    let prefix = format!("crates/{format}/src/");
    let below = sources.iter().filter_map(|it| it.name.strip_prefix(&prefix));
    below.filter(|it| it.ends_with(".rs")).filter_map(|it| it.split(['/', '.']).next()).map(str::to_owned).collect()
}
