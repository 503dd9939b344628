//! `demo`: a small real table, unpacked into a temporary folder, and its story told by the commands themselves.
//!
//! Every command shown is parsed and run like one that was typed; nothing of its output is written here.
use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use clap::Parser as _;
use lakebed_core::{Error, ErrorKind};

use self::files::{COMMITTED_AT, FILES};
use crate::{
    args::{Cli, Demo, Format, Global},
    door::Door,
    failure::{Failure, Verdict},
    render,
    terminal::Style,
};

mod files;

/// One step of the story.
enum Step {
    Say(&'static str),
    Run(&'static [&'static str]),
    /// Cuts a file in half.
    Damage(&'static str),
}
use Step::{Damage, Run, Say};

const STORY: &[Step] = &[
    Say("A shop keeps its orders in a Delta table. Its log, newest version first:"),
    Run(&["log", "orders"]),
    Say("Every paid order is missing from it today:"),
    Run(&["sql", "-c", "SELECT order_id, customer, status, amount FROM delta.`./orders` ORDER BY order_id"]),
    Say("Version 6 was a DELETE. What did it delete?"),
    Run(&["show", "orders@6"]),
    Say("Nothing is lost: every version is still there. These rows were in version 5 and are not in version 6:"),
    Run(&[
        "sql",
        "-c",
        "SELECT * FROM delta.`./orders` VERSION AS OF 5 EXCEPT SELECT * FROM delta.`./orders` VERSION AS OF 6 \
         ORDER BY order_id",
    ]),
    Say("And in files:"),
    Run(&["diff", "orders@5", "orders@6", "--files"]),
    Say("Which version did a report of the 8th see, and by which rule?"),
    Run(&["at", "orders", "2026-11-08 12:00", "--explain"]),
    Say("Now a disk cuts the checkpoint of version 4 in half:"),
    Damage("_delta_log/00000000000000000004.checkpoint.parquet"),
    Run(&["sql", "-c", "SELECT count(*) AS orders, sum(amount) AS total FROM delta.`./orders`"]),
    Say("The log rebuilt what the checkpoint held, and the answer is right. The doctor says what to mend:"),
    Run(&["doctor", "orders"]),
];

pub(crate) async fn run(door: &Door, args: &Demo, global: &Global) -> Result<Verdict, Failure> {
    let scratch = tempfile::Builder::new().prefix("lakebed-demo-").tempdir();
    let scratch = scratch.map_err(|it| Error::new(ErrorKind::Unavailable, format!("no temporary folder: {it}")))?;
    let folder = match &args.keep {
        Some(folder) => door.folder().join(folder),
        None => scratch.path().to_owned(),
    };
    let table = folder.join("orders");
    if table.exists() {
        let err = Error::new(ErrorKind::AlreadyExists, format!("{} is already there", table.display()));
        return Err(err.with_hint("name another folder with --keep").into());
    }
    unpack(&table).map_err(|it| Error::new(ErrorKind::Unavailable, format!("{}: {it}", table.display())))?;
    for step in STORY {
        match step {
            Say(text) => tell(door, text)?,
            Damage(file) => damage(door, &table, file)?,
            Run(words) => {
                show_command(door, words)?;
                type_in(words, &folder, global).await?;
            }
        }
    }
    tell(door, "That was the tour. Your own table: lakebed log PATH; every command: lakebed help")?;
    if args.keep.is_some() {
        door.note(&format!("the table stays in {}", table.display()));
    }
    Ok(Verdict::Yes)
}

/// Writes the files, with the times at which their versions were committed.
fn unpack(table: &Path) -> std::io::Result<()> {
    for (name, content) in FILES {
        let path = table.join(name);
        fs::create_dir_all(path.parent().expect("a joined path has a parent"))?;
        fs::write(&path, content)?;
        let version = name.strip_prefix("_delta_log/").and_then(|it| it.split('.').next()?.parse::<usize>().ok());
        if let Some(at) = version.and_then(|it| COMMITTED_AT.get(it)) {
            let time = SystemTime::UNIX_EPOCH + Duration::from_millis(*at);
            File::options().write(true).open(&path)?.set_modified(time)?;
        }
    }
    Ok(())
}

fn tell(door: &Door, text: &str) -> Result<(), Failure> {
    let mut out = render::stdout();
    writeln!(out, "\n{}", door.terminal.paint(Style::Good, text))?;
    Ok(out.flush()?)
}

fn show_command(door: &Door, words: &[&str]) -> Result<(), Failure> {
    let quoted = words.iter().map(|it| {
        let bare = it.chars().all(|it| it.is_alphanumeric() || "@-_./,".contains(it));
        if bare { (*it).to_owned() } else { format!("'{it}'") }
    });
    let line = format!("$ lakebed {}", quoted.collect::<Vec<_>>().join(" "));
    let mut out = render::stdout();
    writeln!(out, "{}", door.terminal.paint(Style::Heading, &line))?;
    Ok(out.flush()?)
}

fn damage(door: &Door, table: &Path, file: &str) -> Result<(), Failure> {
    let path: PathBuf = table.join(file);
    let failed = |it: std::io::Error| Error::new(ErrorKind::Unavailable, format!("{}: {it}", path.display()));
    let size = fs::metadata(&path).map_err(failed)?.len();
    File::options().write(true).open(&path).and_then(|it| it.set_len(size / 2)).map_err(failed)?;
    let mut out = render::stdout();
    let line = format!("$ truncate --size={} orders/{file}", size / 2);
    writeln!(out, "{}", door.terminal.paint(Style::Heading, &line))?;
    Ok(out.flush()?)
}

/// Parses and runs one command in the demo's folder. Its verdict is part of the story; its failure ends it.
async fn type_in(words: &[&str], folder: &Path, global: &Global) -> Result<(), Failure> {
    let line = std::iter::once(&"lakebed").chain(words);
    let cli = Cli::try_parse_from(line).map_err(|it| Error::internal(format!("the demo cannot be parsed: {it}")))?;
    let verb = cli.verb.ok_or_else(|| Error::internal("the demo has a command without a verb"))?;
    let settings = Global {
        folder: Some(folder.to_owned()),
        format: global.format.or(Some(Format::Table)),
        color: global.color,
        quiet: global.quiet,
        ..cli.global
    };
    let door = Door::open(&settings)?;
    // Boxed: this command runs the others, which include itself.
    Box::pin(super::run(&door, verb, &settings)).await?;
    Ok(())
}
