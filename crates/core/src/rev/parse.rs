//! Text to revisions.
use super::{Base, Rev, invalid};
use crate::Result;

const LONGEST: usize = 1_024;

/// Splits `table@rev` at the last `@` that can be one; a caller tries the whole text as a path before.
///
/// Not split: an `@` in braces, and one in the host of a URL (`abfss://container@account/t`).
pub fn split_table_rev(text: &str) -> (&str, Option<&str>) {
    let mut at = None;
    let mut open = false;
    for (index, it) in text.char_indices() {
        match it {
            // Braces only count behind an `@`: a folder may have one in its name.
            '{' if text[..index].ends_with('@') => open = true,
            '}' => open = false,
            '@' if !open && !in_host(&text[..index]) => at = Some(index),
            _ => (),
        }
    }
    match at {
        // Nothing before it: `@v3` names no table.
        Some(index) if index > 0 => (&text[..index], Some(&text[index + 1..])),
        _ => (text, None),
    }
}

fn in_host(before: &str) -> bool {
    before.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'))
}

pub(super) fn rev(text: &str) -> Result<Rev> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(invalid(text, "is empty"));
    }
    if trimmed.len() > LONGEST {
        return Err(invalid(text, "is too long"));
    }
    if trimmed.contains(char::is_control) {
        return Err(invalid(text, "holds a control character"));
    }
    if trimmed == "-" {
        return Ok(Rev { text: trimmed.to_owned(), base: Base::Head, back: 1 });
    }
    let (base, steps) = split_steps(trimmed)?;
    Ok(Rev { text: trimmed.to_owned(), base: read_base(text, base)?, back: back(text, steps)? })
}

/// The base and the steps behind it.
fn split_steps(text: &str) -> Result<(&str, &str)> {
    if text.starts_with('{') {
        let end = text.find('}').ok_or_else(|| invalid(text, "opens a brace and does not close it"))?;
        return Ok(text.split_at(end + 1));
    }
    Ok(text.split_at(text.find(['~', '^']).unwrap_or(text.len())))
}

fn read_base(text: &str, base: &str) -> Result<Base> {
    if let Some(time) = base.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
        return Ok(Base::Time(time.to_owned()));
    }
    match base {
        "" | "head" | "HEAD" => return Ok(Base::Head),
        "earliest" => return Ok(Base::Earliest),
        "latest-readable" => return Ok(Base::LatestReadable),
        _ => (),
    }
    if let Some((kind, name)) = base.split_once(':') {
        if name.is_empty() && matches!(kind, "tag" | "branch" | "savepoint" | "set") {
            return Err(invalid(text, "names nothing behind the colon"));
        }
        match kind {
            "tag" | "savepoint" => return Ok(Base::Tag(name.to_owned())),
            "branch" => return Ok(Base::Branch(name.to_owned())),
            // The members of a set are pinned by tags of this name.
            "set" => return Ok(Base::Tag(format!("lakebed-set-{name}"))),
            _ => (),
        }
    }
    let id = base.strip_prefix(['v', 'V']).unwrap_or(base);
    if !id.is_empty() && id.bytes().all(|it| it.is_ascii_digit()) {
        let significant = id.trim_start_matches('0');
        return Ok(Base::Version(if significant.is_empty() { "0" } else { significant }.to_owned()));
    }
    Ok(Base::Name(base.to_owned()))
}

/// The sum of `^`, `~` and `~n`.
fn back(text: &str, steps: &str) -> Result<u64> {
    let too_far = || invalid(text, "goes back further than any table has versions");
    let mut back: u64 = 0;
    let mut rest = steps;
    loop {
        let mut letters = rest.chars();
        let Some(step) = letters.next() else { break };
        rest = letters.as_str();
        let count = match step {
            '^' => 1,
            '~' => {
                let (digits, after) = rest.split_at(rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len()));
                rest = after;
                if digits.is_empty() { 1 } else { digits.parse().map_err(|_| too_far())? }
            }
            _ => return Err(invalid(text, "has something else than steps behind its name")),
        };
        back = back.checked_add(count).ok_or_else(too_far)?;
        if !rest.is_empty() && !rest.starts_with(['^', '~']) {
            return Err(invalid(text, "has something else than steps behind its name"));
        }
    }
    Ok(back)
}
