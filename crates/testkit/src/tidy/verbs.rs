//! Commands: what a message, a comment or a document tells its reader to run is a verb of the program.
use super::{Complaint, Source};

/// Where the verbs are: the variants of [`ENUM`].
const FILE: &str = "crates/cli/src/args.rs";
const ENUM: &str = "enum Verb {";
/// How a command begins in a text, and in a block of a document.
const CALLS: [&str; 2] = ["`lakebed ", "$ lakebed "];
/// The parser of flags adds it.
const HELP: &str = "help";

pub(super) fn check(sources: &[Source]) -> Vec<Complaint> {
    let Some(args) = sources.iter().find(|it| it.name == FILE) else { return Vec::new() };
    let known = verbs(&args.text);
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|it| !it.name.ends_with("tidy/verbs.rs")) {
        for (line, text) in (1..).zip(source.text.lines()) {
            for verb in named(text).filter(|it| !known.iter().any(|known| known == it)) {
                let what = format!("`lakebed {verb}` is no command");
                complaints.push(Complaint { file: source.name.clone(), line, what });
            }
        }
    }
    complaints
}

/// The variants, as they are typed.
fn verbs(args: &str) -> Vec<String> {
    let variants = args.split_once(ENUM).map_or("", |it| it.1);
    let variants = variants.split_once("\n}").map_or("", |it| it.0).lines().map(str::trim);
    let names = variants.filter(|it| it.starts_with(char::is_uppercase)).filter_map(|it| it.split(['(', ',']).next());
    names.map(str::to_lowercase).chain([HELP.to_owned()]).collect()
}

/// The words that stand in a verb's place.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let calls = CALLS.iter().flat_map(|call| text.match_indices(call).map(|(at, _)| &text[at + call.len()..]));
    let words = calls.map(|it| it.split(|it: char| !it.is_ascii_lowercase() && it != '-').next().unwrap_or_default());
    words.filter(|it| it.starts_with(|it: char| it.is_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_not_there_is_found() {
        let source = |name: &str, text: &str| Source { name: name.to_owned(), text: text.to_owned() };
        let args = source(
            FILE,
            "pub(crate) enum Verb {\n    /// Show\n    Show(Named),\n    Log(Log),\n}\nenum Other {\n    Mend,\n}\n",
        );
        let text =
            "`lakebed show t`, `lakebed log`, `lakebed help`,\n`lakebed -C x`, `lakebed mend t`\n    $ lakebed fly\n";
        let said: Vec<_> = check(&[args, source("docs/x.md", text)]).into_iter().map(|it| (it.line, it.what)).collect();
        assert_eq!(
            said,
            [(2, "`lakebed mend` is no command".to_owned()), (3, "`lakebed fly` is no command".to_owned())]
        );
    }
}
