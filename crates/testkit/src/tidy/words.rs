//! Words that must not stand in what is published.
use super::{Complaint, Source};

/// Names of a workplace, in pieces so that this file does not hold them.
const BANNED: [(&str, &str); 14] = [
    ("/wo", "rk/"),
    ("/ro", "ot/"),
    ("session he", "lper"),
    ("sub", "agent"),
    ("the coord", "inator"),
    ("language mo", "del"),
    ("index.crates", ".io"),
    ("static.crates", ".io"),
    ("registry.npm", "js"),
    ("files.python", "hosted"),
    ("pypi", ".org"),
    ("proxy.golang", ".org"),
    ("repo1.ma", "ven"),
    ("repo.ma", "ven"),
];

/// Open ends name the issue that closes them: `TODO(#12)`.
const OPEN: (&str, &str) = ("TO", "DO");

/// Files that say such words for a reason.
const ALLOWED: [(&str, &str); 1] = [("clippy.toml", "names the lint of that name")];

pub(super) fn check(sources: &[Source]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for source in sources.iter().filter(|it| !ALLOWED.iter().any(|(name, _)| *name == it.name)) {
        for (line, text) in (1..).zip(source.text.lines()) {
            complaints.extend(line_words(text).map(|what| Complaint { file: source.name.clone(), line, what }));
        }
    }
    complaints
}

fn line_words(text: &str) -> impl Iterator<Item = String> {
    let lower = text.to_lowercase();
    let banned = BANNED.iter().map(|(one, two)| format!("{one}{two}")).filter(move |it| lower.contains(it.as_str()));
    let open = format!("{}{}", OPEN.0, OPEN.1);
    let open = text.match_indices(&open).any(|(at, _)| {
        let word = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
        let after = &text[at + open.len()..];
        !word(text[..at].chars().next_back()) && !word(after.chars().next()) && !after.starts_with("(#")
    });
    let open = open.then(|| "an open end without the number of its issue".to_owned());
    banned.map(|it| format!("`{it}` belongs to no reader")).chain(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> usize {
        line_words(text).count()
    }

    #[test]
    fn banned_words_are_found_and_others_not() {
        assert_eq!(said(&["see /wo", "rk/main"].concat()), 1);
        assert_eq!(said("a session of the engine works"), 0);
        assert_eq!(said(&["// TO", "DO: later"].concat()), 1);
        assert_eq!(said(&["// TO", "DO(#12): later"].concat()), 0);
        assert_eq!(said("MAKE_TODOS"), 0);
    }
}
