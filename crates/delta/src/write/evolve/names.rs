//! Names of columns: what they may be, and what else follows when they change.
use std::collections::{BTreeMap, BTreeSet};

use arrow_schema::{DataType, Fields};
use lakebed_core::{Error, Result};

use super::super::stats::column_names;
use crate::schema::physical_name;

/// Characters that readers of unmapped Parquet columns choke on.
const RESERVED: &[char] = &[' ', ',', ';', '{', '}', '(', ')', '\n', '\t', '='];

pub(super) fn joined(above: &[String], name: &str) -> String {
    above.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(".")
}

/// # Errors
/// Invalid for a name that no column may have, or none that is not mapped.
pub(super) fn check(name: &str, path: &str, mapped: bool) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid("a column has a name"));
    }
    match name.chars().find(|it| RESERVED.contains(it)) {
        Some(bad) if !mapped => {
            let message = format!(
                "column `{}`: a name with `{}` is only for mapped columns",
                path.escape_debug(),
                bad.escape_debug()
            );
            Err(Error::invalid(message).with_hint("`'delta.columnMapping.mode' = 'name'` maps columns"))
        }
        _ => Ok(()),
    }
}

/// # Errors
/// Invalid where two names differ by case at most.
pub(super) fn check_distinct(fields: &Fields, above: &[String]) -> Result<()> {
    let mut seen = BTreeSet::new();
    match fields.iter().find(|it| !seen.insert(it.name().to_lowercase())) {
        Some(twice) => {
            let path = joined(above, twice.name());
            Err(Error::invalid(format!(
                "there are two columns `{}`: names must differ without case",
                path.escape_debug()
            )))
        }
        None => Ok(()),
    }
}

/// Brings the columns that property `name` lists to their new names; those that are gone leave the list.
pub(super) fn follow(configuration: &mut BTreeMap<String, String>, name: &str, old: &Fields, new: &Fields) {
    let Some(listed) = configuration.get(name) else { return };
    let followed: Vec<String> = column_names(listed).iter().filter_map(|it| renamed(it, old, new)).collect();
    configuration.insert(name.to_owned(), followed.join(","));
}

fn renamed(path: &[String], old: &Fields, new: &Fields) -> Option<String> {
    let (first, rest) = path.split_first()?;
    let before = old.iter().find(|it| it.name().eq_ignore_ascii_case(first))?;
    let after = new.iter().find(|it| physical_name(it) == physical_name(before))?;
    let quoted = format!("`{}`", after.name().replace('`', "``"));
    let plain = after.name().chars().all(|it| it.is_alphanumeric() || it == '_');
    let own = if plain { after.name().clone() } else { quoted };
    match (rest, before.data_type(), after.data_type()) {
        ([], _, _) => Some(own),
        (rest, DataType::Struct(old), DataType::Struct(new)) => Some(format!("{own}.{}", renamed(rest, old, new)?)),
        _ => None,
    }
}
