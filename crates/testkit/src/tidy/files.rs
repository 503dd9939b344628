//! Length, opening words, and the calls that only one place may make.
use super::{Complaint, Source};

/// Lines of one file; above, its noun wants to be split.
const MOST_LINES: usize = 700;

/// Longer files, with the reason.
const LONGER: [(&str, &str); 0] = [];

/// Where serde derives may stand beside `spec/`, in the file or in the folder of its name: what crosses a wire, with the
/// reason.
const PLAIN_DATA: [(&str, &str); 11] = [
    ("crates/core/src/expr.rs", "predicates travel with tasks"),
    ("crates/core/src/file.rs", "files travel with tasks"),
    ("crates/core/src/format.rs", "names a format on another machine"),
    ("crates/core/src/path.rs", "paths travel with tasks"),
    ("crates/core/src/scan.rs", "tasks travel"),
    ("crates/core/src/version.rs", "versions travel with tasks"),
    ("crates/core/src/write.rs", "what files look like travels with the rows"),
    ("crates/delta/src/log/actions.rs", "borrows from the line it reads"),
    ("crates/delta/src/stats/json.rs", "one statistics text"),
    ("crates/delta/src/timeline/refs.rs", "tags are a metadata domain of ours"),
    ("crates/delta/src/write/stats.rs", "one statistics text"),
];

pub(super) fn check(sources: &[Source]) -> Vec<Complaint> {
    let rust = sources.iter().filter(|it| it.name.starts_with("crates/") && it.name.ends_with(".rs"));
    rust.flat_map(|it| [length(it), opening(it), publishing(it), deleting(it), serde(it)].into_iter().flatten())
        .collect()
}

fn length(source: &Source) -> Option<Complaint> {
    let lines = source.text.lines().count();
    let excused = LONGER.iter().any(|(name, _)| *name == source.name);
    (lines > MOST_LINES && !excused).then(|| Complaint::of(source, format!("{lines} lines: split it")))
}

/// Tests speak for themselves; everything else opens with what it does.
fn opening(source: &Source) -> Option<Complaint> {
    let documented = source.text.trim_start().starts_with("//!");
    (!documented && !source.is_test()).then(|| Complaint::of(source, "opens without a module doc"))
}

/// Only the commit loop and upkeep make versions visible; a publisher may stand before another.
fn publishing(source: &Source) -> Option<Complaint> {
    let home = ["crates/core/src/commit", "crates/core/src/maintain"];
    let forwards = source.text.contains("impl Publisher for");
    if source.is_test() || forwards || home.iter().any(|it| source.name.starts_with(it)) {
        return None;
    }
    calls(source, &[[".publ", "ish("].concat()], "only `commit` and `maintain::run` publish")
}

/// Files that may delete objects, with the reason; a store that hands deletes on to another is no caller.
const DELETING: [(&str, &str); 9] = [
    ("crates/core/src/maintain/apply.rs", "the one path: a batch of a plan, after refs and head were read again"),
    ("crates/core/src/storage/", "carries it out"),
    ("crates/engine/src/session/writes.rs", "a statement of that name, not a call of the store"),
    ("crates/engine/src/write/driver.rs", "files of a write that surely failed, which no version names"),
    ("crates/lakebed/src/catalog_dir/change.rs", "the mark of a schema that is dropped"),
    ("crates/testkit/src/pond/table.rs", "an abandoned write takes its own marker back"),
    ("crates/testkit/src/sim/actors.rs", "plays a driver that cleans up"),
    ("crates/testkit/src/sim/judge.rs", "takes the caches away to see what becomes of the table"),
    ("crates/testkit/src/store.rs", "hands it on, one by one"),
];

/// Only upkeep deletes what a table may need.
fn deleting(source: &Source) -> Option<Complaint> {
    if source.is_test() || DELETING.iter().any(|(name, _)| source.name.starts_with(name)) {
        return None;
    }
    let names = [".delete", ".delete_stream", "remove_file", "remove_dir_all"];
    calls(source, &names.map(|it| format!("{it}(")), "only `maintain::run` deletes: make it a step of a plan")
}

/// The first line outside comments, and before the tests of the file, that makes one of `calls`.
fn calls(source: &Source, calls: &[String], what: &str) -> Option<Complaint> {
    let code = source.text.lines().take_while(|it| it.trim() != "#[cfg(test)]");
    let line = code
        .enumerate()
        .find(|(_, it)| !it.trim_start().starts_with("//") && calls.iter().any(|call| it.contains(call)))?;
    Some(Complaint { line: line.0 + 1, ..Complaint::of(source, what) })
}

/// In floors 0 to 2, wire types stay in `spec/`.
fn serde(source: &Source) -> Option<Complaint> {
    let lower = ["core", "codec", "delta", "iceberg", "hudi", "paimon"].contains(&source.krate()?);
    let home = source.name.contains("/spec/") || source.name.ends_with("/spec.rs");
    let below =
        |file: &str| source.name.strip_prefix(file.trim_end_matches(".rs")).is_some_and(|it| it.starts_with('/'));
    let excused = PLAIN_DATA.iter().any(|(name, _)| *name == source.name || below(name));
    if !lower || home || excused || source.is_test() {
        return None;
    }
    let derives =
        |it: &str| it.trim_start().starts_with("#[derive(") && (it.contains("Serialize") || it.contains("Deserialize"));
    let line = source.text.lines().position(derives)?;
    Some(Complaint { line: line + 1, ..Complaint::of(source, "serde derives belong into `spec/`") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(name: &str, text: &str) -> Vec<String> {
        check(&[Source { name: name.into(), text: text.into() }]).into_iter().map(|it| it.what).collect()
    }

    #[test]
    fn each_rule_bites() {
        assert_eq!(said("crates/core/src/a.rs", "//! Fine.\n"), [""; 0]);
        assert_eq!(said("crates/core/src/a.rs", "use b;\n"), ["opens without a module doc"]);
        assert_eq!(said("crates/core/src/a/tests.rs", "use b;\n"), [""; 0]);
        let long = format!("//! Long.\n{}", "\n".repeat(MOST_LINES));
        assert_eq!(said("crates/core/src/a.rs", &long), ["701 lines: split it"]);
        let publishes = ["//! No.\nit.publ", "ish(x)"].concat();
        assert_eq!(said("crates/engine/src/a.rs", &publishes).len(), 1);
        assert_eq!(said("crates/core/src/commit/attempts.rs", &publishes).len(), 0);
        let deletes = "//! No.\nstorage.delete(&files)";
        assert_eq!(said("crates/delta/src/a.rs", deletes).len(), 1);
        assert_eq!(said("crates/core/src/maintain/apply.rs", deletes).len(), 0);
        assert_eq!(said("crates/delta/src/a.rs", &format!("//! Yes.\n#[cfg(test)]\nmod tests {{\n{deletes}")).len(), 0);
        let derives = "//! No.\n#[derive(Debug, Deserialize)]\n";
        assert_eq!(said("crates/delta/src/a.rs", derives), ["serde derives belong into `spec/`"]);
        assert_eq!(said("crates/delta/src/spec/a.rs", derives), [""; 0]);
    }
}
