//! The configuration: what was set, and where.
//!
//! Four layers, each winning over the one before: `$XDG_CONFIG_HOME/lakebed/config.toml` (else
//! `~/.config/lakebed/config.toml`), `lakebed.toml` in the working folder, `LAKEBED_…` variables, flags. A key
//! nobody knows is an error that names file and line; a variable nobody knows is not configuration.
//!
//! Keys below `[profile.NAME]` of either file count when that profile is asked for, and win over the rest of both files.
//!
//! A working folder may be somebody else's. Its `lakebed.toml` can therefore neither run commands for credentials
//! nor admit places outside a table: those two belong to the user's own file, the environment and flags.
use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use lakebed_core::{Error, Result};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

pub use self::{
    keys::{FORMATS, KEYS, Key, Shape},
    units::{parse_bool, parse_bytes, parse_duration},
};
use crate::secret::SecretRef;

mod keys;
mod units;

/// Values of the known keys, each with its origin.
#[derive(Debug, Clone, Default)]
pub struct Config {
    values: BTreeMap<&'static str, Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Lists are joined by line breaks.
    pub value: String,
    pub origin: Origin,
}

/// Where a value was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    Default,
    File { path: PathBuf, line: usize },
    Variable(String),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// Whose file it is decides what it may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    User,
    Folder,
}

/// A key below `[profile.NAME]`.
#[derive(Debug)]
struct Profiled {
    profile: String,
    key: String,
    value: String,
    origin: Origin,
}

impl Config {
    /// [`Self::load_with`] the profile that the environment names.
    pub fn load(environment: &BTreeMap<String, String>, folder: &Path) -> Result<Self> {
        Self::load_with(environment, folder, None)
    }

    /// Reads both files, where they are, and the environment.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](lakebed_core::ErrorKind) with file and line for broken TOML, unknown keys and bad values.
    pub fn load_with(environment: &BTreeMap<String, String>, folder: &Path, profile: Option<&str>) -> Result<Self> {
        let mut config = Self::default();
        let mut profiled = Vec::new();
        if let Some(path) = user_file(environment) {
            config.read_file(&path, Owner::User, &mut profiled)?;
        }
        config.read_file(&folder.join("lakebed.toml"), Owner::Folder, &mut profiled)?;
        let named = environment.get("LAKEBED_PROFILE").map(String::as_str).filter(|it| !it.is_empty());
        if let Some(name) = profile.or(named).or_else(|| config.get("profile")).map(str::to_owned) {
            config.put_profile(&name, profiled)?;
        }
        for key in KEYS {
            let name = key.variable();
            if let Some(value) = environment.get(&name).filter(|it| !it.is_empty()) {
                let value = if key.shape == Shape::List { value.replace(',', "\n") } else { value.clone() };
                config.set(key.name, value, Origin::Variable(name))?;
            }
        }
        Ok(config)
    }

    /// Sets what `profiled` says under this name.
    fn put_profile(&mut self, name: &str, profiled: Vec<Profiled>) -> Result<()> {
        if !profiled.iter().any(|it| it.profile == name) {
            let mut known: Vec<&str> = profiled.iter().map(|it| it.profile.as_str()).collect();
            known.sort_unstable();
            known.dedup();
            let hint =
                if known.is_empty() { "there is none".to_owned() } else { format!("there is {}", known.join(", ")) };
            return Err(Error::invalid(format!("no profile `{}`", name.escape_debug())).with_hint(hint));
        }
        for it in profiled.into_iter().filter(|it| it.profile == name) {
            self.set(&it.key, it.value, it.origin)?;
        }
        Ok(())
    }

    /// Sets one key, checking the shape of its value.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](lakebed_core::ErrorKind) for an unknown key or a value of the wrong shape.
    pub fn set(&mut self, name: &str, value: String, origin: Origin) -> Result<()> {
        let Some(key) = Key::find(name) else {
            let hint = "`lakebed config list` shows every key".to_owned();
            return Err(Error::invalid(format!("{origin}: unknown key `{name}`")).with_hint(hint));
        };
        check(key, &value).map_err(|why| Error::invalid(format!("{origin}: `{name}` {why}")))?;
        self.values.insert(key.name, Entry { value, origin });
        Ok(())
    }

    /// What was set or is the default of a known key.
    pub fn get(&self, name: &str) -> Option<&str> {
        let set = self.values.get(name).map(|it| it.value.as_str());
        set.or_else(|| Key::find(name).expect("callers name known keys").default)
    }

    pub fn bool(&self, name: &str) -> bool {
        self.get(name).and_then(parse_bool).unwrap_or(false)
    }

    pub fn bytes(&self, name: &str) -> Option<u64> {
        self.get(name).and_then(parse_bytes)
    }

    pub fn duration(&self, name: &str) -> Option<Duration> {
        self.get(name).and_then(parse_duration)
    }

    pub fn list(&self, name: &str) -> Vec<String> {
        self.get(name).map(|it| it.lines().map(|it| it.trim().to_owned()).collect()).unwrap_or_default()
    }

    pub fn secret(&self, name: &str) -> Option<SecretRef> {
        self.get(name).map(|it| SecretRef::from_str(it).expect("checked when it was set"))
    }

    /// Every known key with its value, if any, and origin; in alphabetical order.
    pub fn entries(&self) -> impl Iterator<Item = (&'static Key, Option<Entry>)> {
        KEYS.iter().map(|key| {
            let default = || key.default.map(|it| Entry { value: it.to_owned(), origin: Origin::Default });
            (key, self.values.get(key.name).cloned().or_else(default))
        })
    }

    fn read_file(&mut self, path: &Path, owner: Owner, profiled: &mut Vec<Profiled>) -> Result<()> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(err) => return Err(Error::invalid(format!("{}: {err}", path.display()))),
        };
        let table = DeTable::parse(&text).map_err(|err| {
            let line = err.span().map_or(1, |it| line_at(&text, it.start));
            Error::invalid(format!("{}:{line}: {}", path.display(), err.message()))
        })?;
        for (name, value, at) in flatten("", table.get_ref()) {
            let origin = Origin::File { path: path.to_owned(), line: line_at(&text, at) };
            let value = plain(value).ok_or_else(|| {
                Error::invalid(format!("{origin}: `{name}` must be a text, a number, true, false or a list of texts"))
            })?;
            let (profile, key) = match name.strip_prefix("profile.").and_then(|it| it.split_once('.')) {
                Some((profile, key)) => (Some(profile.to_owned()), key.to_owned()),
                None => (None, name.clone()),
            };
            if owner == Owner::Folder && (key == "paths.allow" || value.starts_with("command:")) {
                return Err(Error::invalid(format!(
                    "{origin}: `{name}`: such a value cannot be set by a folder's file"
                ))
                .with_hint("set it in your own config.toml, in the environment or by a flag"));
            }
            match profile {
                None => self.set(&key, value, origin)?,
                Some(profile) => {
                    // What nobody asks for now must be right all the same.
                    Self::default().set(&key, value.clone(), origin.clone())?;
                    profiled.push(Profiled { profile, key, value, origin });
                }
            }
        }
        Ok(())
    }
}

fn user_file(environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let folder = folder_of(environment, "XDG_CONFIG_HOME", ".config")?;
    Some(folder.join("config.toml"))
}

/// `lakebed` in one of the user's base folders: `variable`, else `fallback` in the home folder.
///
/// Spec: XDG Base Directory Specification; relative values are ignored.
pub fn folder_of(environment: &BTreeMap<String, String>, variable: &str, fallback: &str) -> Option<PathBuf> {
    let set = environment.get(variable).map(PathBuf::from).filter(|it| it.is_absolute());
    let base = set.or_else(|| Some(Path::new(environment.get("HOME")?).join(fallback)))?;
    Some(base.join("lakebed"))
}

/// Dotted names and values of the leaves, with the position of their keys.
fn flatten<'a, 'i>(prefix: &str, table: &'a DeTable<'i>) -> Vec<(String, &'a DeValue<'i>, usize)> {
    let mut out = Vec::new();
    for (key, value) in table {
        let name = if prefix.is_empty() { key.get_ref().to_string() } else { format!("{prefix}.{}", key.get_ref()) };
        match value.get_ref() {
            DeValue::Table(inner) => out.extend(flatten(&name, inner)),
            leaf => out.push((name, leaf, key.span().start)),
        }
    }
    out
}

fn plain(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Boolean(yes) => Some(yes.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().replace('_', "")),
        DeValue::Array(items) => {
            let texts: Option<Vec<String>> =
                items.iter().map(Spanned::get_ref).map(|it| Some(it.as_str()?.to_owned())).collect();
            texts.map(|it| it.join("\n"))
        }
        _ => None,
    }
}

fn check(key: &Key, value: &str) -> Result<(), String> {
    let wanted = match key.shape {
        Shape::Text | Shape::List => return Ok(()),
        Shape::Bool if parse_bool(value).is_none() => "true or false".to_owned(),
        Shape::Bytes if parse_bytes(value).is_none() => "a size as 512MiB or 2GiB".to_owned(),
        Shape::Duration if parse_duration(value).is_none() => "a time as 250ms, 30s, 10m or 2h".to_owned(),
        Shape::Choice(names) if !names.contains(&value) => format!("one of {}", names.join(", ")),
        Shape::Secret => {
            return SecretRef::from_str(value).map(|_| ()).map_err(|it| format!("holds no reference: {it}"));
        }
        Shape::Bool | Shape::Bytes | Shape::Duration | Shape::Choice(_) => return Ok(()),
    };
    Err(format!("must be {wanted}, not `{}`", value.escape_debug()))
}

fn line_at(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|it| **it == b'\n').count()
}

#[cfg(test)]
mod tests;
