//! Fixtures: tables in `testdata/<format>/<name>` that other engines wrote.
//!
//! Each stands in `testdata/README.md`, has a `fixture.toml`, and is named by a test. One that no test names is dead.
use std::{fs, path::Path};

use super::{Complaint, Source};

pub(super) fn check(root: &Path, sources: &[Source]) -> Vec<Complaint> {
    let testdata = root.join("testdata");
    let catalogue = fs::read_to_string(testdata.join("README.md")).unwrap_or_default();
    let mut complaints = Vec::new();
    for format in folders(&testdata) {
        for name in folders(&testdata.join(&format)) {
            let place = format!("testdata/{format}/{name}");
            let mut complain =
                |what: &str| complaints.push(Complaint { file: place.clone(), line: 0, what: what.to_owned() });
            if !catalogue.contains(&name) {
                complain("is not in testdata/README.md");
            }
            if !root.join(&place).join("fixture.toml").is_file() {
                complain("has no fixture.toml: who wrote these bytes, and what do they show?");
            }
            let tests = sources.iter().filter(|it| it.name.ends_with(".rs") || it.name.ends_with(".slt"));
            if !tests.into_iter().any(|it| it.text.contains(&name)) {
                complain("is dead: no test names it");
            }
        }
    }
    complaints
}

fn folders(below: &Path) -> Vec<String> {
    let entries = fs::read_dir(below).into_iter().flatten().flatten();
    let folders = entries.filter(|it| it.path().is_dir());
    let mut names: Vec<String> = folders.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
