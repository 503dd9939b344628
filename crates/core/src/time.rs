//! Moments as people write them.
//!
//! Three forms: a date, with or without a time of day, with or without a zone (`2026-10-04`, `2026-10-04 20:57`,
//! `2026-10-04T20:57:02.123+08:00`, `… UTC`, `… Asia/Shanghai`); a distance back from now (`2 hours ago`, `1d12h ago`); and
//! the words `now`, `today`, `yesterday`. What has no zone is in the caller's. A date alone is its first moment.
//!
//! Nothing is guessed: a local time that a change of clocks makes happen twice, or never, is an error that says so.
use std::fmt;

use chrono::{DateTime, Days, FixedOffset, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Utc};

use crate::{Error, Result, version::Millis};

mod span;

/// A time zone: a fixed offset or a name of the IANA database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tz {
    Offset(FixedOffset),
    Named(chrono_tz::Tz),
}

impl Tz {
    pub const UTC: Self = Self::Named(chrono_tz::Tz::UTC);

    /// `UTC`, `Z`, `+08:00`, `+0800`, `+08`, `Asia/Shanghai`; names match without case.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for any other text.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("z") {
            return Ok(Self::UTC);
        }
        if text.starts_with(['+', '-']) {
            return offset(text).map(Self::Offset).ok_or_else(|| unknown_zone(text));
        }
        let named = chrono_tz::TZ_VARIANTS.iter().find(|it| it.name().eq_ignore_ascii_case(text));
        named.copied().map(Self::Named).ok_or_else(|| unknown_zone(text))
    }

    /// The moment a clock in this zone shows `local`.
    fn moment(self, local: NaiveDateTime) -> Result<Millis> {
        match self {
            Self::Offset(zone) => one(zone.from_local_datetime(&local), local, self),
            Self::Named(zone) => one(zone.from_local_datetime(&local), local, self),
        }
    }

    /// What a clock in this zone shows at `at`.
    fn local(self, at: Millis) -> Result<NaiveDateTime> {
        let utc = DateTime::<Utc>::from_timestamp_millis(at.0);
        let utc = utc.ok_or_else(|| Error::invalid(format!("{at} is no date")))?;
        Ok(match self {
            Self::Offset(zone) => utc.with_timezone(&zone).naive_local(),
            Self::Named(zone) => utc.with_timezone(&zone).naive_local(),
        })
    }
}

impl fmt::Display for Tz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Offset(zone) => zone.fmt(f),
            Self::Named(zone) => f.write_str(zone.name()),
        }
    }
}

/// The moment `text` means; fractions of a millisecond are cut.
///
/// # Errors
/// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid) for a text that is no moment, a date that is not in the calendar,
/// or a local time that the zone has twice or never.
pub fn parse_time(text: &str, tz: &Tz, now: Millis) -> Result<Millis> {
    let trimmed = text.trim();
    let lower = trimmed.to_ascii_lowercase();
    match lower.as_str() {
        "now" => return Ok(now),
        "today" => return day(tz.local(now)?.date(), *tz),
        "yesterday" => {
            let today = tz.local(now)?.date();
            return day(today.checked_sub_days(Days::new(1)).ok_or_else(|| no_time(text))?, *tz);
        }
        _ => (),
    }
    if let Some(back) = lower.strip_suffix("ago") {
        let back = span::parse(back.trim()).ok_or_else(|| no_time(text))?;
        return now.0.checked_sub(back).map(Millis).ok_or_else(|| no_time(text));
    }
    date_time(trimmed, *tz).unwrap_or_else(|| Err(no_time(text)))
}

fn day(date: NaiveDate, tz: Tz) -> Result<Millis> {
    tz.moment(date.and_time(NaiveTime::MIN))
}

/// `None` when `text` has not the form; an error when it has, and means nothing.
fn date_time(text: &str, tz: Tz) -> Option<Result<Millis>> {
    let date = text.get(..10)?;
    let date = digits(date, b"dddd-dd-dd").then(|| NaiveDate::parse_from_str(date, "%Y-%m-%d"))?;
    let Ok(date) = date else {
        return Some(Err(Error::invalid(format!("`{}` is not in the calendar", text.escape_debug()))));
    };
    let rest = text.get(10..)?;
    if rest.is_empty() {
        return Some(day(date, tz));
    }
    let after = rest.strip_prefix(['T', 't', ' ']);
    let tail = after.unwrap_or(rest).trim_start();
    let end = tail.find(|it: char| !(it.is_ascii_digit() || it == ':' || it == '.')).unwrap_or(tail.len());
    let (time, zone) = tail.split_at(end);
    let time = match (time, after) {
        ("", Some(_)) if zone.is_empty() || rest.starts_with(['T', 't']) => return None,
        ("", _) => NaiveTime::MIN,
        (_, None) => return None,
        (time, Some(_)) => time_of_day(time)?,
    };
    let zone = match zone.trim() {
        "" => Ok(tz),
        zone => Tz::parse(zone),
    };
    Some(zone.and_then(|zone| zone.moment(date.and_time(time))))
}

/// `20:57`, `20:57:02`, `20:57:02.123456789`.
fn time_of_day(text: &str) -> Option<NaiveTime> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if text.ends_with('.') || fraction.len() > 9 || !fraction.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let with_seconds = digits(whole, b"dd:dd:dd");
    if !(with_seconds || digits(whole, b"dd:dd") && fraction.is_empty()) {
        return None;
    }
    let number = |from: usize| whole.get(from..from + 2).map_or(Some(0), |it| it.parse::<u32>().ok());
    let millis = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    NaiveTime::from_hms_milli_opt(number(0)?, number(3)?, number(6)?, millis)
}

/// `+08`, `+0800`, `+08:00`, `-03:30`.
fn offset(text: &str) -> Option<FixedOffset> {
    let (sign, rest) = text.split_at(1);
    let (hours, minutes) = match rest.len() {
        2 if digits(rest, b"dd") => (rest, "0"),
        4 if digits(rest, b"dddd") => rest.split_at(2),
        5 if digits(rest, b"dd:dd") => (&rest[..2], &rest[3..]),
        _ => return None,
    };
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    if hours > 18 || minutes > 59 {
        return None;
    }
    let seconds = hours * 3_600 + minutes * 60;
    FixedOffset::east_opt(if sign == "-" { -seconds } else { seconds })
}

/// Whether `text` is of the form `form`, where `d` is a digit.
fn digits(text: &str, form: &[u8]) -> bool {
    text.len() == form.len()
        && text.bytes().zip(form).all(|(it, form)| if *form == b'd' { it.is_ascii_digit() } else { it == *form })
}

fn one<Z: TimeZone>(found: LocalResult<DateTime<Z>>, local: NaiveDateTime, tz: Tz) -> Result<Millis> {
    match found {
        LocalResult::Single(at) => Ok(Millis(at.timestamp_millis())),
        LocalResult::Ambiguous(..) => {
            Err(Error::invalid(format!("{local} happens twice in {tz}, when clocks go back"))
                .with_hint("write the offset: `2026-10-25 02:30:00+02:00`"))
        }
        LocalResult::None => Err(Error::invalid(format!("{local} never happens in {tz}, where clocks go forward"))
            .with_hint("write the offset: `2026-03-29 02:30:00+01:00`")),
    }
}

fn unknown_zone(text: &str) -> Error {
    Error::invalid(format!("unknown time zone `{}`", text.escape_debug()))
        .with_hint("a zone is `UTC`, an offset as `+08:00`, or a name as `Europe/Berlin`")
}

fn no_time(text: &str) -> Error {
    let short: String = text.chars().take(100).collect();
    Error::invalid(format!("`{}` is no time", short.escape_debug()))
        .with_hint("write `2026-10-04 20:57:02`, `2026-10-04T20:57:02+08:00`, `2026-10-04`, `2 hours ago`, `yesterday`")
}

#[cfg(test)]
mod tests;
