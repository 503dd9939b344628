//! Deletion vectors: JSON with the positions, how many they are, and a sum to check them by.
//!
//! They lie inline, as a file, or as a range of a file shared with others.
use bytes::Bytes;
use lakebed_core::{
    Error, Result,
    file::{DeleteFile, DeleteKind, DeletePlace},
    path::FilePath,
    storage::Storage,
};
use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};

/// The largest vector this reader takes, in bytes.
const MOST_BYTES: u64 = 16 << 20;

/// Row positions that are gone.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    pub rows: RoaringTreemap,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    rows: Vec<u64>,
    sum: u64,
}

impl Vector {
    pub fn new(rows: impl IntoIterator<Item = u64>) -> Self {
        Self { rows: rows.into_iter().collect() }
    }

    pub fn bytes(&self) -> Bytes {
        let rows: Vec<u64> = self.rows.iter().collect();
        let sum = checksum(&rows);
        serde_json::to_vec(&Wire { rows, sum }).expect("numbers are JSON").into()
    }

    /// This vector on `target`, inside the metadata.
    pub fn inline(&self, id: &str, target: &FilePath) -> DeleteFile {
        self.placed(id, target, DeletePlace::Inline(self.bytes().to_vec()))
    }

    /// This vector on `target`, at a place its bytes have been written to.
    pub fn placed(&self, id: &str, target: &FilePath, place: DeletePlace) -> DeleteFile {
        DeleteFile {
            kind: DeleteKind::Vector,
            place,
            id: Some(id.to_owned()),
            targets: vec![target.clone()],
            rows: Some(self.rows.len()),
            native: Default::default(),
        }
    }

    pub(super) async fn read(storage: &Storage, file: &DeleteFile) -> Result<Self> {
        let name = file.id.clone().unwrap_or_default();
        let body = match &file.place {
            DeletePlace::Inline(bytes) => Bytes::from(bytes.clone()),
            DeletePlace::Range { length, .. } if *length > MOST_BYTES => {
                return Err(Error::corrupt(format!("vector {name} claims {length} bytes")));
            }
            DeletePlace::Range { path, offset, length } => {
                let end = offset.checked_add(*length);
                let end = end.ok_or_else(|| Error::corrupt(format!("vector {name} ends beyond every file")))?;
                storage.read_range(path, *offset..end).await?
            }
            DeletePlace::File(path) => {
                let body = storage.read(path).await?;
                body.ok_or_else(|| Error::corrupt(format!("vector {name}: {path} is gone")))?
            }
        };
        Self::parse(&name, &body, file.rows)
    }

    fn parse(name: &str, body: &[u8], said: Option<u64>) -> Result<Self> {
        let wire: Wire = serde_json::from_slice(body).map_err(|it| Error::corrupt(format!("vector {name}: {it}")))?;
        if checksum(&wire.rows) != wire.sum {
            return Err(Error::corrupt(format!("vector {name}: checksum is wrong")));
        }
        let vector = Self::new(wire.rows);
        match said {
            Some(said) if said != vector.rows.len() => {
                Err(Error::corrupt(format!("vector {name} has {} rows, the log says {said}", vector.rows.len())))
            }
            _ => Ok(vector),
        }
    }
}

fn checksum(rows: &[u64]) -> u64 {
    rows.iter().fold(7, |sum: u64, row| sum.wrapping_mul(31).wrapping_add(*row))
}
