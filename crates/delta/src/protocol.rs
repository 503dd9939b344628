//! Which tables this build can read and write.
//!
//! A table asks for a reader version (1 to 3) and a writer version (1 to 7). From reader 3 and writer 7 on it lists
//! features by name instead; below, the numbers imply them. Readers refuse any reader feature they do not know, and
//! do not look at writer features. A feature that is *supported* must be obeyed when met; whether it is *enabled*, so
//! that writers use it, is a table property's to say. Some features are nothing to a writer until a column uses them, which
//! the schema shows: they stand in the way only then ([`crate::write`]).
//! Spec: Delta PROTOCOL.md, "Table Features", "Requirements for Readers", "Valid Feature Names in Table Features".
use std::collections::{BTreeMap, HashMap};

use crate::{error::DeltaError, properties::Properties, spec::Protocol};

/// One feature: where it stands, which legacy version implies it, and which property turns it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Feature {
    name: &'static str,
    /// Readers must know it too.
    reader: bool,
    /// The writer version that implies it, 0 for none. Of the reader-writer features only columnMapping has one.
    legacy_writer: i32,
    reads: Reads,
    writes: Writes,
    /// The property that turns it on, if one does.
    enabled_by: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    Yes,
    /// Recognised, and refused by name.
    No,
    /// Only the catalog says which commits hold.
    NeedsCatalog,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writes {
    Yes,
    /// While no column has this in its metadata.
    Unless(&'static str),
    /// Recognised, and refused by name.
    No,
}

const fn writer(name: &'static str, legacy_writer: i32, enabled_by: Option<&'static str>) -> Feature {
    Feature { name, reader: false, legacy_writer, reads: Reads::Yes, writes: Writes::Yes, enabled_by }
}

const fn both(name: &'static str, reads: Reads, enabled_by: Option<&'static str>) -> Feature {
    Feature { name, reader: true, legacy_writer: 0, reads, writes: Writes::Yes, enabled_by }
}

const fn unwritten(feature: Feature) -> Feature {
    Feature { writes: Writes::No, ..feature }
}

const fn unless(key: &'static str, feature: Feature) -> Feature {
    Feature { writes: Writes::Unless(key), ..feature }
}

/// The features the protocol names, and those of previews that tables in the wild carry.
const FEATURES: &[Feature] = &[
    writer("appendOnly", 2, Some("delta.appendOnly")),
    writer("invariants", 2, None),
    writer("checkConstraints", 3, None),
    writer("changeDataFeed", 4, Some("delta.enableChangeDataFeed")),
    unless("delta.generationExpression", writer("generatedColumns", 4, None)),
    Feature { legacy_writer: 5, ..both(MAPPING, Reads::Yes, Some("delta.columnMapping.mode")) },
    unless("delta.identity.start", writer("identityColumns", 6, None)),
    unless("CURRENT_DEFAULT", writer("allowColumnDefaults", 0, None)),
    unwritten(writer("checkpointProtection", 0, None)),
    unwritten(writer("clustering", 0, None)),
    unwritten(writer("liquid", 0, None)),
    writer("domainMetadata", 0, None),
    unwritten(writer("icebergCompatV1", 0, Some("delta.enableIcebergCompatV1"))),
    unwritten(writer("icebergCompatV2", 0, Some("delta.enableIcebergCompatV2"))),
    unwritten(writer("icebergCompatV3", 0, Some("delta.enableIcebergCompatV3"))),
    writer("inCommitTimestamp", 0, Some("delta.enableInCommitTimestamps")),
    unwritten(writer("inCommitTimestamp-preview", 0, Some("delta.enableInCommitTimestamps-preview"))),
    unwritten(writer("materializePartitionColumns", 0, None)),
    // A writer gives rows their ids as soon as the feature is there, whether or not it is turned on.
    unwritten(writer("rowTracking", 0, Some("delta.enableRowTracking"))),
    unwritten(writer("collations", 0, None)),
    unwritten(writer("collations-preview", 0, None)),
    both("deletionVectors", Reads::Yes, Some("delta.enableDeletionVectors")),
    both("timestampNtz", Reads::Yes, None),
    both("typeWidening", Reads::Yes, Some("delta.enableTypeWidening")),
    both("typeWidening-preview", Reads::Yes, Some("delta.enableTypeWidening")),
    both("v2Checkpoint", Reads::Yes, Some("delta.checkpointPolicy")),
    both("vacuumProtocolCheck", Reads::Yes, None),
    unwritten(both("variantType", Reads::Yes, None)),
    unwritten(both("variantType-preview", Reads::Yes, None)),
    unwritten(both("variantShredding", Reads::Yes, Some("delta.enableVariantShredding"))),
    unwritten(both("variantShredding-preview", Reads::Yes, Some("delta.enableVariantShredding"))),
    unwritten(both("catalogManaged", Reads::NeedsCatalog, None)),
    unwritten(both("catalogOwned", Reads::NeedsCatalog, None)),
    unwritten(both("catalogOwned-preview", Reads::NeedsCatalog, None)),
    unwritten(both("coordinatedCommits-preview", Reads::NeedsCatalog, None)),
    unwritten(both("adaptiveMetadata-preview", Reads::No, None)),
    unwritten(both("geospatial", Reads::No, None)),
    unwritten(both("geospatial-dev", Reads::No, None)),
    unwritten(both("icebergNativeV4-preview", Reads::No, None)),
    unwritten(both("redirectReaderWriter-preview", Reads::No, None)),
];

const MAPPING: &str = "columnMapping";
const COORDINATOR: &str = "delta.coordinatedCommits.commitCoordinator-preview";
const READER_FEATURES_FROM: i32 = 3;
const WRITER_FEATURES_FROM: i32 = 7;
const READER_MAPPING_FROM: i32 = 2;

impl Protocol {
    /// Whether the table's rows can be read.
    ///
    /// # Errors
    /// Names the version, and every feature in the way.
    pub(crate) fn readable(&self) -> Result<(), DeltaError> {
        let version = self.min_reader_version;
        let features = self.reader_features.clone().unwrap_or_default();
        if !(1..=READER_FEATURES_FROM).contains(&version) {
            return Err(DeltaError::ReaderVersion { version, features });
        }
        self.well_formed()?;
        // Whoever must commit through a catalog commits where readers by path do not look, listed for readers or not.
        let obeyed = self.reader_features.iter().flatten().filter(|_| version >= READER_FEATURES_FROM);
        if let Some(feature) = obeyed.chain(self.listed_writer_features()).find(|it| reads(it) == Reads::NeedsCatalog) {
            return Err(DeltaError::CatalogManaged { version, feature: feature.clone() });
        }
        if version < READER_FEATURES_FROM {
            return Ok(());
        }
        let missing: Vec<String> = features.into_iter().filter(|it| reads(it) != Reads::Yes).collect();
        if missing.is_empty() { Ok(()) } else { Err(DeltaError::ReaderFeatures { version, features: missing }) }
    }

    /// [`Self::readable`], and that no property hands the table's commits to a coordinator.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn readable_with(&self, properties: &BTreeMap<String, String>) -> Result<(), DeltaError> {
        self.readable()?;
        match Properties(properties).text(COORDINATOR) {
            Some(name) if !name.is_empty() => Err(DeltaError::Coordinated { property: COORDINATOR }),
            _ => Ok(()),
        }
    }

    /// Whether this build obeys every feature a writer has to, as far as the protocol shows: a column may still use one
    /// that it does not ([`Self::unwritten_column`]).
    ///
    /// # Errors
    /// As [`Self::readable`], and for writer versions and features.
    pub(crate) fn writable(&self) -> Result<(), DeltaError> {
        self.readable()?;
        let version = self.min_writer_version;
        if !(1..=WRITER_FEATURES_FROM).contains(&version) {
            return Err(DeltaError::WriterVersion { version });
        }
        let listed = self.listed_writer_features();
        let missing: Vec<String> = listed.iter().filter(|it| !is_written(it)).cloned().collect();
        if missing.is_empty() { Ok(()) } else { Err(DeltaError::WriterFeatures { version, features: missing }) }
    }

    /// The feature that a column with this metadata uses and this build does not write.
    pub(crate) fn unwritten_column(&self, metadata: &HashMap<String, String>) -> Option<&'static str> {
        let used = |it: &&Feature| matches!(it.writes, Writes::Unless(key) if metadata.contains_key(key));
        FEATURES.iter().filter(used).map(|it| it.name).find(|it| self.supports(it))
    }

    /// What the protocol calls malformed, as far as it would make reading unsafe.
    fn well_formed(&self) -> Result<(), DeltaError> {
        if self.min_reader_version == READER_FEATURES_FROM && self.min_writer_version < WRITER_FEATURES_FROM {
            let writer = self.min_writer_version;
            return Err(DeltaError::Protocol(format!("reader version 3 needs writer version 7, not {writer}")));
        }
        // Without the list nobody can tell what a reader must obey.
        if self.min_reader_version == READER_FEATURES_FROM && self.reader_features.is_none() {
            return Err(DeltaError::Protocol("reader version 3 without readerFeatures".to_owned()));
        }
        Ok(())
    }

    /// Whether the table may use `feature`, by list or by a version that implies it.
    pub(crate) fn supports(&self, feature: &str) -> bool {
        let Some(found) = known(feature) else { return self.lists(feature) };
        if found.reader && self.min_reader_version >= READER_FEATURES_FROM {
            return self.reader_features.iter().flatten().any(|it| it == feature);
        }
        // Column mapping is the one reader feature that a number implies, and both numbers must.
        let readers_know = !found.reader || self.min_reader_version >= READER_MAPPING_FROM;
        readers_know && (self.lists(feature) || self.implies(found))
    }

    /// Every feature the table supports: listed ones in their order, then those its versions imply.
    pub(crate) fn features(&self) -> Vec<String> {
        let mut all = self.listed_writer_features().to_vec();
        if self.min_reader_version >= READER_FEATURES_FROM {
            all.extend(self.reader_features.iter().flatten().cloned());
        }
        all.extend(FEATURES.iter().filter(|it| self.supports(it.name)).map(|it| it.name.to_owned()));
        let mut seen = std::collections::BTreeSet::new();
        all.retain(|it| seen.insert(it.clone()));
        all
    }

    /// Features that are supported and turned on; a feature without a property is on where it is supported.
    pub(crate) fn enabled(&self, properties: &BTreeMap<String, String>) -> Vec<String> {
        self.features().into_iter().filter(|it| is_enabled(it, Properties(properties))).collect()
    }

    fn lists(&self, feature: &str) -> bool {
        self.listed_writer_features().iter().any(|it| it == feature)
    }

    fn listed_writer_features(&self) -> &[String] {
        let listed = self.writer_features.as_deref().filter(|_| self.min_writer_version >= WRITER_FEATURES_FROM);
        listed.unwrap_or_default()
    }

    fn implies(&self, feature: &Feature) -> bool {
        let numbers = 1..WRITER_FEATURES_FROM;
        feature.legacy_writer != 0
            && numbers.contains(&self.min_writer_version)
            && self.min_writer_version >= feature.legacy_writer
    }
}

fn known(name: &str) -> Option<&'static Feature> {
    FEATURES.iter().find(|it| it.name == name)
}

/// What to do about a name in `readerFeatures`. A writer feature there is a mistake that changes no row.
fn reads(name: &str) -> Reads {
    known(name).map_or(Reads::No, |it| it.reads)
}

/// Whether tables with the feature are written. A reader feature that is only read stands in `readerFeatures`, too.
pub(crate) fn is_written(name: &str) -> bool {
    known(name).is_some_and(|it| it.writes != Writes::No)
}

/// Whether `name` is a feature that this build knows.
pub(crate) fn is_known(name: &str) -> bool {
    known(name).is_some()
}

/// The features that these properties turn on.
pub(crate) fn turned_on(properties: &BTreeMap<String, String>) -> Vec<&'static str> {
    let asks = |it: &&Feature| it.enabled_by.is_some() && is_enabled(it.name, Properties(properties));
    // A preview is never what a property means.
    FEATURES.iter().filter(asks).map(|it| it.name).filter(|it| !it.ends_with("-preview")).collect()
}

fn is_enabled(feature: &str, properties: Properties<'_>) -> bool {
    let Some(property) = known(feature).and_then(|it| it.enabled_by) else { return true };
    match property {
        "delta.columnMapping.mode" => properties.text(property).is_some_and(|it| it != "none"),
        "delta.checkpointPolicy" => properties.text(property) == Some("v2"),
        _ => properties.flag(property).unwrap_or(false),
    }
}

mod make;

#[cfg(test)]
mod tests {
    use super::*;

    fn protocol(reader: i32, writer: i32, features: &str) -> Protocol {
        let list = || Some(features.split_whitespace().map(str::to_owned).collect());
        Protocol {
            min_reader_version: reader,
            min_writer_version: writer,
            reader_features: if reader >= 3 { list() } else { None },
            writer_features: if writer >= 7 { list() } else { None },
        }
    }

    fn check(reader: i32, writer: i32, features: &str, expected: &str) {
        let answer = protocol(reader, writer, features).readable();
        assert_eq!(answer.map_or_else(|it| it.to_string(), |()| "readable".to_owned()), expected);
    }

    #[test]
    fn every_reader_version_up_to_three_is_read() {
        check(1, 2, "", "readable");
        check(2, 5, "", "readable");
        check(1, 7, "rowTracking someNewWriterFeature", "readable");
        check(3, 7, "deletionVectors columnMapping timestampNtz typeWidening typeWidening-preview", "readable");
        check(3, 7, "variantType variantType-preview variantShredding variantShredding-preview", "readable");
        check(3, 7, "v2Checkpoint vacuumProtocolCheck", "readable");
    }

    #[test]
    fn what_is_unknown_is_refused_by_name() {
        check(5, 7, "someDelta", "table needs reader version 5; this build reads versions 1 to 3 (`someDelta`)");
        check(0, 0, "", "table needs reader version 0; this build reads versions 1 to 3");
        check(
            3,
            7,
            "columnMapping geospatial unheardOf",
            "table (reader version 3) needs reader features this build does not have: `geospatial`, `unheardOf`",
        );
        for feature in ["catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview"] {
            let err = protocol(3, 7, feature).readable().unwrap_err().to_string();
            assert!(err.contains("catalog") && err.contains(feature), "{err}");
        }
    }

    #[test]
    fn a_table_whose_commits_a_catalog_holds_is_refused_by_path_even_where_only_writers_are_told() {
        for feature in ["catalogManaged", "catalogOwned-preview", "coordinatedCommits-preview"] {
            let err = protocol(1, 7, feature).readable().unwrap_err().to_string();
            assert!(err.contains("catalog") && err.contains(feature), "{err}");
        }
        let with = |value: &str| BTreeMap::from([(COORDINATOR.to_owned(), value.to_owned())]);
        let err = protocol(1, 2, "").readable_with(&with("dynamodb")).unwrap_err().to_string();
        assert!(err.contains(COORDINATOR), "{err}");
        protocol(1, 2, "").readable_with(&with("")).unwrap();
    }

    #[test]
    fn a_protocol_that_contradicts_itself_is_corrupt() {
        check(3, 6, "", "protocol: reader version 3 needs writer version 7, not 6");
        let no_list = Protocol { reader_features: None, ..protocol(3, 7, "") };
        assert!(no_list.readable().is_err());
    }

    #[test]
    fn names_differ_by_case_and_by_preview() {
        assert!(protocol(3, 7, "DeletionVectors").readable().is_err());
        assert!(!protocol(3, 7, "typeWidening-preview").supports("typeWidening"));
    }

    #[test]
    fn legacy_versions_imply_features() {
        let supported = |reader, writer| protocol(reader, writer, "").features().join(" ");
        assert_eq!(supported(1, 1), "");
        assert_eq!(supported(1, 2), "appendOnly invariants");
        assert_eq!(supported(1, 4), "appendOnly invariants checkConstraints changeDataFeed generatedColumns");
        assert!(supported(2, 5).ends_with("generatedColumns columnMapping"));
        assert!(supported(2, 6).ends_with("columnMapping identityColumns"));
        assert_eq!(supported(1, 5), supported(1, 4), "readers at 1 do not know column mapping");
        assert_eq!(supported(1, 7), "", "from 7 on only the list counts");
    }

    #[test]
    fn feature_lists_below_their_version_do_not_count() {
        let stray = Protocol { writer_features: Some(vec!["deletionVectors".into()]), ..protocol(1, 2, "") };
        assert!(!stray.supports("deletionVectors"));
        let reader_only = Protocol { writer_features: None, ..protocol(3, 7, "deletionVectors") };
        assert!(reader_only.supports("deletionVectors"));
    }

    #[test]
    fn supported_is_not_enabled() {
        let table = protocol(3, 7, "deletionVectors columnMapping timestampNtz");
        let on = |pairs: &[(&str, &str)]| {
            table.enabled(&pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()).join(" ")
        };
        assert_eq!(on(&[]), "timestampNtz");
        assert_eq!(on(&[("delta.enableDeletionVectors", "true")]), "deletionVectors timestampNtz");
        assert_eq!(on(&[("delta.columnMapping.mode", "id")]), "columnMapping timestampNtz");
    }

    #[test]
    fn unknown_writer_features_block_writes_only() {
        let err = protocol(1, 7, "appendOnly unheardOf").writable().unwrap_err().to_string();
        assert_eq!(err, "table (writer version 7) needs writer features this build does not have: `unheardOf`");
        assert!(protocol(1, 9, "").writable().is_err());
        protocol(3, 7, "deletionVectors generatedColumns").writable().unwrap();
        let err = protocol(3, 7, "deletionVectors rowTracking clustering").writable().unwrap_err().to_string();
        assert!(err.ends_with("does not have: `rowTracking`, `clustering`"), "{err}");
    }

    #[test]
    fn a_feature_of_columns_blocks_where_a_column_uses_it() {
        let metadata = |key: &str| HashMap::from([(key.to_owned(), "x".to_owned())]);
        let used = |reader, writer, features, key| protocol(reader, writer, features).unwritten_column(&metadata(key));
        assert_eq!(used(1, 4, "", "delta.generationExpression"), Some("generatedColumns"));
        assert_eq!(used(1, 2, "", "delta.generationExpression"), None, "not honoured");
        assert_eq!(used(1, 6, "", "delta.identity.start"), Some("identityColumns"));
        assert_eq!(used(1, 7, "allowColumnDefaults", "CURRENT_DEFAULT"), Some("allowColumnDefaults"));
        assert_eq!(used(1, 6, "", "comment"), None);
    }
}
