//! What every statement of a session shares and none changes.
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use lakebed_core::{
    Error, ErrorKind, Result,
    catalog::Catalog,
    commit::Publisher,
    env::Env,
    extension::Extension,
    format::TableFormat,
    rev::{self, Rev},
    table::Table,
    time::{Tz, parse_time},
    version::{AsOf, Millis},
};

use super::{Access, Locator, SessionOptions, kept::Kept};
use crate::{registry::Formats, sql::scope::same, system, text::did_you_mean};

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) formats: Formats,
    pub(crate) locator: Arc<dyn Locator>,
    pub(crate) catalogs: Vec<(String, Arc<dyn Catalog>)>,
    pub(crate) publisher: Arc<dyn Publisher>,
    pub(crate) env: Env,
    pub(crate) time_zone: String,
    /// Tables that are open already, by [`opened_at`](crate::sql::resolve::opened_at).
    pub(crate) known: BTreeMap<String, Arc<dyn Table>>,
    pub(crate) kept: Kept,
    pub(crate) access: Access,
    /// System tables that formats add.
    own_system_tables: BTreeSet<String>,
}

/// Where names without a catalog or schema are looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) catalog: String,
    pub(crate) schema: String,
}

/// A catalog with its name in its own spelling.
pub(crate) type NamedCatalog<'a> = (&'a str, &'a Arc<dyn Catalog>);

impl Shared {
    pub(crate) fn new(options: SessionOptions) -> Result<Self> {
        let extensions = options.formats.iter().flat_map(|it| it.extensions().system_tables);
        let own_system_tables = extensions.map(|it| it.name.to_owned()).collect();
        let SessionOptions { formats, locator, catalogs, publisher, env, time_zone, access, .. } = options;
        Tz::parse(&time_zone)?;
        let known = BTreeMap::new();
        let kept = Kept::default();
        Ok(Self { formats, locator, catalogs, publisher, env, time_zone, known, kept, access, own_system_tables })
    }

    /// The catalog and namespace that the parts before a table's name mean.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](lakebed_core::ErrorKind) if no catalog has the name.
    pub(crate) fn catalog_of(&self, place: &Place, folder: &[String]) -> Result<(NamedCatalog<'_>, Vec<String>)> {
        match folder {
            [] => Ok((self.catalog(&place.catalog)?, vec![place.schema.clone()])),
            [schema] => Ok((self.catalog(&place.catalog)?, vec![schema.clone()])),
            [catalog, namespace @ ..] => Ok((self.catalog(catalog)?, namespace.to_vec())),
        }
    }

    /// A catalog by name: exact first, then without case.
    pub(crate) fn catalog(&self, name: &str) -> Result<NamedCatalog<'_>> {
        let exact = self.catalogs.iter().find(|it| it.0 == name);
        let found = exact.or_else(|| self.catalogs.iter().find(|it| same(&it.0, name)));
        if let Some((name, catalog)) = found {
            return Ok((name, catalog));
        }
        let error = Error::not_found(format!("no catalog is called `{name}`"));
        match did_you_mean(name, self.catalogs.iter().map(|it| it.0.as_str())) {
            Some(near) => Err(error.with_hint(format!("did you mean `{near}`?"))),
            None => Err(error.with_hint("SHOW CATALOGS lists those that are there")),
        }
    }

    /// Takes `$system` off a name, before or behind its `@rev`: the rest, the system table, the rev if it stood last.
    pub(crate) fn split_system(&self, name: &str) -> (String, Option<String>, Option<String>) {
        if let Some((base, system)) = name.rsplit_once('$')
            && self.is_system(system)
        {
            return (base.to_owned(), Some(system.to_lowercase()), None);
        }
        if let Some((front, rev)) = name.rsplit_once('@')
            && let Some((base, system)) = front.rsplit_once('$')
            && self.is_system(system)
            && !rev.is_empty()
        {
            return (base.to_owned(), Some(system.to_lowercase()), Some(rev.to_owned()));
        }
        (name.to_owned(), None, None)
    }

    /// A name that was not found may have meant a system table: says which there are.
    pub(crate) fn about_system(&self, err: Error, name: &str) -> Error {
        let behind = name.rsplit_once('$').map(|(_, system)| system.split('@').next().unwrap_or_default());
        let Some(system) = behind.filter(|it| err.kind() == ErrorKind::NotFound && !self.is_system(it)) else {
            return err;
        };
        let known: Vec<&str> =
            system::NAMES.iter().copied().chain(self.own_system_tables.iter().map(String::as_str)).collect();
        let hint = match did_you_mean(&system.to_lowercase(), known.iter().copied()) {
            Some(near) => format!("did you mean `${near}`?"),
            None => format!("system tables are ${}", known.join(", $")),
        };
        Error::new(ErrorKind::NotFound, err.to_string()).with_hint(hint)
    }

    pub(crate) fn is_system(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        system::NAMES.contains(&name.as_str()) || self.own_system_tables.contains(&name)
    }

    /// A function that a format registers, by its name in lower case.
    pub(crate) fn function(&self, name: &str) -> Option<(&Arc<dyn TableFormat>, Extension)> {
        self.formats.iter().find_map(|format| {
            let found = format.extensions().functions.into_iter().find(|it| it.name == name)?;
            Some((format, found))
        })
    }

    /// The version that a revision names.
    pub(crate) async fn revision(&self, text: &str, table: &dyn Table, now: Millis, time_zone: &str) -> Result<AsOf> {
        let rev = Rev::parse(text)?;
        let resolved = rev::resolve(&rev, table, now, &Tz::parse(time_zone)?).await?;
        Ok(AsOf::Version(resolved.version.id))
    }

    pub(crate) fn time(&self, text: &str, now: Millis, time_zone: &str) -> Result<Millis> {
        parse_time(text, &Tz::parse(time_zone)?, now)
    }
}
