use super::*;

/// 2026-11-30T12:00:00Z.
const NOW: Millis = Millis(1_796_040_000_000);

fn show(text: &str, zone: &str) -> String {
    match parse_time(text, &Tz::parse(zone).unwrap(), NOW) {
        Ok(at) => at.to_string(),
        Err(err) => err.to_string(),
    }
}

#[test]
fn moments() {
    assert_eq!(NOW.to_string(), "2026-11-30T12:00:00.000Z");
    for (text, zone, expected) in [
        ("2026-10-04T20:57:02+08:00", "UTC", "2026-10-04T12:57:02.000Z"),
        ("2026-10-04 20:57:02+08:00", "Asia/Tokyo", "2026-10-04T12:57:02.000Z"),
        ("2026-10-04 20:57:02 +0800", "UTC", "2026-10-04T12:57:02.000Z"),
        ("2026-10-04 20:57:02-03", "UTC", "2026-10-04T23:57:02.000Z"),
        ("2026-10-04T12:57:02Z", "Asia/Tokyo", "2026-10-04T12:57:02.000Z"),
        ("2026-10-04t12:57:02z", "Asia/Tokyo", "2026-10-04T12:57:02.000Z"),
        ("2026-10-04 12:57:02 UTC", "Asia/Tokyo", "2026-10-04T12:57:02.000Z"),
        ("2026-10-04 20:57:02 Asia/Shanghai", "UTC", "2026-10-04T12:57:02.000Z"),
        ("2026-10-04 20:57 asia/shanghai", "UTC", "2026-10-04T12:57:00.000Z"),
        ("2026-10-04 12:57:02", "UTC", "2026-10-04T12:57:02.000Z"),
        ("2026-10-04 12:57:02", "+08:00", "2026-10-04T04:57:02.000Z"),
        ("2026-10-04 12:57", "UTC", "2026-10-04T12:57:00.000Z"),
        ("2026-10-04", "UTC", "2026-10-04T00:00:00.000Z"),
        ("2026-10-04", "Asia/Shanghai", "2026-10-03T16:00:00.000Z"),
        ("2026-10-04 UTC", "Asia/Shanghai", "2026-10-04T00:00:00.000Z"),
        ("2026-10-04Z", "Asia/Shanghai", "2026-10-04T00:00:00.000Z"),
        ("2026-10-04 12:57:02.1", "UTC", "2026-10-04T12:57:02.100Z"),
        ("2026-10-04 12:57:02.123999", "UTC", "2026-10-04T12:57:02.123Z"),
        ("1969-12-31 23:59:59.999999", "UTC", "1969-12-31T23:59:59.999Z"),
        ("0001-01-01", "UTC", "0001-01-01T00:00:00.000Z"),
        ("9999-12-31 23:59:59.999", "UTC", "9999-12-31T23:59:59.999Z"),
        ("now", "UTC", "2026-11-30T12:00:00.000Z"),
        (" Today ", "Asia/Shanghai", "2026-11-29T16:00:00.000Z"),
        ("yesterday", "UTC", "2026-11-29T00:00:00.000Z"),
        ("2 hours ago", "UTC", "2026-11-30T10:00:00.000Z"),
        ("an hour ago", "UTC", "2026-11-30T11:00:00.000Z"),
        ("1d12h ago", "UTC", "2026-11-29T00:00:00.000Z"),
        ("1 week, 1 day and 30 minutes ago", "UTC", "2026-11-22T11:30:00.000Z"),
        ("500ms ago", "UTC", "2026-11-30T11:59:59.500Z"),
    ] {
        assert_eq!(show(text, zone), expected, "{text} in {zone}");
    }
}

#[test]
fn what_is_no_moment_is_an_error() {
    for text in [
        "",
        "tomorrow",
        "ago",
        "2 ago",
        "hours ago",
        "3 months ago",
        "-2 hours ago",
        "99999999999999999999 s ago",
        "9223372036854775807 weeks ago",
        "2026",
        "2026-10",
        "2026-1-4",
        "20261004",
        "1796040000000",
        "2026-10-04 25",
        "2026-10-04 24:00:00",
        "2026-10-04 12:60",
        "2026-10-04 12:57:60",
        "2026-10-04 12:57:02.",
        "2026-10-04 12:57.5",
        "2026-10-04 12:57:02.1234567890",
        "2026-10-04 12:57:02+99:00",
        "2026-10-04 12:57:02 Mars/Base",
        "2026-10-04x",
        "2026-10-04T",
        "2026-10-04TZ",
        "2026-10-0420:57",
        "2026-10-04\0",
        "+2026-10-04",
        "２０２６-10-04",
    ] {
        let err = parse_time(text, &Tz::UTC, NOW).expect_err(text);
        assert_eq!(err.kind(), crate::ErrorKind::Invalid, "{text}");
    }
    assert_eq!(show("2026-02-30", "UTC"), "`2026-02-30` is not in the calendar");
    assert_eq!(show("tomorrow", "UTC"), "`tomorrow` is no time");
}

#[test]
fn clocks_that_change_are_not_guessed_at() {
    assert_eq!(
        show("2026-10-25 02:30:00", "Europe/Berlin"),
        "2026-10-25 02:30:00 happens twice in Europe/Berlin, when clocks go back"
    );
    assert_eq!(
        show("2026-03-29 02:30:00", "Europe/Berlin"),
        "2026-03-29 02:30:00 never happens in Europe/Berlin, where clocks go forward"
    );
    assert_eq!(show("2026-10-25 02:30:00+01:00", "Europe/Berlin"), "2026-10-25T01:30:00.000Z");
}

#[test]
fn zones() {
    for (text, shown) in
        [("UTC", "UTC"), ("z", "UTC"), ("+08", "+08:00"), ("-0330", "-03:30"), ("europe/berlin", "Europe/Berlin")]
    {
        assert_eq!(Tz::parse(text).unwrap().to_string(), shown);
    }
    for text in ["", "+", "+8", "+24:00", "+08:60", "+0é", "Berlin", "UTC+8"] {
        Tz::parse(text).expect_err(text);
    }
}

proptest::proptest! {
    #[test]
    fn never_panics(text in "\\PC{0,30}|[0-9+:. TZ-]{0,30}|[0-9]{0,20} ?[a-z]{0,8} ago", now: i64) {
        let _ = parse_time(&text, &Tz::UTC, Millis(now));
        let _ = Tz::parse(&text);
    }

    #[test]
    fn what_is_shown_is_read_back(at in -62_000_000_000_000_i64..250_000_000_000_000) {
        proptest::prop_assert_eq!(parse_time(&Millis(at).to_string(), &Tz::UTC, NOW).unwrap(), Millis(at));
    }
}
