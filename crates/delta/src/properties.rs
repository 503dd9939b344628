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
    Bytes,
    Text,
}

const fn property(name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Property {
    Property { name, kind, default, about }
}

/// Every property Lakebed knows, by name.
const PROPERTIES: &[Property] = &[
    property("delta.appendOnly", Kind::Flag, "false", "rows are only ever added"),
    property("delta.checkpoint.writeStatsAsJson", Kind::Flag, "true", "checkpoints hold statistics as JSON"),
    property("delta.checkpoint.writeStatsAsStruct", Kind::Flag, "false", "checkpoints hold statistics as columns"),
    property("delta.checkpointInterval", Kind::Count, "10", "commits between checkpoints"),
    property("delta.checkpointPolicy", Kind::Text, "classic", "classic or v2"),
    property("delta.checkpointRetentionDuration", Kind::Interval, "interval 2 days", "how long old checkpoints stay"),
    property("delta.columnMapping.maxColumnId", Kind::Count, "", "the highest column id ever given"),
    property("delta.columnMapping.mode", Kind::Text, "none", "none, id or name"),
    property("delta.dataSkippingNumIndexedCols", Kind::Count, "32", "columns with statistics; -1 is all"),
    property("delta.dataSkippingStatsColumns", Kind::Text, "", "columns with statistics, by name"),
    property("delta.deletedFileRetentionDuration", Kind::Interval, "interval 1 week", "how long removed files stay"),
    property("delta.enableChangeDataFeed", Kind::Flag, "false", "record changed rows"),
    property("delta.enableDeletionVectors", Kind::Flag, "false", "deletes may write vectors"),
    property("delta.enableExpiredLogCleanup", Kind::Flag, "true", "old log files are removed"),
    property("delta.enableInCommitTimestamps", Kind::Flag, "false", "commits carry their own time"),
    property("delta.enableRowTracking", Kind::Flag, "false", "rows have ids"),
    property("delta.enableTypeWidening", Kind::Flag, "false", "columns may become wider"),
    property("delta.inCommitTimestampEnablementTimestamp", Kind::Count, "", "when commits began to carry their time"),
    property(
        "delta.inCommitTimestampEnablementVersion",
        Kind::Count,
        "",
        "since which version commits carry their time",
    ),
    property("delta.isolationLevel", Kind::Text, "WriteSerializable", "Serializable or WriteSerializable"),
    property("delta.logRetentionDuration", Kind::Interval, "interval 30 days", "how long history stays"),
    property("delta.minReaderVersion", Kind::Count, "", "asked for at creation"),
    property("delta.minWriterVersion", Kind::Count, "", "asked for at creation"),
    property("delta.parquet.compression.codec", Kind::Text, "", "of new data files"),
    property("delta.randomizeFilePrefixes", Kind::Flag, "false", "data files get a random folder"),
    property("delta.randomPrefixLength", Kind::Count, "2", "characters of that folder"),
    property(
        "delta.rowTracking.materializedRowCommitVersionColumnName",
        Kind::Text,
        "",
        "column that overrides the version of a row",
    ),
    property("delta.rowTracking.materializedRowIdColumnName", Kind::Text, "", "column that overrides the id of a row"),
    property("delta.setTransactionRetentionDuration", Kind::Interval, "", "how long application versions stay"),
    property("delta.targetFileSize", Kind::Bytes, "", "of new data files"),
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
            Kind::Count | Kind::Bytes => properties.count(it.name).map(drop),
            Kind::Interval => properties.interval(it.name).map(drop),
            Kind::Text => Ok(()),
        };
        read.err().map(|err| (err, it.about))
    };
    PROPERTIES.iter().filter_map(fault).collect()
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
