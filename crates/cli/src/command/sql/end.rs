//! Whether what was typed so far is whole: every statement ended by `;`, no quote or comment left open.

/// True when `text` holds nothing that waits for more.
pub(super) fn is_whole(text: &str) -> bool {
    let mut rest = text;
    let mut ended = true;
    while let Some(first) = rest.chars().next() {
        let tail = &rest[first.len_utf8()..];
        rest = match first {
            '\'' | '"' | '`' => match after_quote(tail, first) {
                Some(tail) => tail,
                None => return false,
            },
            '-' if tail.starts_with('-') => match tail.find('\n') {
                Some(at) => &tail[at..],
                None => return ended,
            },
            '/' if tail.starts_with('*') => match tail.find("*/") {
                Some(at) => &tail[at + 2..],
                None => return false,
            },
            ';' => {
                ended = true;
                tail
            }
            space if space.is_whitespace() => tail,
            _ => {
                ended = false;
                tail
            }
        };
        if matches!(first, '\'' | '"' | '`') {
            ended = false;
        }
    }
    ended
}

/// What follows the closing quote; a doubled quote is one letter.
fn after_quote(text: &str, quote: char) -> Option<&str> {
    let mut rest = text;
    loop {
        let at = rest.find(quote)?;
        let tail = &rest[at + quote.len_utf8()..];
        match tail.strip_prefix(quote) {
            Some(more) => rest = more,
            None => return Some(tail),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_semicolon_ends_only_outside_quotes_and_comments() {
        let cases = [
            ("", true),
            ("  \n", true),
            ("select 1", false),
            ("select 1;", true),
            ("select 1; select 2", false),
            ("select ';", false),
            ("select ';'", false),
            ("select 'it''s;';", true),
            ("select \"a;b\"", false),
            ("select `a;b`;", true),
            ("select 1; -- done", true),
            ("select 1 -- done;", false),
            ("select 1 /* ; */", false),
            ("select 1 /* ; */;", true),
            ("/* open", false),
            ("select '名前';", true),
        ];
        for (text, whole) in cases {
            assert_eq!(is_whole(text), whole, "{text}");
        }
    }
}
