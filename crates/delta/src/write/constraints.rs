//! CHECK constraints: properties named `delta.constraints.<name>`, whose value is the expression.
//!
//! Spec: Delta PROTOCOL.md, "CHECK Constraints"; that names have no case is the reference implementation's.
use std::collections::BTreeMap;

use lakebed_core::{Error, ErrorKind, Result, change::Change, write::Constraint};

use super::draft::Draft;

const PREFIX: &str = "delta.constraints.";
const FEATURE: &str = "checkConstraints";

/// The constraints of a table, by name.
pub(super) fn checks(configuration: &BTreeMap<String, String>) -> Vec<Constraint> {
    let named = configuration.iter().filter_map(|(key, expression)| Some((name_of(key)?, expression)));
    named
        .map(|(name, expression)| Constraint {
            name: name.to_owned(),
            expression: expression.clone(),
            null_passes: false,
        })
        .collect()
}

fn name_of(key: &str) -> Option<&str> {
    let prefix = key.get(..PREFIX.len()).filter(|it| it.eq_ignore_ascii_case(PREFIX))?;
    key.get(prefix.len()..)
}

/// Adds and drops constraints. That the rows there meet a new one is the caller's to know.
pub(super) fn apply(draft: &mut Draft<'_>, changes: &[Change]) -> Result<()> {
    for change in changes {
        match change {
            Change::AddConstraint { name, expression } => add(draft, name, expression)?,
            Change::DropConstraint { name } => drop(draft, name)?,
            _ => (),
        }
    }
    Ok(())
}

fn add(draft: &mut Draft<'_>, name: &str, expression: &str) -> Result<()> {
    if name.is_empty() || expression.trim().is_empty() {
        return Err(Error::invalid("a constraint has a name and an expression"));
    }
    draft.require(FEATURE, &format!("constraint `{}`", name.escape_debug()))?;
    if key(draft, name).is_some() {
        let message = format!("the table has a constraint `{}`", name.escape_debug());
        return Err(Error::new(ErrorKind::AlreadyExists, message));
    }
    draft.metadata.configuration.insert(format!("{PREFIX}{}", name.to_lowercase()), expression.to_owned());
    Ok(())
}

fn drop(draft: &mut Draft<'_>, name: &str) -> Result<()> {
    match key(draft, name) {
        Some(key) => {
            draft.metadata.configuration.remove(&key);
            Ok(())
        }
        None => Err(Error::not_found(format!("the table has no constraint `{}`", name.escape_debug()))),
    }
}

/// The property of the constraint of this name.
fn key(draft: &Draft<'_>, name: &str) -> Option<String> {
    let same = |key: &&String| name_of(key).is_some_and(|it| it.to_lowercase() == name.to_lowercase());
    draft.metadata.configuration.keys().find(same).cloned()
}

/// A constraint that speaks of `column`, by name and as far as its words tell.
pub(super) fn speaks_of(configuration: &BTreeMap<String, String>, column: &str) -> Option<String> {
    checks(configuration).into_iter().find(|it| names(&it.expression, column)).map(|it| it.name)
}

/// Whether a word of `expression`, quoted or not, is `name`.
fn names(expression: &str, name: &str) -> bool {
    let plain = |it: char| it.is_alphanumeric() || it == '_';
    let words = expression.split(|it: char| !plain(it));
    let quoted = expression.split(['`', '"']).skip(1).step_by(2);
    words.chain(quoted).any(|it| it.eq_ignore_ascii_case(name))
}
