//! Loads what a statement names: here, once, every version is fixed.
//!
//! A name is `[catalog.][schema.]table`, a path in quotes, or ``format.`path` ``; behind it may stand `@rev` and
//! `$system`, in either order. `@` splits a name only if nothing is called by the whole of it. Tables are opened once
//! a statement and loaded once a version, so that two references without a version read the same rows, and `t$files`
//! lists the files of the very version that `t` reads.
use std::{collections::BTreeMap, sync::Arc};

use datafusion::{
    catalog::TableProvider,
    common::{ScalarValue, TableReference},
    execution::SessionState,
};
use lakebed_core::{
    Error, ErrorKind, Result,
    catalog::{Catalog, TableIdent},
    commit::Publisher,
    format::{OpenOptions, TableFormat, TableLocation},
    table::{Snapshot, Table},
    version::{AsOf, Millis},
};
use sqlparser::ast::Expr;

use super::{
    pins::{self, Constants, Pin},
    plan::{Loaded, Planner, planned},
    scope::same,
    wanted::Wanted,
    write::Target,
};
use crate::{
    function,
    provider::LakeTable,
    session::{Destination, Place, Shared},
    system,
    text::did_you_mean,
};

/// Loads the tables of one statement.
pub(crate) struct Loader<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) place: Place,
    /// In which times without a zone are read.
    time_zone: String,
    pub(crate) state: &'a SessionState,
    /// The moment the statement started, for `2 hours ago`.
    pub(crate) now: Millis,
    opened: BTreeMap<String, Arc<dyn Table>>,
    snapshots: BTreeMap<(String, String), Arc<dyn Snapshot>>,
    /// The entries of tables that a catalog knows, by their place.
    entries: BTreeMap<String, Entry>,
}

/// Who knows a table by name.
#[derive(Clone)]
struct Entry {
    catalog: Arc<dyn Catalog>,
    ident: TableIdent,
    publisher: Arc<dyn Publisher>,
}

/// A table that was found, and what stood behind its name.
struct Found {
    table: Arc<dyn Table>,
    /// The name without `@rev`.
    name: String,
    rev: Option<String>,
    system: Option<String>,
}

impl<'a> Loader<'a> {
    pub(crate) fn new(shared: &'a Shared, place: Place, time_zone: String, state: &'a SessionState) -> Self {
        let now = shared.env.clock.now();
        let opened = shared.known.clone();
        let (snapshots, entries) = (BTreeMap::new(), BTreeMap::new());
        Self { shared, place, time_zone, state, now, opened, snapshots, entries }
    }

    /// Reads `snapshot` wherever the statement names the table without a version.
    pub(crate) fn fix(&mut self, table: &Arc<dyn Table>, snapshot: &Arc<dyn Snapshot>) {
        let key = (table.storage().location().to_owned(), format!("{:?}", AsOf::Latest));
        self.snapshots.insert(key, Arc::clone(snapshot));
    }

    /// The table that a statement writes to.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a name that means anything but a table at its newest version.
    pub(crate) async fn destination(&mut self, target: &Target) -> Result<Destination> {
        if information(&target.name).is_some() {
            return Err(Error::invalid(format!("`{target}` is a system table: nobody writes to it")));
        }
        let found = self.find(&target.name, target.literal).await;
        let found = found.map_err(|it| self.shared.about_system(it, target.name.last().map_or("", String::as_str)))?;
        if let Some(system) = found.system {
            return Err(Error::invalid(format!(
                "`{target}`: nobody writes to `${system}`, it is made of the metadata"
            )));
        }
        if let Some(rev) = found.rev {
            let message = format!("`{target}` names version `{rev}`: a version never changes, a write makes a new one");
            return Err(Error::invalid(message).with_hint("leave the version out"));
        }
        let entry = self.entries.get(found.table.storage().location()).cloned();
        let publisher = entry.as_ref().map_or(&self.shared.publisher, |it| &it.publisher);
        let mut parts = target.name.clone();
        if let Some(last) = parts.last_mut() {
            *last = found.name;
        }
        Ok(Destination {
            name: parts.join("."),
            reference: reference(&parts),
            publisher: Arc::clone(publisher),
            table: found.table,
            entry: entry.map(|it| (it.catalog, it.ident)),
        })
    }

    pub(crate) async fn load(&mut self, wanted: &Wanted) -> Result<Loaded> {
        if let Some(arguments) = &wanted.arguments {
            let provider = function::load(self, &wanted.name, arguments).await?;
            return Ok(Loaded { reference: reference(&wanted.name), provider });
        }
        if let Some(name) = information(&wanted.name) {
            let provider = system::information::load(self, name).await?;
            return Ok(Loaded { reference: reference(&wanted.name), provider });
        }
        let mut pin = wanted.version.as_ref().map(|it| pins::of_clause(it, self)).transpose()?;
        let found = self.find(&wanted.name, wanted.literal).await;
        let found = found.map_err(|it| self.shared.about_system(it, wanted.name.last().map_or("", String::as_str)))?;
        if let Some(rev) = found.rev {
            pins::set(&mut pin, Pin::Rev(rev))?;
        }
        let provider = match found.system {
            Some(name) => system::load(self, &found.table, &found.name, &name, pin).await?,
            None => self.rows(&found.table, &found.name, pin).await?,
        };
        let mut parts = wanted.name.clone();
        if let Some(last) = parts.last_mut() {
            *last = found.name;
        }
        Ok(Loaded { reference: reference(&parts), provider })
    }

    /// The rows of a table at a version.
    pub(crate) async fn rows(
        &mut self,
        table: &Arc<dyn Table>,
        name: &str,
        pin: Option<Pin>,
    ) -> Result<Arc<dyn TableProvider>> {
        let snapshot = self.snapshot(table, pin).await?;
        let provider = LakeTable::new(name, Arc::clone(table), snapshot, self.shared.formats.clone())?;
        Ok(Arc::new(provider))
    }

    /// A table's state at a version, loaded once a statement.
    pub(crate) async fn snapshot(&mut self, table: &Arc<dyn Table>, pin: Option<Pin>) -> Result<Arc<dyn Snapshot>> {
        let as_of = self.as_of(table, pin).await?;
        let key = (table.storage().location().to_owned(), format!("{as_of:?}"));
        if let Some(snapshot) = self.snapshots.get(&key) {
            return Ok(Arc::clone(snapshot));
        }
        let snapshot = table.snapshot(&as_of).await?;
        self.snapshots.insert(key, Arc::clone(&snapshot));
        Ok(snapshot)
    }

    pub(crate) async fn as_of(&self, table: &Arc<dyn Table>, pin: Option<Pin>) -> Result<AsOf> {
        match pin {
            None => Ok(AsOf::Latest),
            Some(Pin::AsOf(as_of)) => Ok(as_of),
            Some(Pin::Rev(text)) => self.shared.revision(&text, table.as_ref(), self.now, &self.time_zone).await,
        }
    }

    /// The table that text names: a path if it looks like one, else a name in a catalog, else a path after all.
    pub(crate) async fn table(&mut self, text: &str, format: Option<&str>) -> Result<(Arc<dyn Table>, Option<Pin>)> {
        let found = match looks_like_path(text) {
            true => self.find_path(text, format).await?,
            false => {
                let parts: Vec<String> = text.split('.').map(str::to_owned).collect();
                match self.find(&parts, false).await {
                    Err(err) if err.kind() == ErrorKind::NotFound => match self.find_path(text, format).await {
                        Ok(found) => found,
                        Err(_) => return Err(err),
                    },
                    found => found?,
                }
            }
        };
        match found.system {
            None => Ok((found.table, found.rev.map(Pin::Rev))),
            Some(name) => Err(Error::invalid(format!("`{text}`: expected a table, not its `{name}`"))),
        }
    }

    async fn find(&mut self, name: &[String], literal: bool) -> Result<Found> {
        let Some((last, folder)) = name.split_last() else { return Err(Error::invalid("a table without a name")) };
        if literal || (folder.is_empty() && looks_like_path(last)) {
            return self.find_path(last, None).await;
        }
        if let [format] = folder
            && self.shared.formats.by_name(format).is_some()
            && looks_like_path(last)
        {
            return self.find_path(last, Some(format)).await;
        }
        let (base, system, rev) = self.shared.split_system(last);
        let found = self.by_name(folder, &base, rev).await;
        match (found, folder.split_last()) {
            (Ok((table, name, rev)), _) => Ok(Found { table, name: with_system(name, &system), rev, system }),
            // `db.t.history`: the last part may be a system table in the manner of other engines.
            (Err(err), Some((table, folder)))
                if err.kind() == ErrorKind::NotFound && system.is_none() && self.shared.is_system(&base) =>
            {
                let Ok((table, name, rev)) = self.by_name(folder, table, None).await else { return Err(err) };
                let system = Some(base.to_lowercase());
                Ok(Found { table, name: with_system(name, &system), rev, system })
            }
            (Err(err), _) => Err(err),
        }
    }

    /// The table, its name without `@rev`, and the rev.
    async fn by_name(
        &mut self,
        folder: &[String],
        base: &str,
        rev: Option<String>,
    ) -> Result<(Arc<dyn Table>, String, Option<String>)> {
        let literal = self.in_catalog(folder, base).await;
        match (literal, split_rev(base), rev) {
            (Ok(table), _, rev) => Ok((table, base.to_owned(), rev)),
            (Err(err), Some((name, rev)), None) if err.kind() == ErrorKind::NotFound => {
                Ok((self.in_catalog(folder, name).await?, name.to_owned(), Some(rev.to_owned())))
            }
            (Err(err), ..) => Err(err),
        }
    }

    async fn find_path(&mut self, path: &str, format: Option<&str>) -> Result<Found> {
        let (base, system, rev) = self.shared.split_system(path);
        let literal = self.at_path(&base, format).await;
        match (literal, split_rev(&base), rev) {
            (Ok(table), _, rev) => Ok(Found { table, name: with_system(base, &system), rev, system }),
            (Err(err), Some((name, rev)), None) if err.kind() == ErrorKind::NotFound => {
                let table = self.at_path(name, format).await?;
                let rev = Some(rev.to_owned());
                Ok(Found { table, name: with_system(name.to_owned(), &system), rev, system })
            }
            (Err(err), ..) => Err(err),
        }
    }

    /// The table at a place, of a format that is given or found.
    pub(crate) async fn at_path(&mut self, location: &str, format: Option<&str>) -> Result<Arc<dyn Table>> {
        let key = opened_at(location, format);
        if let Some(table) = self.opened.get(&key) {
            return Ok(Arc::clone(table));
        }
        // A format that is named finds out by opening whether there is a table; `@` asks whether there is one first.
        let named = format.filter(|_| !location.contains('@')).and_then(|it| self.shared.formats.by_name(it));
        if let Some(table) = self.shared.kept.get(&key).filter(|_| named.is_some()) {
            self.opened.insert(key, Arc::clone(&table));
            return Ok(table);
        }
        let storage = self.shared.locator.locate(location).await?;
        let format = match named {
            Some(format) => format,
            None => self.shared.formats.detect(&storage, format).await?,
        };
        let at = TableLocation {
            storage,
            publisher: Arc::clone(&self.shared.publisher),
            env: self.shared.env.clone(),
            options: OpenOptions::default(),
        };
        let table = self.open(key.clone(), &format, at).await?;
        self.shared.kept.put(key, &table);
        Ok(table)
    }

    async fn open(&mut self, key: String, format: &Arc<dyn TableFormat>, at: TableLocation) -> Result<Arc<dyn Table>> {
        let table = format.open(at).await.map_err(nowhere)?;
        self.opened.insert(key, Arc::clone(&table));
        Ok(table)
    }

    async fn in_catalog(&mut self, folder: &[String], name: &str) -> Result<Arc<dyn Table>> {
        let (catalog, namespace) = self.shared.catalog_of(&self.place, folder)?;
        let ident = TableIdent { namespace, name: name.to_owned() };
        let key = format!("{} {:?}", catalog.0, ident);
        if let Some(table) = self.opened.get(&key) {
            return Ok(Arc::clone(table));
        }
        let entry = match catalog.1.load(&ident).await {
            Ok(entry) => entry,
            Err(err) if err.kind() == ErrorKind::NotFound => return Err(unknown(catalog.1.as_ref(), &ident, err).await),
            Err(err) => return Err(err),
        };
        let format = self.shared.formats.of(&entry.format)?;
        let known = Entry {
            catalog: Arc::clone(catalog.1),
            ident: entry.ident.clone(),
            publisher: Arc::clone(&entry.publisher),
        };
        self.entries.insert(entry.storage.location().to_owned(), known);
        let (storage, publisher) = (entry.storage, entry.publisher);
        // What a catalog says of a table may change; its place and format are what a handle is.
        let place = (entry.options == OpenOptions::default())
            .then(|| format!("{key} {}", opened_at(storage.location(), Some(format.kind().name()))));
        if let Some(table) = place.as_ref().and_then(|it| self.shared.kept.get(it)) {
            self.opened.insert(key, Arc::clone(&table));
            return Ok(table);
        }
        let at = TableLocation { storage, publisher, env: self.shared.env.clone(), options: entry.options };
        let table = self.open(key, &format, at).await?;
        if let Some(place) = place {
            self.shared.kept.put(place, &table);
        }
        Ok(table)
    }
}

impl Constants for Loader<'_> {
    fn constant(&self, expr: &Expr) -> Result<ScalarValue> {
        planned(Planner::new(self.state, Vec::new(), Vec::new()).constant(expr))
    }

    fn time(&self, text: &str) -> Result<Millis> {
        self.shared.time(text, self.now, &self.time_zone)
    }
}

/// The error for a name nobody knows, with the nearest one that is there.
async fn unknown(catalog: &dyn Catalog, ident: &TableIdent, err: Error) -> Error {
    if err.hint().is_some() {
        return err;
    }
    let Ok(tables) = catalog.tables(&ident.namespace).await else { return err };
    match did_you_mean(&ident.name, tables.iter().map(|it| it.name.as_str())) {
        Some(near) => Error::new(ErrorKind::NotFound, err.to_string()).with_hint(format!("did you mean `{near}`?")),
        None => err,
    }
}

/// What a table opened at a place is known by.
pub(crate) fn opened_at(location: &str, format: Option<&str>) -> String {
    format!("{}:{location}", format.unwrap_or_default().to_lowercase())
}

/// A place without a table has no versions to look at.
fn nowhere(err: Error) -> Error {
    match err.kind() == ErrorKind::NotFound && err.hint().is_none() {
        true => err.with_hint("check the path"),
        false => err,
    }
}

fn with_system(name: String, system: &Option<String>) -> String {
    match system {
        Some(system) => format!("{name}${system}"),
        None => name,
    }
}

/// A name and the revision behind its last `@`, both not empty.
fn split_rev(name: &str) -> Option<(&str, &str)> {
    name.rsplit_once('@').filter(|(name, rev)| !name.is_empty() && !rev.is_empty())
}

/// Whether text is a place and not a name: it has a slash or a scheme, or starts like a folder.
pub(crate) fn looks_like_path(text: &str) -> bool {
    text.contains('/') || text.contains('\\') || text == "." || text == ".." || text.starts_with('~')
}

/// The table of `information_schema` that a name means.
fn information(name: &[String]) -> Option<&str> {
    match name {
        [.., schema, table] if same(schema, "information_schema") => Some(table),
        _ => None,
    }
}

/// How columns of a relation are qualified: by the last three parts of its name.
fn reference(parts: &[String]) -> TableReference {
    match parts {
        [] => TableReference::bare(""),
        [table] => TableReference::bare(table.as_str()),
        [schema, table] => TableReference::partial(schema.as_str(), table.as_str()),
        [.., catalog, schema, table] => TableReference::full(catalog.as_str(), schema.as_str(), table.as_str()),
    }
}
