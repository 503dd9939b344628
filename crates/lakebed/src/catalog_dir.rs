//! The default catalog: a folder whose folders are schemas, whose folders are tables.
//!
//! A table's format is found by looking, not recorded. Folders whose names start with `.` or `_` are nobody's. Names
//! match without case and keep theirs: the exact spelling wins, then the only other one; two that differ by case
//! alone can be named exactly and are otherwise an error that names both.
use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use lakebed_core::{
    Error, ErrorKind, Result,
    catalog::{Catalog, TableEntry, TableIdent},
    commit::Publisher,
    env::Env,
    format::{CreateTable, FormatKind, OpenOptions, TableFormat, TableLocation},
    path::FilePath,
    storage::{Storage, storage_error},
};
use lakebed_engine::registry::Formats;

use crate::{location::Place, store::Stores};

mod change;

/// How many folders are looked at together.
const AT_ONCE: usize = 16;

/// See the [module](self).
#[derive(Debug)]
pub struct DirectoryCatalog {
    warehouse: Place,
    stores: Arc<Stores>,
    formats: Formats,
    publisher: Arc<dyn Publisher>,
    env: Env,
}

impl DirectoryCatalog {
    pub fn new(
        warehouse: Place,
        stores: Arc<Stores>,
        formats: Formats,
        publisher: Arc<dyn Publisher>,
        env: Env,
    ) -> Self {
        Self { warehouse, stores, formats, publisher, env }
    }

    /// The folder this catalog shows.
    pub fn location(&self) -> String {
        self.warehouse.location()
    }

    /// Names of the folders in `place`, in order; none where there is no such place.
    async fn folders(&self, place: &Place) -> Result<Vec<String>> {
        if let Place::Local(path) = place
            && !path.is_dir()
        {
            return Ok(Vec::new());
        }
        let storage = self.stores.storage(place)?;
        let (store, root) = storage.object(&FilePath::below(""))?;
        let listed = match store.list_with_delimiter(Some(&root)).await {
            Ok(listed) => listed,
            Err(object_store::Error::NotFound { .. }) => return Ok(Vec::new()),
            Err(err) => return Err(storage_error(storage.location(), err)),
        };
        let names = listed.common_prefixes.iter().filter_map(|it| it.filename().map(str::to_owned));
        let mut names: Vec<String> = names.filter(|it| !it.starts_with(['.', '_'])).collect();
        names.sort();
        Ok(names)
    }

    /// The folder in `place` that `wanted` names.
    async fn find(&self, place: &Place, wanted: &str) -> Result<Option<String>> {
        let names = self.folders(place).await?;
        if names.iter().any(|it| it == wanted) {
            return Ok(Some(wanted.to_owned()));
        }
        let folded = wanted.to_lowercase();
        let mut alike = names.into_iter().filter(|it| it.to_lowercase() == folded);
        match (alike.next(), alike.next()) {
            (Some(one), Some(two)) => {
                Err(Error::invalid(format!("`{wanted}` could be `{one}` or `{two}` in {}", place.location()))
                    .with_hint("write the name in its exact case"))
            }
            (found, _) => Ok(found),
        }
    }

    /// The place of a schema that is there, and its name as it is spelled there.
    async fn schema(&self, namespace: &[String]) -> Result<Option<Place>> {
        let [name] = namespace else {
            return Err(Error::invalid(format!(
                "`{}`: a directory catalog has one level of schemas",
                namespace.join(".")
            )));
        };
        check_name("schema", name)?;
        Ok(self.find(&self.warehouse, name).await?.map(|it| self.warehouse.join(&it)))
    }

    /// The folder that `ident` names, and the name as it is spelled there.
    async fn found(&self, ident: &TableIdent) -> Result<(Place, TableIdent)> {
        check_name("table", &ident.name)?;
        let Some(schema) = self.schema(&ident.namespace).await? else {
            let err = self.unknown_schema(&ident.namespace.join(".")).await;
            let hint = err.hint().map(str::to_owned).unwrap_or_default();
            return Err(Error::not_found(format!("no table `{}`: {err}", ident.name)).with_hint(hint));
        };
        let Some(name) = self.find(&schema, &ident.name).await? else {
            return Err(self.unknown_table(&schema, ident).await);
        };
        Ok((schema.join(&name), TableIdent { namespace: vec![schema.name().to_owned()], name }))
    }

    /// The format of the table in `storage`; `None` when there is none.
    async fn format_of(&self, storage: &Storage) -> Result<Option<Arc<dyn TableFormat>>> {
        match self.formats.detect(storage, None).await {
            Ok(format) => Ok(Some(format)),
            Err(err) if err.kind() == ErrorKind::NotFound => Ok(None),
            Err(err) => Err(err),
        }
    }

    async fn is_table(&self, place: &Place) -> Result<bool> {
        match self.format_of(&self.stores.storage(place)?).await {
            Ok(found) => Ok(found.is_some()),
            // Two formats in one folder: it is listed, and loading it says what to do.
            Err(err) if err.kind() == ErrorKind::Invalid => Ok(true),
            Err(err) => Err(err),
        }
    }

    /// The names in `place` that are tables (`wanted` true) or are not.
    async fn sorted_out(&self, place: &Place, wanted: bool) -> Result<Vec<String>> {
        let names = self.folders(place).await?;
        let looked = stream::iter(names).map(|name| async {
            let table = self.is_table(&place.join(&name)).await?;
            Ok::<_, Error>((table == wanted).then_some(name))
        });
        looked.buffered(AT_ONCE).try_filter_map(|it| async { Ok(it) }).try_collect().await
    }

    fn entry(&self, ident: TableIdent, format: FormatKind, storage: Storage) -> TableEntry {
        TableEntry {
            ident,
            format,
            storage,
            pointer: None,
            publisher: Arc::clone(&self.publisher),
            options: OpenOptions::default(),
            properties: BTreeMap::new(),
        }
    }

    async fn unknown_table(&self, schema: &Place, ident: &TableIdent) -> Error {
        let message = format!("no table `{}` in {}", ident.name, schema.location());
        let names = self.sorted_out(schema, true).await.unwrap_or_default();
        match crate::similar::closest(&ident.name, names.iter().map(String::as_str)) {
            Some(name) => Error::not_found(message).with_hint(format!("did you mean `{name}`?")),
            None if names.is_empty() => Error::not_found(message).with_hint("this schema has no tables"),
            None => Error::not_found(message).with_hint(format!("tables there: {}", some_of(&names))),
        }
    }

    async fn unknown_schema(&self, name: &str) -> Error {
        let message = format!("no schema `{name}` in {}", self.warehouse.location());
        let names = self.folders(&self.warehouse).await.unwrap_or_default();
        match crate::similar::closest(name, names.iter().map(String::as_str)) {
            Some(name) => Error::not_found(message).with_hint(format!("did you mean `{name}`?")),
            None if names.is_empty() => {
                Error::not_found(message).with_hint("name another folder with --warehouse, or give the table's path")
            }
            None => Error::not_found(message).with_hint(format!("schemas there: {}", some_of(&names))),
        }
    }
}

fn some_of(names: &[String]) -> String {
    let shown = names.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > 5 { format!("{shown}, … ({} in all)", names.len()) } else { shown }
}

/// A name becomes a folder's name only if it is one segment that no listing hides.
fn check_name(what: &str, name: &str) -> Result<()> {
    let bad = name.is_empty() || name.starts_with(['.', '_']) || name.contains(['/', '\\']);
    if bad || name.chars().any(char::is_control) {
        return Err(Error::invalid(format!("`{}` is no {what} name", name.escape_debug())).with_hint(
            "names are one folder's name: not empty, no slash, no control character, no leading `.` or `_`",
        ));
    }
    Ok(())
}

#[async_trait]
impl Catalog for DirectoryCatalog {
    async fn namespaces(&self, parent: &[String]) -> Result<Vec<Vec<String>>> {
        if !parent.is_empty() {
            return Ok(Vec::new());
        }
        Ok(self.sorted_out(&self.warehouse, false).await?.into_iter().map(|it| vec![it]).collect())
    }

    async fn tables(&self, namespace: &[String]) -> Result<Vec<TableIdent>> {
        let Some(schema) = self.schema(namespace).await? else {
            return Err(self.unknown_schema(&namespace.join(".")).await);
        };
        let namespace = vec![schema.name().to_owned()];
        let names = self.sorted_out(&schema, true).await?.into_iter();
        Ok(names.map(|name| TableIdent { namespace: namespace.clone(), name }).collect())
    }

    async fn load(&self, ident: &TableIdent) -> Result<TableEntry> {
        let (place, ident) = self.found(ident).await?;
        let storage = self.stores.storage(&place)?;
        let format = self.formats.detect(&storage, None).await?;
        Ok(self.entry(ident, format.kind(), storage))
    }

    async fn place(&self, ident: &TableIdent, format: FormatKind) -> Result<TableEntry> {
        let storage = self.storage_for_new(ident).await?;
        Ok(self.entry(ident.clone(), format, storage))
    }

    async fn create(&self, ident: &TableIdent, format: FormatKind, table: CreateTable) -> Result<TableEntry> {
        let entry = self.place(ident, format).await?;
        let at = TableLocation {
            storage: entry.storage.clone(),
            publisher: Arc::clone(&self.publisher),
            env: self.env.clone(),
            options: OpenOptions::default(),
        };
        self.formats.of(&entry.format)?.create(at, table).await?;
        Ok(entry)
    }

    async fn rename(&self, from: &TableIdent, to: &TableIdent) -> Result<()> {
        self.move_table(from, to).await
    }

    async fn drop(&self, ident: &TableIdent) -> Result<()> {
        self.remove_table(ident).await
    }

    async fn create_namespace(&self, namespace: &[String]) -> Result<()> {
        self.make_schema(namespace).await
    }

    async fn drop_namespace(&self, namespace: &[String]) -> Result<()> {
        self.remove_schema(namespace).await
    }
}
