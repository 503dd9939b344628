//! What the terminal can show: colours, widths, and names that must not play tricks with it.
use std::io::IsTerminal;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::args::When;

/// What was found out about the two streams, once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
    pub(crate) color: bool,
    pub(crate) color_stderr: bool,
    /// Columns of the terminal behind stdout; `None` in a pipe.
    pub(crate) width: Option<usize>,
}

impl Terminal {
    /// `NO_COLOR` and `TERM=dumb` switch colours off, `CLICOLOR_FORCE` on; a flag wins over all three.
    pub(crate) fn detect(color: When) -> Self {
        let (stdout, stderr) = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        let set = |name: &str| std::env::var_os(name).is_some_and(|it| !it.is_empty());
        let forced = set("CLICOLOR_FORCE") && std::env::var_os("CLICOLOR_FORCE").is_none_or(|it| it != "0");
        let wanted = |tty: bool| match color {
            When::Always => true,
            When::Never => false,
            When::Auto if set("NO_COLOR") => false,
            When::Auto => forced || (tty && std::env::var_os("TERM").is_none_or(|it| it != "dumb")),
        };
        let width = stdout.then(|| usize::from(console_width()));
        Self { stdout, stderr, color: wanted(stdout), color_stderr: wanted(stderr), width }
    }

    /// `text` in `style`, if stdout shows colours.
    pub(crate) fn paint(&self, style: Style, text: &str) -> String {
        if self.color { style.around(text) } else { text.to_owned() }
    }
}

fn console_width() -> u16 {
    let set = std::env::var("COLUMNS").ok().and_then(|it| it.parse().ok());
    let asked = || terminal_size::terminal_size().map(|(columns, _)| columns.0);
    set.or_else(asked).unwrap_or(80).max(20)
}

/// The few styles there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Heading,
    Faint,
    Good,
    Warning,
    Bad,
}

impl Style {
    pub(crate) fn around(self, text: &str) -> String {
        let code = match self {
            Self::Heading => "1",
            Self::Faint => "2",
            Self::Good => "32",
            Self::Warning => "33",
            Self::Bad => "31;1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// `text` with every character that could move the cursor, change colours or turn the reading direction escaped.
///
/// Line breaks and tabs become `\n` and `\t`; a name cannot paint over its neighbours.
pub(crate) fn plain(text: &str) -> String {
    if !text.chars().any(dangerous) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if dangerous(letter) { out.extend(letter.escape_default()) } else { out.push(letter) }
    }
    out
}

/// Control characters, and the overrides and isolates of the bidirectional algorithm.
fn dangerous(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{061c}' | '\u{2028}' | '\u{2029}')
}

/// Columns `text` takes on a terminal; East Asian wide letters take two.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// The start of `text` that fits in `columns`, with `…` if that is not all of it.
pub(crate) fn shortened(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for letter in text.chars() {
        used += letter.width().unwrap_or(0);
        if used > columns {
            break;
        }
        out.push(letter);
    }
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tricks_are_escaped() {
        let cases = [
            ("plain 名前", "plain 名前"),
            ("a\x1b[31mb", "a\\u{1b}[31mb"),
            ("a\nb\t", "a\\nb\\t"),
            ("abc\u{202e}fdp.exe", "abc\\u{202e}fdp.exe"),
            ("\u{9b}31m", "\\u{9b}31m"),
        ];
        for (text, expected) in cases {
            assert_eq!(plain(text), expected);
        }
    }

    #[test]
    fn wide_letters_take_two_columns() {
        assert_eq!((width("名前"), width("abc"), width("")), (4, 3, 0));
        assert_eq!(shortened("名前です", 5), "名前…");
        assert_eq!(shortened("abcdef", 4), "abc…");
        assert_eq!(shortened("abcd", 4), "abcd");
    }
}
