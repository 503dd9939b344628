//! The prompt: history in the user's state folder, completion, statements over several lines, backslash commands.
use std::path::{Path, PathBuf};

use lakebed::config::folder_of;
use lakebed_core::{Error, catalog::Catalog as _};
use rustyline::{CompletionType, Config, Editor, error::ReadlineError, history::FileHistory};

use super::{Runner, named_format, names::Assist, names::Names, script};
use crate::{
    door::Door,
    failure::{Failure, Verdict, explained},
    watch::linger,
};

const HELP: &str = "\
\\d            list tables          \\d NAME       describe a table
\\i FILE       run a script         \\format NAME  change the output format
\\timing       times on or off      \\?            this help
\\q            leave (also Ctrl-D)
Statements end with ; and may span lines. Tab completes; Ctrl-C drops what was typed or stops a query.";

/// What a line asks the prompt itself.
#[derive(Debug, PartialEq, Eq)]
enum Command<'a> {
    Quit,
    Help,
    Tables,
    Describe(&'a str),
    Include(&'a str),
    Format(&'a str),
    Timing,
    Unknown(&'a str),
}

fn command(line: &str) -> Option<Command<'_>> {
    let line = line.trim().trim_end_matches(';').trim_end();
    if matches!(line.to_ascii_lowercase().as_str(), "quit" | "exit") {
        return Some(Command::Quit);
    }
    let (word, rest) = line.strip_prefix('\\')?.split_once(char::is_whitespace).unwrap_or((&line[1..], ""));
    let rest = rest.trim();
    Some(match (word, rest) {
        ("q", _) => Command::Quit,
        ("?" | "h" | "help", _) => Command::Help,
        ("d" | "dt", "") => Command::Tables,
        ("d", name) => Command::Describe(name),
        ("i", path) if !path.is_empty() => Command::Include(path),
        ("format", name) if !name.is_empty() => Command::Format(name),
        ("timing", _) => Command::Timing,
        (other, _) => Command::Unknown(other),
    })
}

pub(super) async fn run(runner: &mut Runner<'_>) -> Result<Verdict, Failure> {
    let config = Config::builder().completion_type(CompletionType::List).auto_add_history(true).build();
    let mut editor: Editor<Assist, FileHistory> =
        Editor::with_config(config).map_err(|it| Error::internal(format!("no prompt: {it}")))?;
    let names = Names::default();
    editor.set_helper(Some(Assist { names: names.clone() }));
    let history = history_file(runner.door);
    if let Some(path) = &history {
        // A first session has no history, and a prompt without one still works.
        let _ = editor.load_history(path);
    }
    runner.door.note("Lakebed SQL. \\? for help, \\q to leave.");
    learn_tables(runner.door, &names).await;
    loop {
        match editor.readline("lakebed> ") {
            Ok(line) if line.trim().is_empty() => (),
            Ok(line) => {
                if command(&line) == Some(Command::Quit) {
                    break;
                }
                one(runner, &line, &names).await?;
            }
            Err(ReadlineError::Interrupted) => (),
            Err(ReadlineError::Eof) => break,
            Err(err) => return Err(Error::internal(format!("the prompt failed: {err}")).into()),
        }
    }
    if let Some(path) = &history {
        save_history(&mut editor, path);
    }
    Ok(Verdict::Yes)
}

/// Carries out one input. What is wrong with it is shown, and the prompt goes on; a dead stdout ends it.
async fn one(runner: &mut Runner<'_>, line: &str, names: &Names) -> Result<(), Failure> {
    let door = runner.door;
    let flights = door.lake.flights();
    let done = {
        let mut work = std::pin::pin!(obey(runner, line));
        tokio::select! {
            done = &mut work => done,
            Ok(()) = tokio::signal::ctrl_c() => match linger(flights, &mut work).await {
                Some(done) => done,
                None => Err(flights.unknown().map_or(Failure::Interrupted, Failure::from)),
            },
        }
    };
    flights.settle();
    match done {
        Ok(()) => names.learn(words(line)),
        Err(Failure::Core(err)) => crate::failure::eprint(&explained(&err, &door.terminal)),
        Err(Failure::Interrupted) => door.note("interrupted"),
        Err(other) => return Err(other),
    }
    Ok(())
}

async fn obey(runner: &mut Runner<'_>, line: &str) -> Result<(), Failure> {
    match command(line) {
        None => runner.script(line).await,
        Some(Command::Quit) => Ok(()),
        Some(Command::Help) => runner.door.lines(&HELP.lines().map(str::to_owned).collect::<Vec<_>>()),
        Some(Command::Tables) => runner.script("SHOW TABLES").await,
        Some(Command::Describe(name)) => runner.script(&format!("DESCRIBE {name}")).await,
        Some(Command::Include(path)) => {
            let text = script(runner.door, Path::new(path)).await?;
            runner.script(&text).await
        }
        Some(Command::Format(name)) => {
            runner.printer.format = named_format(name)?;
            Ok(())
        }
        Some(Command::Timing) => {
            runner.timing = !runner.timing;
            runner.door.note(if runner.timing { "timing is on" } else { "timing is off" });
            Ok(())
        }
        Some(Command::Unknown(word)) => {
            let err = Error::invalid(format!("`\\{}` is no command", word.escape_debug()));
            Err(err.with_hint("\\? lists the commands").into())
        }
    }
}

/// Tables of the catalog, for completion only: what cannot be listed is not completed.
async fn learn_tables(door: &Door, names: &Names) {
    let catalog = door.lake.catalog();
    let Ok(schemas) = catalog.namespaces(&[]).await else { return };
    for schema in schemas {
        let Ok(tables) = catalog.tables(&schema).await else { continue };
        let schema = schema.join(".");
        let local = tables.iter().filter(|_| schema == lakebed::SCHEMA).map(|it| it.name.clone());
        names.learn(local.chain(tables.iter().map(|it| format!("{schema}.{}", it.name))));
    }
}

/// Names in a statement that ran: columns and tables one is likely to type again.
fn words(line: &str) -> Vec<String> {
    let parts = line.split(|it: char| !(it.is_alphanumeric() || it == '_'));
    parts.filter(|it| it.len() > 2 && it.starts_with(char::is_alphabetic)).map(str::to_owned).collect()
}

fn history_file(door: &Door) -> Option<PathBuf> {
    Some(folder_of(door.environment(), "XDG_STATE_HOME", ".local/state")?.join("history"))
}

/// Best effort: a full disk must not turn a good session into a failure.
fn save_history(editor: &mut Editor<Assist, FileHistory>, path: &Path) {
    let folder = path.parent().map(std::fs::create_dir_all);
    if folder.is_some_and(|it| it.is_ok())
        && let Err(err) = editor.save_history(path)
    {
        tracing::debug!("history is not saved: {err}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backslash_commands_are_read() {
        let cases = [
            ("\\q", Some(Command::Quit)),
            ("exit;", Some(Command::Quit)),
            ("\\d", Some(Command::Tables)),
            ("\\d sales.orders;", Some(Command::Describe("sales.orders"))),
            ("\\i a b.sql", Some(Command::Include("a b.sql"))),
            ("\\timing", Some(Command::Timing)),
            ("\\format json", Some(Command::Format("json"))),
            ("\\x", Some(Command::Unknown("x"))),
            ("select 1;", None),
        ];
        for (line, expected) in cases {
            assert_eq!(command(line), expected, "{line}");
        }
    }
}
