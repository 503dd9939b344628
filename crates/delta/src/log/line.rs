//! Lines of a log file, with where they stand.
use lakebed_core::Result;

use super::LogError;

/// No line may be longer: one action is parsed as a whole.
const MAX_LINE_BYTES: usize = 256 << 20;

/// A line without its end, and where it starts in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) text: &'a str,
    pub(crate) start: usize,
}

/// The lines of `text` that hold something.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        while self.at < self.text.len() {
            let start = self.at;
            let rest = &self.text[start..];
            // `str::find` searches a machine word at a time.
            let end = rest.find('\n').unwrap_or(rest.len());
            self.at = start + end + 1;
            let line = rest[..end].trim_end_matches('\r');
            if !line.bytes().all(|it| it == b' ' || it == b'\t') {
                return Some(Line { text: line, start });
            }
        }
        None
    }
}

impl Line<'_> {
    /// The error of parsing this line of `text`, the text of `file`.
    pub(crate) fn error(&self, file: &str, text: &str, err: &serde_json::Error) -> LogError {
        let offset = self.start + err.column().saturating_sub(1).min(self.text.len());
        let line = 1 + text.as_bytes()[..self.start].iter().filter(|it| **it == b'\n').count();
        // The message ends in a position within the line, which says less than ours.
        let rule = err.to_string();
        let rule = rule.split(" at line ").next().unwrap_or_default().to_owned();
        LogError::BadLine { file: file.to_owned(), line, offset, rule }
    }
}

/// Checks that `body` can be a log file: not empty, UTF-8, no byte order mark, no endless line.
pub(crate) fn check_text<'a>(file: &str, body: &'a [u8]) -> Result<&'a str> {
    if body.is_empty() {
        return Err(LogError::BadFile { file: file.to_owned(), rule: "the file is empty".to_owned() }.into());
    }
    let bad = |offset: usize, rule: &str| {
        let line = 1 + body[..offset].iter().filter(|it| **it == b'\n').count();
        LogError::BadLine { file: file.to_owned(), line, offset, rule: rule.to_owned() }
    };
    let text = std::str::from_utf8(body).map_err(|it| bad(it.valid_up_to(), "not UTF-8"))?;
    if text.starts_with('\u{feff}') {
        return Err(bad(0, "a byte order mark is not JSON").into());
    }
    if body.len() > MAX_LINE_BYTES {
        let long = Lines::new(text).find(|it| it.text.len() > MAX_LINE_BYTES);
        if let Some(line) = long {
            return Err(bad(line.start, "the line is longer than 256 MiB").into());
        }
    }
    Ok(text)
}
