//! Lakebed, put together: which formats, which stores, which catalogs. Names all of them and does nothing itself.
//!
//! ```no_run
//! # async fn example() -> lakebed_core::Result<()> {
//! let lake = lakebed::Lakebed::builder().build()?;
//! let orders = lake.open("s3://shop/orders", None).await?;
//! println!("{}", orders.table.format());
//! # Ok(())
//! # }
//! ```
//!
//! What is deliberately absent: the terminal and the network listeners. They are doors to this crate.
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use lakebed_core::{
    Error, Result,
    catalog::{Catalog, TableIdent},
    commit::Publisher,
    env::Env,
    format::{OpenOptions, TableFormat, TableLocation},
    rev::split_table_rev,
    table::Table,
};
use lakebed_engine::{
    registry::Formats,
    session::{Access, Session, SessionOptions},
};

pub mod catalog_dir;
pub mod change;
pub mod config;
pub mod flight;
pub mod location;
mod memory;
pub mod readable;
pub mod secret;
pub mod similar;
mod store;
pub mod upkeep;

pub use self::store::Stores;
use self::{
    catalog_dir::DirectoryCatalog,
    config::{Config, folder_of},
    flight::Flights,
    location::{Place, looks_like_place},
    store::probe::ProbingPublisher,
};

/// The name of the default catalog in SQL.
pub const CATALOG: &str = "lake";
/// The schema of unqualified names.
pub const SCHEMA: &str = "default";

/// The formats of this build, in the order in which they are looked for.
pub fn formats() -> Vec<Arc<dyn TableFormat>> {
    vec![Arc::new(lakebed_delta::Delta)]
}

/// Keeps panics quiet that become errors: those of decoders of other projects, on damaged bytes, behind a fence.
///
/// For programs; call once, at the start.
pub fn hush_fenced_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !lakebed_codec::fence::is_inside() {
            usual(panic);
        }
    }));
}

/// Everything a door needs to open tables and run SQL. Making one touches neither disk nor network.
#[derive(Debug)]
pub struct Lakebed {
    config: Config,
    env: Env,
    stores: Arc<Stores>,
    formats: Formats,
    publisher: Arc<dyn Publisher>,
    flights: Arc<Flights>,
    catalog: Arc<DirectoryCatalog>,
}

/// A table, and what was asked of it.
#[derive(Debug, Clone)]
pub struct Opened {
    /// As the caller wrote it, without the revision.
    pub name: String,
    /// The text after `@`.
    pub revision: Option<String>,
    pub table: Arc<dyn Table>,
    /// Makes its commits visible.
    pub publisher: Arc<dyn Publisher>,
}

/// Whether requests are only counted or also kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestLog {
    On,
    Off,
}

/// Settings of a [`Lakebed`]; see [`Lakebed::builder`].
#[derive(Debug)]
pub struct Builder {
    config: Config,
    base: PathBuf,
    environment: BTreeMap<String, String>,
    env: Env,
    formats: Vec<Arc<dyn TableFormat>>,
    log_requests: bool,
}

impl Builder {
    /// Keeps a log of every request, for `--explain`.
    #[must_use]
    pub fn log_requests(mut self, yes: RequestLog) -> Self {
        self.log_requests = yes == RequestLog::On;
        self
    }

    /// What the configuration files, variables and flags say.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// The absolute folder relative locations start at.
    #[must_use]
    pub fn base(mut self, folder: impl Into<PathBuf>) -> Self {
        self.base = folder.into();
        self
    }

    /// The variables stores read (`AWS_…`), and where the user's folders are.
    #[must_use]
    pub fn environment(mut self, variables: BTreeMap<String, String>) -> Self {
        self.environment = variables;
        self
    }

    /// The clock and the ids.
    #[must_use]
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// One more format.
    #[must_use]
    pub fn format(mut self, format: Arc<dyn TableFormat>) -> Self {
        self.formats.push(format);
        self
    }

    /// # Errors
    /// [`ErrorKind::Invalid`](lakebed_core::ErrorKind) when the warehouse is no location.
    pub fn build(self) -> Result<Lakebed> {
        let cache = folder_of(&self.environment, "XDG_CACHE_HOME", ".cache");
        let warehouse = self.config.get("warehouse").unwrap_or("./lakehouse");
        let warehouse = Place::parse(warehouse, &self.base)?;
        let stores = Stores::new(self.base, self.config.clone(), self.environment);
        let stores = Arc::new(if self.log_requests { stores.with_log() } else { stores });
        let formats = Formats::new(self.formats);
        let flights = Arc::new(Flights::default());
        let publisher: Arc<dyn Publisher> = Arc::new(ProbingPublisher {
            stores: Arc::clone(&stores),
            env: self.env.clone(),
            cache,
            flights: Arc::clone(&flights),
        });
        let catalog = Arc::new(DirectoryCatalog::new(
            warehouse,
            Arc::clone(&stores),
            formats.clone(),
            Arc::clone(&publisher),
            self.env.clone(),
        ));
        Ok(Lakebed { config: self.config, env: self.env, stores, formats, publisher, flights, catalog })
    }
}

impl Lakebed {
    /// Defaults: the formats of this build, no configuration, the working folder, no variables, the machine's clock.
    pub fn builder() -> Builder {
        Builder {
            config: Config::default(),
            base: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            environment: BTreeMap::new(),
            env: Env::system(),
            formats: formats(),
            log_requests: false,
        }
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    pub fn env(&self) -> &Env {
        &self.env
    }

    pub fn stores(&self) -> &Arc<Stores> {
        &self.stores
    }

    pub fn formats(&self) -> &Formats {
        &self.formats
    }

    pub fn catalog(&self) -> &Arc<DirectoryCatalog> {
        &self.catalog
    }

    /// How commits of path tables become visible: through a store that proved it can.
    pub fn publisher(&self) -> &Arc<dyn Publisher> {
        &self.publisher
    }

    /// The commits of this process that have no answer yet.
    pub fn flights(&self) -> &Arc<Flights> {
        &self.flights
    }

    /// A fresh SQL session over the default catalog.
    pub fn session(&self) -> Result<Session> {
        let memory = self.config.bytes("memory").unwrap_or_else(memory::default_limit);
        Session::new(SessionOptions {
            formats: self.formats.clone(),
            locator: Arc::clone(&self.stores) as _,
            catalogs: vec![(CATALOG.to_owned(), Arc::clone(&self.catalog) as _)],
            default_catalog: CATALOG.to_owned(),
            default_schema: SCHEMA.to_owned(),
            publisher: Arc::clone(&self.publisher),
            env: self.env.clone(),
            time_zone: self.config.get("tz").unwrap_or("UTC").to_owned(),
            memory_limit: Some(usize::try_from(memory).unwrap_or(usize::MAX)),
            target_partitions: None,
            access: if self.stores.read_only() { Access::ReadOnly } else { Access::ReadWrite },
        })
    }

    /// Opens the table `text` names: a location or `[[catalog.]schema.]table`, with `@revision` behind it.
    ///
    /// A location that is there as written is taken as written, so that a folder may have an `@` in its name. A bare
    /// name is a folder if there is one, else a table of the default catalog.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](lakebed_core::ErrorKind) when nothing is there, with what was looked for.
    pub async fn open(&self, text: &str, table_format: Option<&str>) -> Result<Opened> {
        let (name, revision) = self.split(text)?;
        let place = self.stores.place(&name)?;
        let local = matches!(&place, Place::Local(path) if path.is_dir());
        let (storage, publisher, options) = if local || looks_like_place(&name) {
            check_there(&name, &place)?;
            (self.stores.storage(&place)?, Arc::clone(&self.publisher), OpenOptions::default())
        } else {
            let entry = self.catalog.load(&ident(&name)?).await?;
            (entry.storage, entry.publisher, entry.options)
        };
        let wanted = table_format.or_else(|| self.config.get("table_format"));
        let format = self.formats.detect(&storage, wanted).await?;
        let at = TableLocation { storage, publisher: Arc::clone(&publisher), env: self.env.clone(), options };
        Ok(Opened { name, revision, table: format.open(at).await?, publisher })
    }

    fn split(&self, text: &str) -> Result<(String, Option<String>)> {
        if text.contains('@') && matches!(self.stores.place(text)?, Place::Local(path) if path.exists()) {
            return Ok((text.to_owned(), None));
        }
        let (name, revision) = split_table_rev(text);
        Ok((name.to_owned(), revision.map(str::to_owned)))
    }
}

/// A local folder that is not there is a better error than a table that is not in it.
fn check_there(name: &str, place: &Place) -> Result<()> {
    let Place::Local(path) = place else { return Ok(()) };
    if path.is_dir() {
        return Ok(());
    }
    if path.exists() {
        return Err(Error::invalid(format!("{name} is a file; a table is a folder")));
    }
    let err = Error::not_found(format!("{name}: there is no such folder"));
    let siblings = path.parent().map(folders).unwrap_or_default();
    match similar::closest(place.name(), siblings.iter().map(String::as_str)) {
        Some(found) => Err(err.with_hint(format!("did you mean {}?", path.with_file_name(found).display()))),
        None => Err(err.with_hint("check the path; a relative one starts at the working folder or at -C")),
    }
}

fn folders(parent: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(parent) else { return Vec::new() };
    let found = entries.flatten().take(10_000).filter(|it| it.file_type().is_ok_and(|it| it.is_dir()));
    let mut names: Vec<String> = found.filter_map(|it| it.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// `table`, `schema.table` or `lake.schema.table`; parts in double quotes may hold dots.
fn ident(text: &str) -> Result<TableIdent> {
    let broken = || Error::invalid(format!("`{}` names no table", text.escape_debug()));
    let mut parts = name_parts(text).ok_or_else(broken)?;
    let name = parts.pop().filter(|it| !it.is_empty()).ok_or_else(broken)?;
    let namespace = match parts.as_slice() {
        [] => SCHEMA.to_owned(),
        [schema] => schema.clone(),
        [catalog, schema] if catalog.eq_ignore_ascii_case(CATALOG) => schema.clone(),
        [catalog, _] => {
            let err = Error::not_found(format!("no catalog `{}`", catalog.escape_debug()));
            return Err(err.with_hint(format!("the catalog of --warehouse is `{CATALOG}`")));
        }
        _ => return Err(broken()),
    };
    Ok(TableIdent { namespace: vec![namespace], name })
}

fn name_parts(text: &str) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut letters = text.chars().peekable();
    let mut quoted = false;
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.next_if_eq(&'"').is_some() => parts.last_mut()?.push('"'),
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(String::new()),
            other => parts.last_mut()?.push(other),
        }
    }
    (!quoted).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_up_to_three_parts() {
        let cases = [
            ("orders", "default/orders"),
            ("sales.Orders", "sales/Orders"),
            ("LAKE.sales.orders", "sales/orders"),
            ("sales.\"a.b\"", "sales/a.b"),
            ("\"a\"\"b\"", "default/a\"b"),
            ("hive.sales.orders", "error: no catalog `hive`"),
            ("a.b.c.d", "error: `a.b.c.d` names no table"),
            ("\"a", "error: `\\\"a` names no table"),
            ("a.", "error: `a.` names no table"),
        ];
        for (text, expected) in cases {
            let shown =
                ident(text).map_or_else(|err| format!("error: {err}"), |it| format!("{}/{}", it.namespace[0], it.name));
            assert_eq!(shown, expected, "{text}");
        }
    }
}
