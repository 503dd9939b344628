//! What lies where a table says its files are: below the root by one listing, elsewhere by a question each, asked once.
use std::collections::HashMap;

use futures::TryStreamExt;

use super::{
    Storage,
    listing::{self, Listed},
};
use crate::{Result, path::FilePath};

/// What stands at the place of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// An object of so many bytes.
    Object(u64),
    /// A symbolic link: nobody reads through it.
    Link,
    Nothing,
}

/// The objects of a table as one listing showed them.
#[derive(Debug)]
pub struct Inventory {
    storage: Storage,
    below: HashMap<String, Found>,
    outside: HashMap<FilePath, Found>,
}

impl Inventory {
    pub async fn list(storage: &Storage) -> Result<Self> {
        let found = listing::recursive(storage.clone(), String::new()).map_ok(|it| match it {
            Listed::Object(object) => (object.path, Found::Object(object.bytes)),
            Listed::Link(path, _) => (path, Found::Link),
        });
        Ok(Self { storage: storage.clone(), below: found.try_collect().await?, outside: HashMap::new() })
    }

    /// # Errors
    /// Only for a file outside the root: as [`Storage::head`].
    pub async fn find(&mut self, file: &FilePath) -> Result<Found> {
        if let FilePath::Below(path) = file {
            return Ok(self.below.get(path.as_ref()).copied().unwrap_or(Found::Nothing));
        }
        if let Some(known) = self.outside.get(file) {
            return Ok(*known);
        }
        let found = self.storage.head(file).await?.map_or(Found::Nothing, |it| Found::Object(it.bytes));
        self.outside.insert(file.clone(), found);
        Ok(found)
    }
}
