//! Protocols made: for a new table, and by an upgrade.
//!
//! A new table asks for as little as its features need. Features that legacy numbers imply are asked for by number as long
//! as all are such; numbers then imply more than was asked for, which is harmless in a table that has none of it. With any
//! other feature the writer version is 7 and features are listed, those of version 2 among them, which every table has; the
//! reader version is 3, with a list, only if a reader has to know one that no number implies.
//!
//! An upgrade keeps everything that was there, what numbers implied included, and takes a legacy number only if it
//! implies no more than was asked for.
//! Spec: Delta PROTOCOL.md, "Table Features", "Writer Version Requirements".
use std::collections::BTreeSet;

use super::{FEATURES, Feature, MAPPING, READER_FEATURES_FROM, READER_MAPPING_FROM, WRITER_FEATURES_FROM, known};
use crate::spec::Protocol;

/// What every table has: the features of writer version 2.
const BASE: i32 = 2;

impl Protocol {
    /// The lowest protocol with these features.
    pub(crate) fn lowest(features: &BTreeSet<String>) -> Self {
        let known: Option<Vec<&Feature>> = features.iter().map(|it| known(it)).collect();
        match known {
            Some(known) if known.iter().all(|it| it.legacy_writer > 0) => {
                let writer = known.iter().map(|it| it.legacy_writer).fold(BASE, i32::max);
                let reader = if features.contains(MAPPING) { READER_MAPPING_FROM } else { 1 };
                Self { min_reader_version: reader, min_writer_version: writer, ..Self::default() }
            }
            _ => Self::listed(features, 1),
        }
    }

    /// This protocol, for readers and writers of at least these versions.
    pub(crate) fn at_least(self, reader: i32, writer: i32) -> Self {
        if reader <= self.min_reader_version && writer <= self.min_writer_version {
            return self;
        }
        if reader >= READER_FEATURES_FROM || writer >= WRITER_FEATURES_FROM {
            return Self::listed(&self.features().into_iter().collect(), reader);
        }
        let writer = writer.max(self.min_writer_version);
        if writer >= WRITER_FEATURES_FROM {
            return Self::listed(&self.features().into_iter().collect(), reader);
        }
        Self { min_reader_version: reader.max(self.min_reader_version), min_writer_version: writer, ..Self::default() }
    }

    /// This protocol with more features; the same if it has them.
    pub(crate) fn upgraded(&self, features: &BTreeSet<String>) -> Self {
        let mut all: BTreeSet<String> = self.features().into_iter().collect();
        let before = all.len();
        all.extend(features.iter().cloned());
        if all.len() == before {
            return self.clone();
        }
        let lowest = Self::lowest(&all);
        let exact = lowest.features().len() == all.len();
        let legacy = self.min_writer_version < WRITER_FEATURES_FROM && lowest.min_writer_version < WRITER_FEATURES_FROM;
        if legacy && exact && lowest.min_reader_version >= self.min_reader_version {
            return lowest;
        }
        Self::listed(&all, self.min_reader_version)
    }

    /// With lists of features, for readers of `reader` at least.
    fn listed(features: &BTreeSet<String>, reader: i32) -> Self {
        let base = FEATURES.iter().filter(|it| (1..=BASE).contains(&it.legacy_writer)).map(|it| it.name.to_owned());
        let features: BTreeSet<String> = features.iter().cloned().chain(base).collect();
        let for_readers = |it: &&String| known(it).is_some_and(|it| it.reader);
        let needs_list = features.iter().filter(for_readers).any(|it| it != MAPPING) || reader >= READER_FEATURES_FROM;
        let lowest = match (needs_list, features.contains(MAPPING)) {
            (true, _) => READER_FEATURES_FROM,
            (false, true) => READER_MAPPING_FROM,
            (false, false) => 1,
        };
        Self {
            min_reader_version: lowest.max(reader),
            min_writer_version: WRITER_FEATURES_FROM,
            reader_features: needs_list.then(|| features.iter().filter(for_readers).cloned().collect()),
            writer_features: Some(features.into_iter().collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(features: &str) -> BTreeSet<String> {
        features.split_whitespace().map(str::to_owned).collect()
    }

    fn shown(protocol: &Protocol) -> String {
        let list = |it: &Option<Vec<String>>| it.as_ref().map_or("-".to_owned(), |it| it.join(" "));
        let (reader, writer) = (protocol.min_reader_version, protocol.min_writer_version);
        match protocol.writer_features {
            None => format!("{reader}/{writer}"),
            Some(_) => {
                format!("{reader}/{writer} {} | {}", list(&protocol.reader_features), list(&protocol.writer_features))
            }
        }
    }

    #[test]
    fn a_new_table_asks_for_as_little_as_it_needs() {
        for (features, expected) in [
            ("", "1/2"),
            ("appendOnly", "1/2"),
            ("checkConstraints", "1/3"),
            ("changeDataFeed", "1/4"),
            ("columnMapping", "2/5"),
            ("columnMapping changeDataFeed checkConstraints", "2/5"),
            ("deletionVectors", "3/7 deletionVectors | appendOnly deletionVectors invariants"),
            ("timestampNtz", "3/7 timestampNtz | appendOnly invariants timestampNtz"),
            ("inCommitTimestamp", "1/7 - | appendOnly inCommitTimestamp invariants"),
            ("columnMapping domainMetadata", "2/7 - | appendOnly columnMapping domainMetadata invariants"),
            (
                "columnMapping deletionVectors",
                "3/7 columnMapping deletionVectors | appendOnly columnMapping deletionVectors invariants",
            ),
            ("v2Checkpoint changeDataFeed", "3/7 v2Checkpoint | appendOnly changeDataFeed invariants v2Checkpoint"),
        ] {
            let protocol = Protocol::lowest(&set(features));
            assert_eq!(shown(&protocol), expected, "{features}");
            protocol.writable().unwrap();
            assert!(set(features).iter().all(|it| protocol.supports(it)), "{features}");
        }
    }

    #[test]
    fn an_upgrade_keeps_what_was_there() {
        let legacy =
            |reader, writer| Protocol { min_reader_version: reader, min_writer_version: writer, ..Protocol::default() };
        let listed = Protocol::lowest(&set("deletionVectors"));
        for (before, features, expected) in [
            (legacy(1, 2), "appendOnly", "1/2"),
            (legacy(1, 2), "checkConstraints", "1/3"),
            (legacy(1, 2), "changeDataFeed", "1/7 - | appendOnly changeDataFeed invariants"),
            (legacy(1, 2), "columnMapping", "2/7 - | appendOnly columnMapping invariants"),
            (legacy(1, 2), "domainMetadata", "1/7 - | appendOnly domainMetadata invariants"),
            (
                legacy(1, 3),
                "deletionVectors",
                "3/7 deletionVectors | appendOnly checkConstraints deletionVectors invariants",
            ),
            (
                legacy(2, 5),
                "deletionVectors",
                "3/7 columnMapping deletionVectors | appendOnly changeDataFeed checkConstraints columnMapping \
                 deletionVectors generatedColumns invariants",
            ),
            (
                legacy(2, 5),
                "domainMetadata",
                "2/7 - | appendOnly changeDataFeed checkConstraints columnMapping domainMetadata generatedColumns invariants",
            ),
            (
                listed.clone(),
                "columnMapping",
                "3/7 columnMapping deletionVectors | appendOnly columnMapping deletionVectors invariants",
            ),
            (listed.clone(), "deletionVectors", "3/7 deletionVectors | appendOnly deletionVectors invariants"),
        ] {
            let after = before.upgraded(&set(features));
            assert_eq!(shown(&after), expected, "{} + {features}", shown(&before));
            assert!(before.features().iter().all(|it| after.supports(it)), "{expected}");
        }
    }
}
