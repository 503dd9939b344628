//! Amounts as people write them.
use std::time::Duration;

/// `2GiB`, `512 MB`, `65536` → bytes; `None` for anything else and for what does not fit.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// `250ms`, `30s`, `10m`, `2h`, `7d`; a bare number is seconds.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let millis: u64 = match unit {
        "ms" => 1,
        "" | "s" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(millis).map(Duration::from_millis)
}

/// `true`, `1`, `yes`, `on` and their opposites.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

fn split(text: &str) -> Option<(u64, &str)> {
    let text = text.trim();
    let digits = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..digits].parse().ok()?, text[digits..].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_have_units() {
        let bytes =
            [("2GiB", Some(2 << 30)), ("512 mb", Some(512_000_000)), ("7", Some(7)), ("-1", None), ("1x", None)];
        for (text, expected) in bytes {
            assert_eq!(parse_bytes(text), expected, "{text}");
        }
        assert_eq!(parse_bytes("99999999999TiB"), None);
        let times = [("10m", Some(600_000)), ("250ms", Some(250)), ("3", Some(3000)), ("1w", None), ("", None)];
        for (text, expected) in times {
            assert_eq!(parse_duration(text), expected.map(Duration::from_millis), "{text}");
        }
    }
}
