//! Table properties set and unset.
//!
//! What a property turns on the table must be able to have: a property never changes the protocol by itself. Turning on
//! column mapping gives every column an id and keeps its name as the physical one, so that the files there stay right.
use lakebed_core::{Error, Result, change::Change};

use super::{draft::Draft, evolve, upgrade};
use crate::{
    properties::{self, Properties},
    protocol,
    schema::Mapping,
};

pub(super) const MODE: &str = "delta.columnMapping.mode";

/// Sets and unsets what `changes` say.
pub(super) fn apply(draft: &mut Draft<'_>, changes: &[Change]) -> Result<()> {
    for change in changes {
        let Change::Properties { set, unset } = change else { continue };
        for (name, value) in set.iter().filter(|(name, _)| upgrade::feature_of(name).is_none()) {
            let (name, value) = properties::checked(name, value)?;
            put(draft, name, Some(value));
        }
        for name in unset {
            let name = properties::settable(name)?;
            put(draft, name, None);
        }
    }
    check(draft)
}

/// Sets one property, under whatever case it stood before.
fn put(draft: &mut Draft<'_>, name: String, value: Option<String>) {
    let delta = name.starts_with("delta.");
    draft.metadata.configuration.retain(|key, _| !(*key == name || delta && key.eq_ignore_ascii_case(&name)));
    if let Some(value) = value {
        draft.metadata.configuration.insert(name, value);
    }
}

/// Whether the table can have what its properties turn on.
fn check(draft: &mut Draft<'_>) -> Result<()> {
    let before = protocol::turned_on(&draft.onto.state.metadata.configuration);
    for feature in protocol::turned_on(&draft.metadata.configuration) {
        // What was on before, without effect or not, is not this commit's.
        if draft.creates() || !before.contains(&feature) {
            draft.require(feature, "what this sets")?;
        }
    }
    mapping(draft)
}

/// Column mapping is turned on once, by name, and stays. A new table has what it was described with, wherever it stands.
fn mapping(draft: &mut Draft<'_>) -> Result<()> {
    if draft.describes_anew() {
        return Ok(());
    }
    let onto = &draft.onto.state;
    let before = Mapping::of(&onto.protocol, &onto.metadata.configuration)?;
    let after = Mapping::of(&draft.protocol, &draft.metadata.configuration)?;
    match (before, after) {
        (Mapping::None, Mapping::Name) => evolve::turn_on_mapping(draft),
        (before, after) if before == after => Ok(()),
        (Mapping::None, Mapping::Id) => Err(cannot("`id` only suits a new table: files written before have no ids")
            .with_hint("use `name`, which can do all the same")),
        _ => Err(cannot("the mode stays once columns are mapped")),
    }
}

fn cannot(reason: &str) -> Error {
    Error::invalid(format!("table property `{MODE}`: {reason}"))
}

/// The configuration of a new table: `properties`, checked, without what only asks for a protocol.
pub(super) fn of_new(given: &[(String, String)]) -> Result<std::collections::BTreeMap<String, String>> {
    let mut configuration = std::collections::BTreeMap::new();
    for (name, value) in given {
        let asks = upgrade::feature_of(name).is_some() || is_version(name);
        if asks {
            continue;
        }
        let (name, value) = properties::checked(name, value)?;
        configuration.insert(name, value);
    }
    Ok(configuration)
}

/// Whether a property asks for a version of the protocol, which only a new table may.
pub(super) fn is_version(name: &str) -> bool {
    name.eq_ignore_ascii_case("delta.minReaderVersion") || name.eq_ignore_ascii_case("delta.minWriterVersion")
}

/// The reader and writer versions asked for.
pub(super) fn versions(given: &[(String, String)]) -> Result<(i32, i32)> {
    let asked = given.iter().filter(|(name, _)| is_version(name)).cloned().collect();
    let properties = Properties(&asked);
    let version = |name: &str, most: i32| {
        let asked = properties.count(name).map_err(|it| Error::invalid(it.to_string()))?.unwrap_or(1);
        let fits = i32::try_from(asked).ok().filter(|it| (1..=most).contains(it));
        fits.ok_or_else(|| Error::unsupported(format!("`{name}` is {asked}: this build knows 1 to {most}")))
    };
    Ok((version("delta.minReaderVersion", 3)?, version("delta.minWriterVersion", 7)?))
}
