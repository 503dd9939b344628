//! `SET`, `RESET`, `SHOW` of variables. A name nobody knows is an error.
//!
//! `lakebed.*` are ours: the time zone, what statements that write obey, and each format's own settings as it registers
//! them. `datafusion.*` are
//! DataFusion's, but for those that would change what names and times mean.
use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use datafusion::config::{ConfigOptions, ExtensionOptions};
use lakebed_core::{Error, Result, time::Tz};

use super::{Session, run::Mutable, settings};
use crate::{error::of_datafusion, registry::Formats, scan::options::ScanOptions, text::did_you_mean};

/// What a session decides for all of its statements: another value would give names another meaning.
const FIXED: &[&str] = &[
    "datafusion.execution.time_zone",
    "datafusion.sql_parser.enable_ident_normalization",
    "datafusion.sql_parser.dialect",
    "datafusion.catalog.default_catalog",
    "datafusion.catalog.default_schema",
];

const SCAN: &str = "lakebed.scan.";

pub(super) const TIME_ZONE: &str = "lakebed.time_zone";

/// Our variables with their defaults.
pub(super) fn defaults(formats: &Formats, time_zone: &str) -> BTreeMap<String, String> {
    let mut variables = BTreeMap::from([(TIME_ZONE.to_owned(), time_zone.to_owned())]);
    variables.extend(settings::DEFAULTS.iter().map(|it| (it.0.to_owned(), it.1.to_owned())));
    for format in formats.iter() {
        for setting in format.extensions().settings {
            variables.insert(format!("lakebed.{}.{}", format.kind(), setting.name), setting.default.to_owned());
        }
    }
    variables
}

/// DataFusion's options and the scan's, by their whole names.
fn options(config: &ConfigOptions) -> Vec<(String, Option<String>)> {
    let own = config.extensions.get::<ScanOptions>().map(ExtensionOptions::entries).unwrap_or_default();
    let own = own.into_iter().map(|it| (format!("{SCAN}{}", it.key.trim_start_matches(SCAN)), it.value));
    let all = config.entries().into_iter().filter(|it| it.key.starts_with("datafusion."));
    all.map(|it| (it.key, it.value)).chain(own).collect()
}

impl Session {
    pub(super) fn set(&self, name: &str, value: &str) -> Result<()> {
        // No lock is held where an error is made: it looks for the nearest name.
        if !self.variable_names().iter().any(|it| it == name) {
            return Err(self.unknown_variable(name));
        }
        if let Some(option) = name.strip_prefix(SCAN) {
            let state = self.context.state_ref();
            let mut state = state.write();
            let options = state.config_mut().options_mut().extensions.get_mut::<ScanOptions>();
            return options.map_or(Ok(()), |it| it.set(option, value)).map_err(of_datafusion);
        }
        if name.starts_with("lakebed.") {
            if name == TIME_ZONE {
                Tz::parse(value)?;
            }
            settings::check(name, value)?;
            self.mutable_write().variables.insert(name.to_owned(), value.to_owned());
            return Ok(());
        }
        if FIXED.contains(&name) {
            return Err(Error::unsupported(format!("`{name}` is fixed for the session")));
        }
        let state = self.context.state_ref();
        let changed = state.write().config_mut().options_mut().set(name, value);
        changed.map_err(of_datafusion)
    }

    pub(super) fn reset(&self, name: Option<&str>) -> Result<()> {
        let fresh = defaults(&self.shared.formats, &self.shared.time_zone);
        match name {
            None => {
                self.mutable_write().variables = fresh;
                let initial = super::state(&self.initial)?;
                let options = initial.config_options().as_ref().clone();
                *self.context.state_ref().write().config_mut().options_mut() = options;
                Ok(())
            }
            Some(name) if name.starts_with("lakebed.") && !name.starts_with(SCAN) => match fresh.get(name) {
                Some(value) => self.set(name, value),
                None => Err(self.unknown_variable(name)),
            },
            Some(name) => {
                let initial = super::state(&self.initial)?;
                let entry = options(initial.config_options()).into_iter().find(|it| it.0 == name);
                let value = entry.ok_or_else(|| self.unknown_variable(name))?.1;
                match value {
                    Some(value) => self.set(name, &value),
                    None => Err(Error::unsupported(format!("`{name}` has no default to go back to"))),
                }
            }
        }
    }

    /// One row a variable: all, or the one that is named.
    pub(super) fn show(&self, name: Option<&str>) -> Result<RecordBatch> {
        let mut rows: BTreeMap<String, Option<String>> = BTreeMap::new();
        rows.extend(self.mutable_read().variables.iter().map(|(key, value)| (key.clone(), Some(value.clone()))));
        rows.extend(options(self.context.state().config_options()));
        if let Some(name) = name {
            let name = if matches!(name, "timezone" | "time.zone" | "time_zone") { TIME_ZONE } else { name };
            rows.retain(|key, _| key == name);
            if rows.is_empty() {
                return Err(self.unknown_variable(name));
            }
        }
        let schema =
            Schema::new(vec![Field::new("name", DataType::Utf8, false), Field::new("value", DataType::Utf8, true)]);
        let names: ArrayRef = Arc::new(StringArray::from_iter_values(rows.keys()));
        let values: ArrayRef = Arc::new(StringArray::from_iter(rows.values()));
        RecordBatch::try_new(Arc::new(schema), vec![names, values]).map_err(|it| of_datafusion(it.into()))
    }

    fn variable_names(&self) -> Vec<String> {
        let mut names: Vec<_> = options(self.context.state().config_options()).into_iter().map(|it| it.0).collect();
        names.extend(self.mutable_read().variables.keys().cloned());
        names
    }

    fn unknown_variable(&self, name: &str) -> Error {
        let error = Error::invalid(format!("no variable is called `{name}`"));
        let names = self.variable_names();
        match did_you_mean(name, names.iter().map(String::as_str)) {
            Some(near) => error.with_hint(format!("did you mean `{near}`?")),
            None => error.with_hint("SHOW ALL lists the variables"),
        }
    }

    pub(super) fn mutable_read(&self) -> std::sync::RwLockReadGuard<'_, Mutable> {
        self.mutable.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn mutable_write(&self) -> std::sync::RwLockWriteGuard<'_, Mutable> {
        self.mutable.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
