//! What the sources must look like, checked over the files of the workspace.
//!
//! | rule | module |
//! |---|---|
//! | nothing depends upward, siblings not on each other, DataFusion only where rows are | [`floors`] |
//! | format crates have the same files; what one has more or less stands in a list with its reason | [`shape`] |
//! | no words of a workplace, no open ends without an issue | [`words`] |
//! | files are short, open with their algorithm, and only commit and upkeep publish | [`files`] |
//! | every fixture is in the catalogue and in a test | [`fixtures`] |
//! | commands that messages and documents advise are there | [`verbs`] |
//!
//! Each complaint names the file and the rule. Exceptions stand in lists beside the rules, with a reason each.
mod files;
mod fixtures;
mod floors;
mod shape;
mod verbs;
mod words;

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

/// Something that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Complaint {
    /// Relative to the workspace.
    pub file: String,
    /// From 1; 0 is the whole file.
    pub line: usize,
    pub what: String,
}

impl Complaint {
    fn of(file: &Source, what: impl Into<String>) -> Self {
        Self { file: file.name.clone(), line: 0, what: what.into() }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.what),
            line => write!(f, "{}:{line}: {}", self.file, self.what),
        }
    }
}

/// A text file of the workspace.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Relative to the workspace, with `/`.
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Source {
    /// The folder below `crates/` it lies in.
    fn krate(&self) -> Option<&str> {
        self.name.strip_prefix("crates/")?.split('/').next()
    }

    fn is_test(&self) -> bool {
        self.name.contains("/tests/") || self.name.ends_with("/tests.rs") || self.name.contains("/benches/")
    }
}

/// The workspace this crate lies in.
pub fn workspace() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("this crate lies in crates/ of a workspace").to_owned()
}

/// Everything wrong with the workspace at `root`, sorted by file.
///
/// # Panics
/// If the sources cannot be read.
pub fn check(root: &Path) -> Vec<Complaint> {
    let mut sources = Vec::new();
    collect(root, root, &mut sources);
    let mut complaints = Vec::new();
    complaints.extend(floors::check(&sources));
    complaints.extend(shape::check(&sources));
    complaints.extend(verbs::check(&sources));
    complaints.extend(words::check(&sources));
    complaints.extend(files::check(&sources));
    complaints.extend(fixtures::check(root, &sources));
    complaints.sort();
    complaints
}

/// Folders that hold no sources of ours.
const SKIPPED: [&str; 5] = ["target", ".git", "testdata", "node_modules", "demo"];
const TEXT: [&str; 8] = ["rs", "toml", "md", "sh", "slt", "yml", "yaml", "py"];

fn collect(root: &Path, folder: &Path, found: &mut Vec<Source>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|err| panic!("{}: {err}", folder.display()));
    for entry in entries {
        let path = entry.unwrap_or_else(|err| panic!("{}: {err}", folder.display())).path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !SKIPPED.contains(&name.as_str()) {
                collect(root, &path, found);
            }
            continue;
        }
        let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        let script = path.starts_with(root.join(".ci"));
        if !script && !TEXT.contains(&extension.as_str()) {
            continue;
        }
        let relative = path.strip_prefix(root).expect("it was found below the root");
        // A file that went away while the folder was read is not there.
        let Ok(text) = fs::read_to_string(&path) else { continue };
        found.push(Source { name: relative.to_string_lossy().replace('\\', "/"), text });
    }
}

#[cfg(test)]
mod tests;
