//! Spans of time in words: `2 hours`, `1d12h`, `an hour`, `1 day 3 hours and 5 minutes`.

/// Milliseconds; `None` for anything else. Months and years have no fixed length and are not taken.
pub(super) fn parse(text: &str) -> Option<i64> {
    let mut total: i64 = 0;
    let mut rest = text.trim_start();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (count, unit_on) = number(rest)?;
        let unit_on = unit_on.trim_start();
        let end = unit_on.find(|it: char| !it.is_ascii_alphabetic()).unwrap_or(unit_on.len());
        let (unit, after) = unit_on.split_at(end);
        total = total.checked_add(count.checked_mul(millis(unit)?)?)?;
        rest = after.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
        rest = rest.strip_prefix("and ").unwrap_or(rest).trim_start();
    }
    Some(total)
}

fn number(text: &str) -> Option<(i64, &str)> {
    for article in ["an ", "a ", "one "] {
        if let Some(rest) = text.strip_prefix(article) {
            return Some((1, rest));
        }
    }
    let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

fn millis(unit: &str) -> Option<i64> {
    Some(match unit {
        "ms" | "millisecond" | "milliseconds" => 1,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000,
        "h" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        "w" | "week" | "weeks" => 604_800_000,
        _ => return None,
    })
}
