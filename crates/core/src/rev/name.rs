//! Which names a new tag or branch may have: those that no reader takes for anything else.
use super::{Base, Rev};
use crate::{Error, Result};

const LONGEST: usize = 128;

/// Checks a name that somebody wants to give.
///
/// Names that other programs gave are never checked: they are read as they are.
///
/// # Errors
/// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a name that is empty, too long, a version's id, a word of the
/// grammar, or holds a letter that the grammar, a path or a shell reads as something else.
pub fn check_ref_name(name: &str) -> Result<()> {
    let why = match name.chars().find(|it| !(it.is_alphanumeric() || "_-.".contains(*it))) {
        _ if name.is_empty() => "is empty".to_owned(),
        _ if name.chars().count() > LONGEST => format!("is longer than {LONGEST} letters"),
        Some(odd) => format!("holds `{}`", odd.escape_debug()),
        None if !name.starts_with(|it: char| it.is_alphanumeric() || it == '_') => "starts with a sign".to_owned(),
        None if name.ends_with('.') || name.contains("..") => "reads as a range or a folder".to_owned(),
        None => match Rev::parse(name) {
            Ok(Rev { base: Base::Name(_), back: 0, .. }) => return Ok(()),
            _ => "already names a version".to_owned(),
        },
    };
    let short: String = name.chars().take(40).collect();
    Err(Error::invalid(format!("`{}` cannot be the name of a tag or branch: it {why}", short.escape_debug()))
        .with_hint("letters and digits of any script, with `_`, `-` and `.` inside; not a number alone: `release-42`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: &str) {
        let said = check_ref_name(name).map_or_else(|it| it.to_string(), |()| "fine".to_owned());
        assert!(said.ends_with(expected), "{name:?}: {said}");
    }

    #[test]
    fn names_that_mean_one_thing_are_fine() {
        for name in ["release", "eod-2026-11-29", "v1.2", "_x", "発売", "2026-10-04", "head-of-x", "V", "42a"] {
            check(name, "fine");
        }
    }

    #[test]
    fn names_that_could_be_taken_for_something_else_are_refused() {
        check("", "is empty");
        check(&"x".repeat(129), "is longer than 128 letters");
        for (name, odd) in [("../x", "/"), ("a/b", "/"), ("a b", " "), ("a@b", "@"), ("a~1", "~"), ("a:b", ":")] {
            check(name, &format!("holds `{odd}`"));
        }
        check("a\u{202e}b", "holds `\\u{202e}`");
        for name in ["42", "v42", "V7", "head", "HEAD", "earliest", "latest-readable"] {
            check(name, "already names a version");
        }
        check("-x", "starts with a sign");
        check("a..b", "reads as a range or a folder");
        check("a.", "reads as a range or a folder");
    }
}
