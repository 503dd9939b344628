//! Table properties under `delta.`: their types and defaults in one table.
//!
//! Spec: Delta PROTOCOL.md names what each feature obeys; the defaults are those of Delta's reference implementation.
use std::{collections::BTreeMap, time::Duration};

use crate::error::DeltaError;

/// One property of the table below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Property {
    name: &'static str,
    kind: Kind,
    /// As text; empty where the property has none.
    default: &'static str,
    about: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Flag,
    Count,
    /// `interval 30 days`.
    Interval,
    /// A number, or one with a unit: `134217728`, `128mb`.
    Bytes,
    Text,
    /// One of these words, without case.
    OneOf(&'static [&'static str]),
}

const fn property(name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Property {
    Property { name, kind, default, about }
}

/// Every property Lakebed knows, by name.
const PROPERTIES: &[Property] = &[
    property("delta.appendOnly", Kind::Flag, "false", "rows are only ever added"),
    property("delta.autoOptimize", Kind::Text, "", "of other engines: how they lay out what they write"),
    property("delta.autoOptimize.autoCompact", Kind::Text, "", "of other engines: whether they compact after writing"),
    property("delta.autoOptimize.optimizeWrite", Kind::Text, "", "of other engines: whether they write larger files"),
    property("delta.checkpoint.writeStatsAsJson", Kind::Flag, "true", "checkpoints hold statistics as JSON"),
    property("delta.checkpoint.writeStatsAsStruct", Kind::Flag, "false", "checkpoints hold statistics as columns"),
    property("delta.checkpointInterval", Kind::Count, "10", "commits between checkpoints"),
    property("delta.checkpointPolicy", Kind::OneOf(&["classic", "v2"]), "classic", "classic or v2"),
    property("delta.checkpointRetentionDuration", Kind::Interval, "interval 2 days", "how long old checkpoints stay"),
    property("delta.columnMapping.maxColumnId", Kind::Count, "", "the highest column id ever given"),
    property("delta.columnMapping.mode", Kind::OneOf(&["none", "id", "name"]), "none", "none, id or name"),
    property("delta.dataSkippingNumIndexedCols", Kind::Count, "32", "columns with statistics; -1 is all"),
    property("delta.dataSkippingStatsColumns", Kind::Text, "", "columns with statistics, by name"),
    property("delta.deletedFileRetentionDuration", Kind::Interval, "interval 1 week", "how long removed files stay"),
    property(
        "delta.dropFeatureTruncateHistory.retentionDuration",
        Kind::Interval,
        "interval 24 hours",
        "how long history stays when a feature is dropped",
    ),
    property("delta.enableChangeDataFeed", Kind::Flag, "false", "record changed rows"),
    property("delta.enableDeletionVectors", Kind::Flag, "false", "deletes may write vectors"),
    property("delta.enableExpiredLogCleanup", Kind::Flag, "true", "old log files are removed"),
    property("delta.enableFullRetentionRollback", Kind::Flag, "true", "of other engines: how far back they roll"),
    property("delta.enableIcebergCompatV1", Kind::Flag, "false", "files are good for Iceberg, too"),
    property("delta.enableIcebergCompatV2", Kind::Flag, "false", "files are good for Iceberg, too"),
    property("delta.enableIcebergCompatV3", Kind::Flag, "false", "files are good for Iceberg, too"),
    property("delta.enableInCommitTimestamps", Kind::Flag, "false", "commits carry their own time"),
    property("delta.enableRowTracking", Kind::Flag, "false", "rows have ids"),
    property("delta.enableTypeWidening", Kind::Flag, "false", "columns may become wider"),
    property("delta.enableVariantShredding", Kind::Flag, "false", "variants are stored in columns"),
    property("delta.inCommitTimestampEnablementTimestamp", Kind::Count, "", "when commits began to carry their time"),
    property(
        "delta.inCommitTimestampEnablementVersion",
        Kind::Count,
        "",
        "since which version commits carry their time",
    ),
    property(
        "delta.isolationLevel",
        Kind::OneOf(&["Serializable", "WriteSerializable"]),
        "WriteSerializable",
        "Serializable or WriteSerializable",
    ),
    property("delta.logRetentionDuration", Kind::Interval, "interval 30 days", "how long history stays"),
    property("delta.minReaderVersion", Kind::Count, "", "asked for at creation"),
    property("delta.minWriterVersion", Kind::Count, "", "asked for at creation"),
    property(
        "delta.parquet.compression.codec",
        Kind::OneOf(&["zstd", "snappy", "gzip", "lz4", "lz4_raw", "uncompressed", "none"]),
        "",
        "of new data files",
    ),
    property("delta.randomizeFilePrefixes", Kind::Flag, "false", "data files get a random folder"),
    property("delta.randomPrefixLength", Kind::Count, "2", "characters of that folder"),
    property(
        "delta.rowTracking.materializedRowCommitVersionColumnName",
        Kind::Text,
        "",
        "column that overrides the version of a row",
    ),
    property("delta.rowTracking.materializedRowIdColumnName", Kind::Text, "", "column that overrides the id of a row"),
    property(
        "delta.sampleRetentionDuration",
        Kind::Interval,
        "interval 7 days",
        "of other engines: how long samples stay",
    ),
    property("delta.setTransactionRetentionDuration", Kind::Interval, "", "how long application versions stay"),
    property("delta.targetFileSize", Kind::Bytes, "", "of new data files"),
    property(
        "delta.tuneFileSizesForRewrites",
        Kind::Flag,
        "false",
        "of other engines: smaller files where rows change",
    ),
];

/// The properties of one table, with defaults.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Properties<'a>(pub(crate) &'a BTreeMap<String, String>);

impl<'a> Properties<'a> {
    /// The value as set, else the default; `None` where neither is. Names match without case, as writers differ.
    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        let set =
            self.0.get(name).or_else(|| self.0.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|it| it.1));
        set.map(String::as_str).or_else(|| default_of(name))
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool, DeltaError> {
        match self.text(name) {
            None => Ok(false),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(text) => Err(bad(name, text, "not true or false")),
        }
    }

    pub(crate) fn count(&self, name: &str) -> Result<Option<i64>, DeltaError> {
        self.text(name).map(|text| text.trim().parse().map_err(|_| bad(name, text, "not a whole number"))).transpose()
    }

    /// A size in bytes.
    pub(crate) fn bytes(&self, name: &str) -> Result<Option<u64>, DeltaError> {
        self.text(name).map(|text| bytes(text).ok_or_else(|| bad(name, text, "not a size like `128mb`"))).transpose()
    }

    pub(crate) fn interval(&self, name: &str) -> Result<Option<Duration>, DeltaError> {
        self.text(name)
            .map(|text| interval(text).ok_or_else(|| bad(name, text, "not an interval like `interval 30 days`")))
            .transpose()
    }
}

/// What is wrong with the known properties among `set`, and what each is for.
pub(crate) fn faults(set: &BTreeMap<String, String>) -> Vec<(DeltaError, &'static str)> {
    let properties = Properties(set);
    let fault = |it: &Property| {
        let read = match it.kind {
            Kind::Flag => properties.flag(it.name).map(drop),
            Kind::Count => properties.count(it.name).map(drop),
            Kind::Bytes => properties.bytes(it.name).map(drop),
            Kind::Interval => properties.interval(it.name).map(drop),
            Kind::Text | Kind::OneOf(_) => Ok(()),
        };
        read.err().map(|err| (err, it.about))
    };
    PROPERTIES.iter().filter_map(fault).collect()
}

/// Properties that follow from something else, with what to do instead.
const NOT_SET_BY_HAND: [(&str, &str); 8] = [
    ("delta.columnMapping.maxColumnId", "it is counted as columns are added"),
    ("delta.inCommitTimestampEnablementTimestamp", "set `delta.enableInCommitTimestamps`"),
    ("delta.inCommitTimestampEnablementVersion", "set `delta.enableInCommitTimestamps`"),
    ("delta.minReaderVersion", "name the features: `'delta.feature.<name>' = 'supported'`"),
    ("delta.minWriterVersion", "name the features: `'delta.feature.<name>' = 'supported'`"),
    ("delta.rowTracking.materializedRowCommitVersionColumnName", "it follows from `delta.enableRowTracking`"),
    ("delta.rowTracking.materializedRowIdColumnName", "it follows from `delta.enableRowTracking`"),
    ("delta.constraints.", "use `ALTER TABLE … ADD CONSTRAINT` and `DROP CONSTRAINT`"),
];

/// A property a user sets, checked: its name as the format spells it, and the value as it is stored. Names without
/// `delta.` are the user's own.
///
/// # Errors
/// Invalid for a property of Delta's that Lakebed does not know, that is not set by hand, or whose value is none.
pub(crate) fn checked(name: &str, value: &str) -> lakebed_core::Result<(String, String)> {
    let name = settable(name)?;
    let Some(known) = PROPERTIES.iter().find(|it| it.name == name) else { return Ok((name, value.to_owned())) };
    let set = BTreeMap::from([(name.clone(), value.to_owned())]);
    let properties = Properties(&set);
    let positive = |found: Option<i64>, least: i64| match found {
        Some(it) if it < least => Err(bad(&name, value, &format!("less than {least}"))),
        _ => Ok(value.to_owned()),
    };
    let stored = match known.kind {
        Kind::Flag => properties.flag(&name).map(|it| it.to_string()),
        Kind::Count => {
            let least = if name == "delta.dataSkippingNumIndexedCols" { -1 } else { 1 };
            properties.count(&name).and_then(|it| positive(it, least))
        }
        Kind::Bytes => match properties.bytes(&name) {
            Ok(Some(0)) => Err(bad(&name, value, "no size for a file")),
            read => read.map(|_| value.to_owned()),
        },
        Kind::Interval => properties.interval(&name).map(|_| value.to_owned()),
        Kind::Text => Ok(value.to_owned()),
        Kind::OneOf(words) => match words.iter().find(|it| it.eq_ignore_ascii_case(value.trim())) {
            Some(word) => Ok((*word).to_owned()),
            None => Err(bad(&name, value, &format!("none of {}", words.join(", ")))),
        },
    };
    match stored {
        Ok(value) => Ok((name, value)),
        Err(err) => Err(lakebed_core::Error::invalid(err.to_string())),
    }
}

/// The name of a property that a user sets or unsets, as the format spells it.
///
/// # Errors
/// As [`checked`].
pub(crate) fn settable(name: &str) -> lakebed_core::Result<String> {
    let lower = name.to_ascii_lowercase();
    if !lower.starts_with("delta.") {
        return Ok(name.to_owned());
    }
    let by_hand =
        |it: &&(&str, &str)| lower.eq_ignore_ascii_case(it.0) || it.0.ends_with('.') && lower.starts_with(it.0);
    if let Some((_, instead)) = NOT_SET_BY_HAND.iter().find(by_hand) {
        let message = format!("table property `{}` is not set by hand", name.escape_debug());
        return Err(lakebed_core::Error::invalid(message).with_hint(*instead));
    }
    match PROPERTIES.iter().find(|it| it.name.eq_ignore_ascii_case(name)) {
        Some(known) => Ok(known.name.to_owned()),
        None => {
            let message = format!("`{}` is no property of Delta that Lakebed knows", name.escape_debug());
            Err(lakebed_core::Error::invalid(message).with_hint("properties of your own have names without `delta.`"))
        }
    }
}

/// Parses a number of bytes, or of `kb`, `mb`, `gb`, `tb` (powers of 1024; `k`, `kib` and so on, too).
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Parses `interval 1 week 2 days` (the first word may be missing); `None` for anything else, months and years
/// included: they have no length.
///
/// Spec: none; this is Spark's CalendarInterval text, which the reference implementation stores.
pub(crate) fn interval(text: &str) -> Option<Duration> {
    let text = text.trim().to_ascii_lowercase();
    let words: Vec<&str> = text.strip_prefix("interval").unwrap_or(&text).split_whitespace().collect();
    if words.is_empty() || !words.len().is_multiple_of(2) {
        return None;
    }
    words.chunks_exact(2).try_fold(Duration::ZERO, |sum, pair| {
        let unit_micros: u64 = match pair[1].strip_suffix('s').unwrap_or(pair[1]) {
            "week" => 7 * 86_400_000_000,
            "day" => 86_400_000_000,
            "hour" => 3_600_000_000,
            "minute" => 60_000_000,
            "second" => 1_000_000,
            "millisecond" => 1_000,
            "microsecond" => 1,
            _ => return None,
        };
        let count: u64 = pair[0].parse().ok()?;
        sum.checked_add(Duration::from_micros(count.checked_mul(unit_micros)?))
    })
}

fn default_of(name: &str) -> Option<&'static str> {
    let known = PROPERTIES.iter().find(|it| it.name.eq_ignore_ascii_case(name))?;
    Some(known.default).filter(|it| !it.is_empty())
}

fn bad(name: &str, value: &str, reason: &str) -> DeltaError {
    DeltaError::Property { name: name.to_owned(), value: value.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_a_length_or_are_refused() {
        let day = Duration::from_secs(86_400);
        for (text, expected) in [
            ("interval 30 days", Some(day * 30)),
            ("INTERVAL 1 week", Some(day * 7)),
            ("2 days 1 hour", Some(day * 2 + Duration::from_secs(3600))),
            ("interval 168 hours", Some(day * 7)),
            ("interval 0 seconds", Some(Duration::ZERO)),
            ("interval 1 month", None),
            ("interval -1 days", None),
            ("interval 99999999999999999999 days", None),
            ("interval 18446744073709551615 weeks", None),
            ("interval", None),
            ("days 30", None),
            ("", None),
        ] {
            assert_eq!(interval(text), expected, "{text}");
        }
    }

    #[test]
    fn a_property_is_checked_before_it_is_set() {
        let shown = |name: &str, value: &str| match checked(name, value) {
            Ok((name, value)) => format!("{name} = {value}"),
            Err(err) => format!("{err}; {}", err.hint().unwrap_or("-")),
        };
        for (name, value, expected) in [
            ("delta.appendonly", "TRUE", "delta.appendOnly = true"),
            ("delta.columnMapping.mode", "Name", "delta.columnMapping.mode = name"),
            ("delta.targetFileSize", "64MB", "delta.targetFileSize = 64MB"),
            ("delta.dataSkippingNumIndexedCols", "-1", "delta.dataSkippingNumIndexedCols = -1"),
            ("owner", "me", "owner = me"),
            ("delta.checkpointInterval", "0", "table property `delta.checkpointInterval` is `0`: less than 1; -"),
            ("delta.appendOnly", "yes", "table property `delta.appendOnly` is `yes`: not true or false; -"),
            ("delta.checkpointPolicy", "v3", "table property `delta.checkpointPolicy` is `v3`: none of classic, v2; -"),
            (
                "delta.logRetentionDuration",
                "interval 1 month",
                "table property `delta.logRetentionDuration` is `interval 1 month`: not an interval like `interval 30 days`; -",
            ),
            (
                "delta.retention",
                "1",
                "`delta.retention` is no property of Delta that Lakebed knows; properties of your own have names without \
                 `delta.`",
            ),
            (
                "delta.constraints.positive",
                "a > 0",
                "table property `delta.constraints.positive` is not set by hand; use `ALTER TABLE … ADD CONSTRAINT` and \
                 `DROP CONSTRAINT`",
            ),
        ] {
            assert_eq!(shown(name, value), expected, "{name}");
        }
        checked("delta.minWriterVersion", "7").unwrap_err();
    }

    #[test]
    fn sizes_have_units() {
        for (text, expected) in [
            ("7", Some(7)),
            ("128 MB", Some(128 << 20)),
            ("1g", Some(1 << 30)),
            ("2kib", Some(2048)),
            ("x", None),
            ("-1", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn every_default_has_the_kind_of_its_property() {
        assert!(faults(&BTreeMap::new()).is_empty());
        assert!(PROPERTIES.is_sorted_by_key(|it| it.name.to_ascii_lowercase()));
    }

    #[test]
    fn a_value_of_the_wrong_kind_names_the_property() {
        let set = BTreeMap::from([("delta.checkpointinterval".to_owned(), "ten".to_owned())]);
        let err = Properties(&set).count("delta.checkpointInterval").unwrap_err();
        assert_eq!(err.to_string(), "table property `delta.checkpointInterval` is `ten`: not a whole number");
        assert_eq!(faults(&set)[0].1, "commits between checkpoints");
    }
}
