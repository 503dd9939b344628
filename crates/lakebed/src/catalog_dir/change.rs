//! Making, renaming and dropping schemas and tables of a directory catalog.
//!
//! *A schema* that somebody made is a folder with the object [`MARK`] in it; stores without folders show it by that. The
//! schema `default` is made by its first table. Only what holds nothing is dropped.
//!
//! *A table* is dropped in an order that a crash cannot spoil: its folder gets a hidden name, which no listing shows, and
//! is deleted then. Whoever finds such a folder later, when another table is dropped there, deletes the rest. A store that
//! cannot rename a folder has no such order, and tables there are not dropped.
//!
//! Every name goes through [`check_new_name`] or names something that is there; a folder that is a link is nobody's to
//! drop or rename: what is behind it lies elsewhere.
use std::{
    fs, io,
    path::{Path, PathBuf},
};

use lakebed_core::{
    Error, ErrorKind, Result,
    catalog::TableIdent,
    storage::{Put, Storage},
};

use super::DirectoryCatalog;
use crate::{SCHEMA, location::Place};

/// Makes a folder of a schema in stores that have no folders.
const MARK: &str = ".lakebed-schema";
/// How the hidden names of dropped tables begin.
const DROPPED: &str = ".lakebed-dropped-";
const LONGEST: usize = 200;

impl DirectoryCatalog {
    /// The schema's place, for a table that will be in it.
    pub(super) async fn schema_for_new(&self, namespace: &[String]) -> Result<Place> {
        if let Some(found) = self.schema(namespace).await? {
            return Ok(found);
        }
        let name = namespace.concat();
        if name == SCHEMA {
            return Ok(self.warehouse.join(SCHEMA));
        }
        let err = self.unknown_schema(&name).await;
        let near =
            err.hint().filter(|it| it.starts_with("did you mean")).map(|it| format!("{it} ")).unwrap_or_default();
        Err(Error::not_found(err.to_string()).with_hint(format!("{near}CREATE SCHEMA makes one")))
    }

    pub(super) async fn make_schema(&self, namespace: &[String]) -> Result<()> {
        let name = one_level(namespace)?;
        check_new_name("schema", name)?;
        let there = |name: &str| Error::new(ErrorKind::AlreadyExists, format!("there is a schema `{name}`"));
        if let Some(found) = self.schema(namespace).await? {
            return Err(there(found.name()));
        }
        match self.stores.storage(&self.warehouse.join(name))?.create(MARK, "{}".into()).await? {
            Put::Won => Ok(()),
            Put::Lost => Err(there(name)),
            Put::Unknown => {
                Err(Error::new(ErrorKind::Unknown, format!("storage did not say whether it took schema `{name}`"))
                    .with_hint("SHOW SCHEMAS says whether it is there"))
            }
        }
    }

    pub(super) async fn remove_schema(&self, namespace: &[String]) -> Result<()> {
        let Some(place) = self.schema(namespace).await? else {
            return Err(self.unknown_schema(&namespace.join(".")).await);
        };
        let storage = self.stores.storage(&place)?;
        let name = place.name().to_owned();
        let within = self.folders(&place).await?;
        if let Some(first) = within.first() {
            let message = format!("schema `{name}` is not empty: `{first}` is one of {} in it", within.len());
            return Err(Error::new(ErrorKind::Refused, message).with_hint("drop or move what is in it first"));
        }
        self.stores.check_writes()?;
        let _ = storage.delete(&[lakebed_core::path::FilePath::below(MARK)]).await?;
        let Place::Local(path) = place else { return Ok(()) };
        blocking(move || {
            sweep(&path);
            // Not empty is an error here: whatever it is, it is not ours to delete.
            fs::remove_dir(&path).map_err(|err| match err.kind() {
                io::ErrorKind::DirectoryNotEmpty => {
                    Error::new(ErrorKind::Refused, format!("{} holds files that are no table's", path.display()))
                        .with_hint("look at them, and delete the folder by hand")
                }
                _ => failed(&path, &err),
            })
        })
        .await
    }

    pub(super) async fn move_table(&self, from: &TableIdent, to: &TableIdent) -> Result<()> {
        check_new_name("table", &to.name)?;
        let source = self.own_folder(from).await?;
        let schema = self.schema_for_new(&to.namespace).await?;
        if let Some(name) = self.find(&schema, &to.name).await? {
            // A table may change the case of its own name.
            let target = schema.join(&name);
            if target != Place::Local(source.clone()) || name == to.name {
                let message = format!("`{name}` is already in {}", schema.location());
                return Err(Error::new(ErrorKind::AlreadyExists, message));
            }
        }
        let Place::Local(target) = schema.join(&to.name) else { return Err(cannot_rename(&schema)) };
        blocking(move || {
            let parent = target.parent().unwrap_or(Path::new("/"));
            fs::create_dir_all(parent).map_err(|it| failed(parent, &it))?;
            fs::rename(&source, &target).map_err(|it| failed(&target, &it))?;
            settle(parent)?;
            settle(source.parent().unwrap_or(Path::new("/")))
        })
        .await
    }

    pub(super) async fn remove_table(&self, ident: &TableIdent) -> Result<()> {
        let folder = self.own_folder(ident).await?;
        let id = self.env.ids.uuid();
        blocking(move || {
            let schema = folder.parent().unwrap_or(Path::new("/"));
            let hidden = schema.join(format!("{DROPPED}{id:032x}"));
            fs::rename(&folder, &hidden).map_err(|it| failed(&folder, &it))?;
            settle(schema)?;
            // From here on the table is gone; what cannot be deleted now, the next drop deletes.
            sweep(schema);
            Ok(())
        })
        .await
    }

    /// The folder of a table that is there, inside the warehouse and nowhere else.
    async fn own_folder(&self, ident: &TableIdent) -> Result<PathBuf> {
        self.stores.check_writes()?;
        let (place, _) = self.found(ident).await?;
        if !self.is_table(&place).await? {
            return Err(Error::new(ErrorKind::Refused, format!("{} is a folder, but no table", place.location()))
                .with_hint("nothing was changed"));
        }
        let Place::Local(folder) = place else { return Err(cannot_rename(&place)) };
        let schema = folder.parent().unwrap_or(Path::new("/"));
        for path in [schema, folder.as_path()] {
            let real = fs::symlink_metadata(path).map_err(|it| failed(path, &it))?;
            if !real.is_dir() {
                let message = format!("{} is a link: what is behind it lies elsewhere", path.display());
                return Err(Error::new(ErrorKind::Refused, message)
                    .with_hint("nothing was changed; drop the table where it lies, or remove the link by hand"));
            }
        }
        Ok(folder)
    }

    /// The storage of a table that is not there yet.
    pub(super) async fn storage_for_new(&self, ident: &TableIdent) -> Result<Storage> {
        check_new_name("table", &ident.name)?;
        let schema = self.schema_for_new(&ident.namespace).await?;
        if let Some(name) = self.find(&schema, &ident.name).await? {
            return Err(Error::new(ErrorKind::AlreadyExists, format!("`{name}` is already in {}", schema.location())));
        }
        self.stores.storage(&schema.join(&ident.name))
    }
}

fn one_level(namespace: &[String]) -> Result<&str> {
    match namespace {
        [name] => Ok(name),
        other => Err(Error::invalid(format!("`{}`: a directory catalog has one level of schemas", other.join(".")))),
    }
}

/// A name that somebody wants to give: a folder's on every system, and a name in SQL that needs no tricks.
fn check_new_name(what: &str, name: &str) -> Result<()> {
    super::check_name(what, name)?;
    let odd = name.chars().find(|it| !(it.is_alphanumeric() || "_-. ".contains(*it)));
    let why = match odd {
        Some(odd) => format!("holds `{}`", odd.escape_debug()),
        None if name.len() > LONGEST => format!("is longer than {LONGEST} bytes"),
        None if name.starts_with(' ') || name.ends_with([' ', '.']) => {
            "begins or ends with a space or a dot".to_owned()
        }
        None => return Ok(()),
    };
    Err(Error::invalid(format!("`{}` cannot be the name of a {what}: it {why}", name.escape_debug()))
        .with_hint("letters and digits of any script, with `_`, `-`, `.` and spaces inside"))
}

fn cannot_rename(place: &Place) -> Error {
    Error::unsupported(format!("{} lies in a store that cannot rename a folder in one step", place.location()))
        .with_hint("nothing was changed; move or delete its objects with the store's own tools while nobody writes")
}

/// Deletes what is left of dropped tables; links in them are deleted, not followed.
fn sweep(schema: &Path) {
    let Ok(entries) = fs::read_dir(schema) else { return };
    for entry in entries.flatten().filter(|it| it.file_name().to_string_lossy().starts_with(DROPPED)) {
        match fs::remove_dir_all(entry.path()) {
            Err(err) if err.kind() != io::ErrorKind::NotFound => {
                tracing::warn!("the files of a dropped table are still in {}: {err}", entry.path().display());
            }
            _ => (),
        }
    }
}

/// Makes a rename in `folder` durable.
fn settle(folder: &Path) -> Result<()> {
    fs::File::open(folder).and_then(|it| it.sync_all()).map_err(|it| failed(folder, &it))
}

fn failed(path: &Path, err: &io::Error) -> Error {
    let kind = match err.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Unauthorized,
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, format!("{}: {err}", path.display()))
}

async fn blocking<T: Send + 'static>(act: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(act).await.unwrap_or_else(|it| Err(Error::internal(it.to_string())))
}
