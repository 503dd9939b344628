//! `DROP TABLE`, `TRUNCATE TABLE`, `ALTER TABLE … RENAME TO`, and schemas: names come and go in their catalog.
use std::sync::Arc;

use lakebed_core::{
    Error, ErrorKind, Result,
    catalog::{Catalog, TableIdent},
    timeline::Action,
};

use super::{Output, Session, writes::counted};
use crate::{
    sql::{scope::same, write::Target},
    write::{self, Driver},
};

impl Session {
    /// Drops a table that a catalog knows; one named by its place is a folder, and folders are their owner's.
    pub(super) async fn drop_table(&self, target: &Target, if_exists: bool) -> Result<()> {
        if let [name] = target.name.as_slice()
            && self.mutable_read().views.contains_key(&name.to_lowercase())
        {
            return Err(Error::invalid(format!("`{name}` is a view")).with_hint("DROP VIEW drops it"));
        }
        let to = match self.destination(target).await {
            Err(err) if err.kind() == ErrorKind::NotFound && if_exists => return Ok(()),
            found => found?,
        };
        let location = to.table.storage().location().to_owned();
        let Some((catalog, ident)) = to.entry else {
            let message = format!("`{target}` is named by its place: DROP TABLE drops tables of a catalog");
            return Err(Error::new(ErrorKind::Refused, message)
                .with_hint(format!("DELETE FROM and VACUUM empty it; or remove {location} while nobody uses it")));
        };
        Catalog::drop(catalog.as_ref(), &ident).await?;
        self.shared.kept.forget(&location);
        Ok(())
    }

    pub(super) async fn rename_table(&self, from: &Target, to: &Target) -> Result<()> {
        let found = self.destination(from).await?;
        let Some((catalog, ident)) = found.entry else {
            return Err(Error::new(ErrorKind::Refused, format!("`{from}` is named by its place, which is its name"))
                .with_hint("move the folder while nobody uses it"));
        };
        let new = self.renamed(&ident, to)?;
        catalog.rename(&ident, &new).await?;
        self.shared.kept.forget(found.table.storage().location());
        Ok(())
    }

    /// The new name; one without a schema stays in the old one's.
    fn renamed(&self, from: &TableIdent, to: &Target) -> Result<TableIdent> {
        let Some((name, folder)) = to.name.split_last().filter(|_| !to.literal) else {
            return Err(Error::invalid(format!("`{to}` is no table's name")));
        };
        let namespace = match folder {
            [] => from.namespace.clone(),
            [catalog, namespace @ ..] if !namespace.is_empty() && self.is_catalog(catalog) => namespace.to_vec(),
            namespace => namespace.to_vec(),
        };
        Ok(TableIdent { namespace, name: name.clone() })
    }

    fn is_catalog(&self, name: &str) -> bool {
        self.shared.catalogs.iter().any(|it| same(&it.0, name))
    }

    pub(super) async fn truncate(&self, target: &Target) -> Result<Output> {
        let (_, context) = self.writing(target).await?;
        let intent = self.intent(Action::Delete, "TRUNCATE", [])?;
        let driver = Driver::begin(&context, intent).await?;
        counted(write::truncate(driver).await?.count)
    }

    pub(super) async fn create_schema(&self, name: &[String], if_not_exists: bool) -> Result<()> {
        let (catalog, namespace) = self.schema(name)?;
        match catalog.create_namespace(&namespace).await {
            Err(err) if err.kind() == ErrorKind::AlreadyExists && if_not_exists => Ok(()),
            made => made,
        }
    }

    pub(super) async fn drop_schema(&self, name: &[String], if_exists: bool) -> Result<()> {
        let (catalog, namespace) = self.schema(name)?;
        match catalog.drop_namespace(&namespace).await {
            Err(err) if err.kind() == ErrorKind::NotFound && if_exists => Ok(()),
            dropped => dropped,
        }
    }

    /// `schema` or `catalog.schema`.
    fn schema(&self, name: &[String]) -> Result<(Arc<dyn Catalog>, Vec<String>)> {
        let place = self.place();
        let (catalog, namespace) = match name {
            [schema] => (place.catalog.as_str(), vec![schema.clone()]),
            [catalog, rest @ ..] => (catalog.as_str(), rest.to_vec()),
            [] => return Err(Error::internal("a schema without a name")),
        };
        Ok((Arc::clone(self.shared.catalog(catalog)?.1), namespace))
    }
}
