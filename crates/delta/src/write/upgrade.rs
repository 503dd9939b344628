//! Features added to a table, because the user said so.
//!
//! Either by [`Change::Upgrade`], or by a property `delta.feature.<name>` whose value is `supported`, which is a statement and
//! no property: it is not kept.
use std::collections::{BTreeMap, BTreeSet};

use lakebed_core::{Error, Result, change::Change};

use super::draft::Draft;
use crate::{properties, protocol, spec::Protocol};

const PREFIX: &str = "delta.feature.";

/// Adds the features that `changes` name.
pub(super) fn apply(draft: &mut Draft<'_>, changes: &[Change]) -> Result<()> {
    let mut features = BTreeSet::new();
    for change in changes {
        match change {
            Change::Upgrade { features: named } => features.extend(named.iter().cloned()),
            Change::Properties { set, .. } => features.extend(named(set)?),
            _ => (),
        }
    }
    features.iter().try_for_each(|it| check_known(it))?;
    draft.protocol = draft.protocol.upgraded(&features);
    Ok(())
}

/// The features that `changes` turn on and a table of this protocol lacks, in order of their names.
pub(crate) fn asked(protocol: &Protocol, configuration: &BTreeMap<String, String>, changes: &[Change]) -> Vec<String> {
    let before = protocol::turned_on(configuration);
    let mut after = configuration.clone();
    let mut features = BTreeSet::new();
    for change in changes {
        match change {
            Change::Properties { set, .. } => {
                // A value that is none is told of when it is set.
                let set = set.iter().filter_map(|(name, value)| properties::checked(name, value).ok());
                after.extend(set);
            }
            Change::AddConstraint { .. } => drop(features.insert("checkConstraints")),
            _ => (),
        }
    }
    features.extend(protocol::turned_on(&after).into_iter().filter(|it| !before.contains(it)));
    features.into_iter().filter(|it| !protocol.supports(it)).map(str::to_owned).collect()
}

/// The features that properties name.
///
/// # Errors
/// Invalid for another value than `supported`.
pub(super) fn named(properties: &BTreeMap<String, String>) -> Result<BTreeSet<String>> {
    let mut features = BTreeSet::new();
    for (key, value) in properties {
        let Some(feature) = feature_of(key) else { continue };
        if !value.eq_ignore_ascii_case("supported") {
            let message = format!("`{}` is `{}`: not `supported`", key.escape_debug(), value.escape_debug());
            return Err(Error::invalid(message).with_hint("what a feature does is turned on by a property of its own"));
        }
        features.insert(feature.to_owned());
    }
    Ok(features)
}

/// The feature that a property names.
pub(super) fn feature_of(key: &str) -> Option<&str> {
    key.get(..PREFIX.len()).filter(|it| it.eq_ignore_ascii_case(PREFIX)).and_then(|it| key.get(it.len()..))
}

/// # Errors
/// Invalid for no feature of Delta, unsupported for one that this build does not write: the table could not be written
/// after.
pub(super) fn check_known(feature: &str) -> Result<()> {
    let shown = feature.escape_debug();
    if !protocol::is_known(feature) {
        return Err(Error::invalid(format!("`{shown}` is no table feature that Lakebed knows"))
            .with_hint("names of features have a case: `deletionVectors`, `domainMetadata`"));
    }
    if !protocol::is_written(feature) {
        return Err(Error::unsupported(format!("this build does not write the table feature `{shown}`")));
    }
    Ok(())
}
