//! `demo`: a small table is made in a temporary folder, and its story told by the commands themselves.
//!
//! Every command shown is parsed and run like one that was typed; nothing of its output is written here. The story has a
//! clock of its own: weeks pass in it, and what it prints is the same each time.
use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Parser as _;
use lakebed_core::{Error, ErrorKind, env::Env};

use self::{
    story::{STORY, Step},
    world::{StoryClock, StoryIds},
};
use super::plan::typed;
use crate::{
    args::{Cli, Demo, Format, Global},
    door::Door,
    failure::{Failure, Verdict, explained},
    render,
    terminal::Style,
};

mod story;
mod world;

const WAREHOUSE: &str = "lakehouse";

pub(crate) async fn run(door: &Door, args: &Demo, global: &Global) -> Result<Verdict, Failure> {
    let scratch = tempfile::Builder::new().prefix("lakebed-demo-").tempdir();
    let scratch = scratch.map_err(|it| Error::new(ErrorKind::Unavailable, format!("no temporary folder: {it}")))?;
    let folder = match &args.keep {
        Some(folder) => door.folder().join(folder),
        None => scratch.path().to_owned(),
    };
    let table = folder.join(WAREHOUSE).join(lakebed::SCHEMA).join("orders");
    if table.exists() {
        let err = Error::new(ErrorKind::AlreadyExists, format!("{} is already there", table.display()));
        return Err(err.with_hint("name another folder with --keep").into());
    }
    door.lake.stores().check_writes()?;
    fs::create_dir_all(&folder).map_err(|it| failed(&folder, &it))?;
    let clock = Arc::new(StoryClock::new());
    let env = Env { clock: Arc::clone(&clock) as _, ids: Arc::new(StoryIds::default()) };
    let stage = Stage { door, folder: &folder, global, env };
    for step in STORY {
        match step {
            Step::Say(text) => stage.tell(text)?,
            Step::Hour(hours) => clock.set(*hours),
            Step::Run(words) => stage.command(words).await?,
            Step::Refused(code, words) => stage.refused(*code, words).await?,
            Step::Damage => stage.damage(&table)?,
        }
    }
    stage.tell("That was the tour. Your own table: lakebed log PATH; every command: lakebed help")?;
    if args.keep.is_some() {
        door.note(&format!("the table stays in {}", table.display()));
    }
    Ok(Verdict::Yes)
}

/// Where the story plays.
struct Stage<'a> {
    door: &'a Door,
    folder: &'a Path,
    global: &'a Global,
    env: Env,
}

impl Stage<'_> {
    fn tell(&self, text: &str) -> Result<(), Failure> {
        self.print(&format!("\n{}", self.door.terminal.paint(Style::Good, text)))
    }

    fn print(&self, text: &str) -> Result<(), Failure> {
        let mut out = render::stdout();
        writeln!(out, "{text}")?;
        Ok(out.flush()?)
    }

    fn prompt(&self, line: &str) -> Result<(), Failure> {
        self.print(&self.door.terminal.paint(Style::Heading, &format!("$ {line}")))
    }

    /// Shows a command and runs it. Its verdict is part of the story; its failure ends it.
    async fn command(&self, words: &[&str]) -> Result<(), Failure> {
        self.prompt(&shown(words))?;
        self.type_in(words).await.map(|_| ())
    }

    async fn refused(&self, code: u8, words: &[&str]) -> Result<(), Failure> {
        self.prompt(&shown(words))?;
        match self.type_in(words).await {
            Err(Failure::Core(err)) if err.kind().exit_code() == code => {
                self.print(explained(&err, &self.door.terminal).trim_end())
            }
            Err(other) => Err(other),
            Ok(_) => Err(Error::internal("the demo's bad write was not refused").into()),
        }
    }

    /// Parses and runs one command in the demo's folder.
    async fn type_in(&self, words: &[&str]) -> Result<Verdict, Failure> {
        let line = std::iter::once(&"lakebed").chain(words);
        let cli =
            Cli::try_parse_from(line).map_err(|it| Error::internal(format!("the demo cannot be parsed: {it}")))?;
        let verb = cli.verb.ok_or_else(|| Error::internal("the demo has a command without a verb"))?;
        let settings = Global {
            folder: Some(self.folder.to_owned()),
            warehouse: Some(WAREHOUSE.to_owned()),
            format: self.global.format.or(Some(Format::Table)),
            color: self.global.color,
            quiet: self.global.quiet,
            ..cli.global
        };
        let door = Door::open_in(&settings, self.env.clone())?;
        // Boxed: this command runs the others, which include itself.
        Box::pin(super::run(&door, verb, &settings)).await
    }

    /// Cuts the newest checkpoint in half.
    fn damage(&self, table: &Path) -> Result<(), Failure> {
        let log = table.join("_delta_log");
        let path = newest_checkpoint(&log).map_err(|it| failed(&log, &it))?;
        let path = path.ok_or_else(|| Error::internal("the demo's table has no checkpoint"))?;
        let size = fs::metadata(&path).map_err(|it| failed(&path, &it))?.len();
        let cut = File::options().write(true).open(&path).and_then(|it| it.set_len(size / 2));
        cut.map_err(|it| failed(&path, &it))?;
        let below = path.strip_prefix(self.folder).unwrap_or(&path);
        self.prompt(&format!("truncate --size={} {}", size / 2, below.display()))
    }
}

fn newest_checkpoint(log: &Path) -> std::io::Result<Option<PathBuf>> {
    let names = fs::read_dir(log)?.map(|it| it.map(|it| it.path()));
    let mut names: Vec<PathBuf> = names.collect::<std::io::Result<_>>()?;
    names.retain(|it| it.to_string_lossy().ends_with(".checkpoint.parquet"));
    Ok(names.into_iter().max())
}

fn shown(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|it| typed(it)).collect();
    format!("lakebed {}", words.join(" "))
}

fn failed(path: &Path, err: &std::io::Error) -> Failure {
    Error::new(ErrorKind::Unavailable, format!("{}: {err}", path.display())).into()
}
