//! The table formats of this build, by name. Nobody else above the formats asks which one a table has.
use std::sync::Arc;

use lakebed_core::{
    Error, Result,
    format::{FormatKind, TableFormat},
    storage::Storage,
};

/// The formats this build knows, in the order they were given. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Formats {
    known: Arc<[Arc<dyn TableFormat>]>,
}

impl Formats {
    pub fn new(known: Vec<Arc<dyn TableFormat>>) -> Self {
        Self { known: known.into() }
    }

    /// Names match without case.
    pub fn by_name(&self, name: &str) -> Option<Arc<dyn TableFormat>> {
        self.known.iter().find(|it| it.kind().name().eq_ignore_ascii_case(name)).map(Arc::clone)
    }

    /// The format of a table this build opened.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](lakebed_core::ErrorKind) if the build lacks it.
    pub fn of(&self, kind: &FormatKind) -> Result<Arc<dyn TableFormat>> {
        self.by_name(kind.name()).ok_or_else(|| {
            Error::unsupported(format!("this build has no format `{kind}`")).with_hint(self.known_names())
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn TableFormat>> {
        self.known.iter()
    }

    /// The format of the table at `storage`: the one `wanted`, else the only one that finds a table there.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](lakebed_core::ErrorKind) if no format finds a table, with the list of those asked;
    /// [`ErrorKind::Invalid`](lakebed_core::ErrorKind) if two do, or `wanted` is no format of this build.
    pub async fn detect(&self, storage: &Storage, wanted: Option<&str>) -> Result<Arc<dyn TableFormat>> {
        if let Some(name) = wanted {
            return self.wanted(storage, name).await;
        }
        let mut found = Vec::new();
        for format in self.known.iter() {
            if format.detect(storage).await? {
                found.push(Arc::clone(format));
            }
        }
        match found.len() {
            0 => Err(self.no_table(storage)),
            1 => Ok(found.remove(0)),
            _ => Err(ambiguous(storage, &found)),
        }
    }

    async fn wanted(&self, storage: &Storage, name: &str) -> Result<Arc<dyn TableFormat>> {
        let Some(format) = self.by_name(name) else {
            return Err(
                Error::invalid(format!("`{name}` is no table format of this build")).with_hint(self.known_names())
            );
        };
        match format.detect(storage).await? {
            true => Ok(format),
            false => Err(Error::not_found(format!("no {} table at {}", format.kind(), storage.location()))),
        }
    }

    fn no_table(&self, storage: &Storage) -> Error {
        let names: Vec<_> = self.known.iter().map(|it| it.kind().name().to_owned()).collect();
        Error::not_found(format!("no table at {}: looked for {}", storage.location(), names.join(", ")))
            .with_hint("check the path, or name the format with --table-format")
    }

    fn known_names(&self) -> String {
        let names: Vec<_> = self.known.iter().map(|it| format!("`{}`", it.kind())).collect();
        format!("known formats: {}", names.join(", "))
    }
}

fn ambiguous(storage: &Storage, found: &[Arc<dyn TableFormat>]) -> Error {
    let names: Vec<_> = found.iter().map(|it| it.kind().name().to_owned()).collect();
    Error::invalid(format!("{} holds tables of {}", storage.location(), names.join(" and ")))
        .with_hint(format!("choose one with --table-format {}", names.join("|")))
}
