//! `man`: the manual as one page on stdout, or a page a command in a folder.
use std::{fs, io::Write as _, path::Path};

use clap::{Command, CommandFactory as _};
use clap_mangen::Man as Page;
use lakebed::config::KEYS;
use lakebed_core::{Error, ErrorKind};

use crate::{
    args::{Cli, Man},
    failure::{Failure, Verdict},
    render,
};

const EXIT_CODES: &[(&str, &str)] = &[
    ("0", "success"),
    ("1", "a negative answer: a difference with --exit-code, an ERROR found by doctor"),
    ("2", "usage: the request is wrong, SQL does not parse, a name is taken"),
    ("3", "not found: table, version, ref or file"),
    ("4", "conflict: nothing was committed, safe to retry"),
    ("5", "refused for safety"),
    ("6", "the table is corrupt"),
    ("7", "unsupported feature; it is named"),
    ("8", "unauthenticated or forbidden"),
    ("9", "storage unavailable, retrying may help"),
    ("10", "unknown whether a commit became visible"),
    ("11", "limit on memory, time or size reached"),
    ("70", "a bug in Lakebed"),
    ("130", "interrupted"),
    ("141", "the reader of the output went away"),
];

pub(crate) fn run(args: &Man) -> Result<Verdict, Failure> {
    let root = Cli::command();
    match &args.dir {
        Some(folder) => write_pages(&root, folder)?,
        None => {
            let mut out = render::stdout();
            out.write_all(&main_page(&root)?)?;
            out.flush()?;
        }
    }
    Ok(Verdict::Yes)
}

fn write_pages(root: &Command, folder: &Path) -> Result<(), Failure> {
    let failed = |it: std::io::Error| Error::new(ErrorKind::Unavailable, format!("{}: {it}", folder.display()));
    fs::create_dir_all(folder).map_err(failed)?;
    fs::write(folder.join("lakebed.1"), main_page(root)?).map_err(failed)?;
    for verb in root.get_subcommands() {
        let name = format!("lakebed-{}", verb.get_name());
        let mut page = Vec::new();
        Page::new(verb.clone().name(name.clone())).render(&mut page)?;
        fs::write(folder.join(format!("{name}.1")), page).map_err(failed)?;
    }
    Ok(())
}

/// What clap knows, and below it revisions, exit codes and configuration.
fn main_page(root: &Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    Page::new(root.clone()).render(&mut page)?;
    writeln!(page, ".SH REVISIONS\n{}", REVISIONS.trim())?;
    section(&mut page, "EXIT STATUS", EXIT_CODES.iter().map(|(code, text)| ((*code).to_owned(), (*text).to_owned())))?;
    let keys = KEYS.iter().map(|it| (format!("{} (variable {})", it.name, it.variable()), it.about.to_owned()));
    section(&mut page, "CONFIGURATION", keys)?;
    Ok(page)
}

fn section(page: &mut Vec<u8>, title: &str, items: impl Iterator<Item = (String, String)>) -> Result<(), Failure> {
    writeln!(page, ".SH {title}")?;
    for (name, text) in items {
        writeln!(page, ".TP\n{}\n{}", name.replace('-', "\\-"), text.replace('-', "\\-"))?;
    }
    Ok(())
}

const REVISIONS: &str = "
A table may be followed by @REV: a version id (@42, @v42), a name (@release, @tag:release, @branch:dev), a time
(@{2026-10-04 20:57:02+08:00}, @{2 hours ago}), an ancestor (@~3, @^), or @head, @earliest, @latest-readable. A time
names the last version committed at or before it.
";
