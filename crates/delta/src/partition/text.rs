//! Values as text, where the standard library's own parsers differ from the log's spelling.
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime};

pub(crate) fn boolean(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

/// Days since the epoch of `yyyy-MM-dd`; years beyond 9999 carry a sign.
pub(crate) fn date(text: &str) -> Option<i32> {
    naive_date(text).map(days)
}

fn days(date: NaiveDate) -> i32 {
    date.num_days_from_ce() - EPOCH_FROM_CE
}

/// 1970-01-01 counted from 0001-01-01 as day 1.
const EPOCH_FROM_CE: i32 = 719_163;

fn naive_date(text: &str) -> Option<NaiveDate> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let mut parts = rest.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let digits = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    let sound = parts.next().is_none() && year.len() >= 4 && month.len() == 2 && day.len() == 2;
    if !sound || ![year, month, day].into_iter().all(digits) {
        return None;
    }
    NaiveDate::from_ymd_opt(sign * year.parse::<i32>().ok()?, month.parse().ok()?, day.parse().ok()?)
}

/// Microseconds since the epoch of ISO 8601 with `Z` or an offset.
pub(crate) fn timestamp_with_zone(text: &str) -> Option<i64> {
    let (local, offset_seconds) = match text.strip_suffix('Z') {
        Some(local) => (local, 0),
        None => {
            // The offset is the last six characters: `+02:00`.
            let split = text.len().checked_sub(6).filter(|it| text.is_char_boundary(*it))?;
            let (local, offset) = text.split_at(split);
            (local, offset_seconds(offset)?)
        }
    };
    if !local.contains(['T', ' ']) {
        return None;
    }
    timestamp_without_zone(local)?.checked_sub(offset_seconds * 1_000_000)
}

fn offset_seconds(text: &str) -> Option<i64> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    ((0..=18).contains(&hours) && (0..60).contains(&minutes)).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Microseconds since the epoch, as if in UTC, of a date with or without a time of day.
pub(crate) fn timestamp_without_zone(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, naive_time(time)?),
        None => (text, NaiveTime::MIN),
    };
    // Seconds and microseconds apart: nanoseconds since the epoch overflow in 2262.
    Some(NaiveDateTime::new(naive_date(date)?, time).and_utc().timestamp_micros())
}

/// `HH:mm:ss` with up to six digits of fraction; more would be lost.
fn naive_time(text: &str) -> Option<NaiveTime> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 6 || !fraction.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let micros = format!("{fraction:0<6}").parse().ok()?;
    let mut parts = clock.split(':').map(|it| if it.len() == 2 { it.parse::<u32>().ok() } else { None });
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next().unwrap_or(Some(0))?);
    if parts.next().is_some() {
        return None;
    }
    NaiveTime::from_hms_micro_opt(hours, minutes, seconds, micros)
}

/// The unscaled value of a decimal with `scale` fraction digits; `None` if digits would be lost or do not fit.
pub(crate) fn decimal(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.as_bytes().first()? {
        b'-' => (true, &mantissa[1..]),
        b'+' => (false, &mantissa[1..]),
        _ => (false, mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let both = || whole.bytes().chain(fraction.bytes());
    if both().next().is_none() || !both().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let mut unscaled = 0i128;
    for digit in both() {
        unscaled = unscaled.checked_mul(10)?.checked_add((digit - b'0').into())?;
    }
    let shift = i32::from(scale).checked_add(exponent)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let unscaled = rescale(unscaled, shift)?;
    (unscaled < 10i128.checked_pow(precision.into())?).then_some(if negative { -unscaled } else { unscaled })
}

/// `value × 10^shift`, exactly.
fn rescale(value: i128, shift: i32) -> Option<i128> {
    if value == 0 {
        return Some(0);
    }
    let power = 10i128.checked_pow(shift.unsigned_abs())?;
    if shift >= 0 {
        return value.checked_mul(power);
    }
    (value % power == 0).then_some(value / power)
}

pub(crate) fn show_decimal(unscaled: i128, scale: i8) -> String {
    let Ok(scale) = usize::try_from(scale) else { return format!("{unscaled}E{}", -i32::from(scale)) };
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// `NaN`, `Infinity` or `-Infinity`: JSON has no numbers for them.
pub(crate) fn show_odd_float(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

/// A float as Java spells it, from Rust's shortest scientific form: `1e10` is `1.0E10`, `2.5e0` is `2.5`.
///
/// Spec: Java's `Double.toString`: plain from 10⁻³ up to 10⁷, with an exponent elsewhere, always with a fraction digit.
pub(crate) fn show_java_float(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits = mantissa.replace('.', "");
    let or_zero = |fraction: &str| if fraction.is_empty() { "0".to_owned() } else { fraction.to_owned() };
    match usize::try_from(exponent) {
        Ok(whole) if exponent < 7 => {
            let padded = format!("{digits:0<width$}", width = whole + 1);
            format!("{sign}{}.{}", &padded[..=whole], or_zero(&padded[whole + 1..]))
        }
        Err(_) if exponent >= -3 => {
            let zeros = usize::try_from(-exponent - 1).unwrap_or(0);
            format!("{sign}0.{}{digits}", "0".repeat(zeros))
        }
        _ => format!("{sign}{}.{}E{exponent}", &digits[..1], or_zero(&digits[1..])),
    }
}

/// `yyyy-MM-dd`; `None` outside the years 1 to 9999, which other readers do not all know.
pub(crate) fn write_date(days: i32) -> Option<String> {
    let date = NaiveDate::from_num_days_from_ce_opt(days.checked_add(EPOCH_FROM_CE)?)?;
    (1..=9999).contains(&date.year()).then(|| date.format("%Y-%m-%d").to_string())
}

/// Date and time of day by chrono's `format`; `None` outside the years 1 to 9999.
pub(crate) fn write_micros(micros: i64, format: &str) -> Option<String> {
    let at = DateTime::from_timestamp_micros(micros)?;
    (1..=9999).contains(&at.year()).then(|| at.format(format).to_string())
}

pub(crate) fn show_date(days: i32) -> String {
    let date = days.checked_add(EPOCH_FROM_CE).and_then(NaiveDate::from_num_days_from_ce_opt);
    date.map_or_else(|| format!("{days} days"), |it| it.to_string())
}

/// ISO 8601 without a zone, with as many fraction digits as needed.
pub(crate) fn show_micros(micros: i64) -> String {
    DateTime::from_timestamp_micros(micros)
        .map_or_else(|| format!("{micros} us"), |it| it.format("%Y-%m-%dT%H:%M:%S%.f").to_string())
}
