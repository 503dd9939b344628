//! Deletion vectors: which rows of a data file are gone.
//!
//! A descriptor says where the bitmap is: `i` holds it inline as Z85 text, `u` names a file of the table by the Z85
//! text of a UUID (the last 20 characters; before them stands an optional folder), `p` names a file by its path.
//!
//! A file holds many vectors. Byte 0 is the format's version, 1. A vector at `offset` is a 4-byte big-endian size, that
//! many bytes of bitmap, and a 4-byte big-endian CRC-32 of them; `sizeInBytes` counts the bitmap only. The bitmap, in
//! a file as inline, is a little-endian magic number and a portable 64-bit Roaring bitmap of physical row positions.
//! Spec: Delta PROTOCOL.md, "Deletion Vectors", "Deletion Vector Format", "Deletion Vector File Storage Format".
use std::{collections::BTreeMap, ops::Range};

use lakebed_codec::bitmap::{self, crc32};
use lakebed_core::{
    Error, Result,
    file::{DeleteFile, DeleteKind, DeletePlace},
    path::{FilePath, PathPolicy},
    storage::Storage,
};
use roaring::RoaringTreemap;
use uuid::Uuid;

use crate::{error::DeltaError, spec::DeletionVectorDescriptor};

mod z85;

const MAGIC: u32 = 1_681_511_377;
/// The magic of a serialisation that the reference implementation uses in memory and never stores.
const NATIVE_MAGIC: u32 = 1_681_511_376;
pub(crate) const FILE_VERSION: u8 = 1;
/// The size before a vector and the checksum after it.
const FRAME: u64 = 8;
/// Characters of a UUID in Z85.
const UUID_TEXT: usize = 20;
/// A vector this close to the file's start is read from byte 0, so that the file's version is seen too.
const NEAR_START: u64 = 4096;

impl DeletionVectorDescriptor {
    /// The vector as a delete file of `data_file`.
    ///
    /// # Errors
    /// Corrupt if the descriptor contradicts itself; as [`PathPolicy::resolve_uri`] for a path.
    pub(crate) fn delete_file(&self, data_file: &FilePath, policy: &PathPolicy) -> Result<DeleteFile> {
        let bad = |reason: String| DeltaError::Vector { data_file: data_file.as_str().to_owned(), reason };
        let bytes =
            u64::try_from(self.size_in_bytes).map_err(|_| bad(format!("sizeInBytes is {}", self.size_in_bytes)))?;
        let rows = u64::try_from(self.cardinality).map_err(|_| bad(format!("cardinality is {}", self.cardinality)))?;
        let place = match self.storage_type.as_str() {
            "i" => self.inline(bytes).map_err(bad)?,
            "u" => self.range(FilePath::below(uuid_path(&self.path_or_inline_dv).map_err(bad)?), bytes).map_err(bad)?,
            "p" => self.range(policy.resolve_uri(&self.path_or_inline_dv)?, bytes).map_err(bad)?,
            other => return Err(bad(format!("storageType is `{}`", other.escape_debug())).into()),
        };
        Ok(DeleteFile {
            kind: DeleteKind::Vector,
            place,
            id: Some(self.unique_id()),
            targets: vec![data_file.clone()],
            rows: Some(rows),
            native: BTreeMap::new(),
        })
    }

    fn inline(&self, bytes: u64) -> Result<DeletePlace, String> {
        if self.offset.is_some() {
            return Err("an inline vector has no offset".to_owned());
        }
        let mut decoded = z85::decode(&self.path_or_inline_dv)?;
        let padding = (decoded.len() as u64).checked_sub(bytes);
        if padding.is_none_or(|it| it > 3) {
            return Err(format!("sizeInBytes is {bytes}, but the inline text has {} bytes", decoded.len()));
        }
        decoded.truncate(usize::try_from(bytes).map_err(|it| it.to_string())?);
        Ok(DeletePlace::Inline(decoded))
    }

    /// The vector with its frame: `offset` and `length` count the size before it and the checksum after it.
    fn range(&self, path: FilePath, bytes: u64) -> Result<DeletePlace, String> {
        // A file with one vector may leave the offset out: it stands right behind the version.
        let offset = u64::try_from(self.offset.unwrap_or(1)).ok().filter(|it| *it >= 1);
        let offset = offset.ok_or_else(|| format!("offset is {:?}", self.offset))?;
        Ok(DeletePlace::Range { path, offset, length: bytes + FRAME })
    }
}

/// `<prefix>/deletion_vector_<uuid>.bin`, below the table's root.
fn uuid_path(text: &str) -> Result<String, String> {
    let named = || format!("`{}` does not name a file", text.escape_debug());
    let split = text.len().checked_sub(UUID_TEXT).filter(|it| text.is_char_boundary(*it)).ok_or_else(named)?;
    let (prefix, id) = text.split_at(split);
    // The prefix is made of random letters and digits: anything else could lead out of the table.
    if !prefix.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_')) {
        return Err(named());
    }
    let id: [u8; 16] = z85::decode(id)?.try_into().map_err(|_| named())?;
    let file = uuid_file(Uuid::from_bytes(id));
    Ok(if prefix.is_empty() { file } else { format!("{prefix}/{file}") })
}

/// The file of the vectors that `id` names, below the table's root.
pub(crate) fn uuid_file(id: Uuid) -> String {
    format!("deletion_vector_{id}.bin")
}

/// How a descriptor names that file.
pub(crate) fn uuid_text(id: Uuid) -> String {
    z85::encode(id.as_bytes())
}

/// The bitmap of `rows` with its magic number.
pub(crate) fn encode(rows: &RoaringTreemap) -> Vec<u8> {
    let mut bytes = MAGIC.to_le_bytes().to_vec();
    bytes.extend(bitmap::write(rows));
    bytes
}

/// The descriptor that [`DeletionVectorDescriptor::delete_file`] made `file` of; `None` for any other.
pub(crate) fn descriptor(file: &DeleteFile) -> Option<DeletionVectorDescriptor> {
    let id = file.id.as_deref()?;
    let (offset, bytes) = match &file.place {
        DeletePlace::Inline(bytes) => (None, bytes.len() as u64),
        DeletePlace::Range { offset, length, .. } => (Some(*offset), length.checked_sub(FRAME)?),
        DeletePlace::File(_) => return None,
    };
    let storage_type = id.get(..1)?;
    // A descriptor without an offset has none in its id, either.
    let rest = &id[1..];
    let (place, offset) = match offset.and_then(|it| rest.strip_suffix(&format!("@{it}")).zip(Some(it))) {
        Some((place, offset)) => (place, Some(i32::try_from(offset).ok()?)),
        None => (rest, None),
    };
    Some(DeletionVectorDescriptor {
        storage_type: storage_type.to_owned(),
        path_or_inline_dv: place.to_owned(),
        offset,
        size_in_bytes: i32::try_from(bytes).ok()?,
        cardinality: i64::try_from(file.rows?).ok()?,
    })
}

/// Reads a vector made by [`DeletionVectorDescriptor::delete_file`]: one ranged request, none for an inline one.
///
/// Checks the file's version, the size, the checksum, the magic number and the count of rows. That every position is
/// below the file's row count is the caller's to check.
pub(crate) async fn read(storage: &Storage, vector: &DeleteFile) -> Result<RoaringTreemap> {
    let data_file = vector.targets.first().map_or("an unnamed file", FilePath::as_str);
    let (rows, place) = match &vector.place {
        DeletePlace::Inline(bytes) => (decode(bytes), None),
        DeletePlace::Range { path, offset, length } => {
            let framed = read_frame(storage, path, *offset, *length, data_file).await?;
            (unframe(&framed).and_then(decode), Some((path, *offset)))
        }
        DeletePlace::File(path) => return Err(Error::internal(format!("{path} is not a Delta deletion vector"))),
    };
    let rows = rows.and_then(|rows| match vector.rows {
        Some(count) if count != rows.len() => Err(format!("it holds {} rows, its cardinality is {count}", rows.len())),
        _ => Ok(rows),
    });
    rows.map_err(|reason| error(data_file, place, reason).into())
}

async fn read_frame(
    storage: &Storage,
    path: &FilePath,
    offset: u64,
    length: u64,
    data_file: &str,
) -> Result<bytes::Bytes> {
    let bad = |reason: String| Error::from(error(data_file, Some((path, offset)), reason));
    let end = offset.checked_add(length).ok_or_else(|| bad("its end is no number".to_owned()))?;
    let start = if offset <= NEAR_START { 0 } else { offset };
    let bytes = read_range(storage, path, start..end).await.map_err(|err| match err.kind() {
        lakebed_core::ErrorKind::NotFound => bad("the file is missing".to_owned()),
        lakebed_core::ErrorKind::Corrupt => bad(err.to_string()),
        _ => err,
    })?;
    if start == 0 && bytes.first() != Some(&FILE_VERSION) {
        return Err(bad(format!("the file's version is {:?}, not 1", bytes.first())));
    }
    let from = usize::try_from(offset - start).expect("at most a page before the vector");
    Ok(bytes.slice(from.min(bytes.len())..))
}

/// A range of an object; corrupt, with its size, if the object is shorter.
async fn read_range(storage: &Storage, path: &FilePath, range: Range<u64>) -> Result<bytes::Bytes> {
    let end = range.end;
    let failed = match storage.read_range(path, range).await {
        Ok(bytes) => return Ok(bytes),
        Err(err) => err,
    };
    // Stores say "bad range" in many ways: ask how long the object is before calling the store broken.
    match storage.head(path).await? {
        None => Err(Error::not_found(format!("{path} is missing"))),
        Some(object) if object.bytes < end => {
            Err(Error::corrupt(format!("the file has {} bytes, the vector ends at {end}", object.bytes)))
        }
        Some(_) => Err(failed),
    }
}

/// Size, bitmap, checksum → the bitmap.
fn unframe(framed: &[u8]) -> Result<&[u8], String> {
    let (size, rest) = framed.split_first_chunk::<4>().ok_or("it is cut short")?;
    let (bitmap, checksum) = rest.split_last_chunk::<4>().ok_or("it is cut short")?;
    let size = u32::from_be_bytes(*size);
    if usize::try_from(size) != Ok(bitmap.len()) {
        return Err(format!("its size in the file is {size}, in the log {}", bitmap.len()));
    }
    let (stored, computed) = (u32::from_be_bytes(*checksum), crc32(bitmap));
    if stored != computed {
        return Err(format!("checksum mismatch: stored {stored:08x}, computed {computed:08x}"));
    }
    Ok(bitmap)
}

/// Magic number and bitmap → the rows.
fn decode(bytes: &[u8]) -> Result<RoaringTreemap, String> {
    let (magic, bitmap) = bytes.split_first_chunk::<4>().ok_or("it is cut short")?;
    match u32::from_le_bytes(*magic) {
        MAGIC => bitmap::read(bitmap).map_err(|it| it.to_string()),
        NATIVE_MAGIC => Err("it is in the native form, which is not part of the format".to_owned()),
        other => Err(format!("its magic number is {other}, not {MAGIC}")),
    }
}

fn error(data_file: &str, place: Option<(&FilePath, u64)>, reason: String) -> DeltaError {
    let data_file = data_file.to_owned();
    match place {
        None => DeltaError::Vector { data_file, reason },
        Some((file, offset)) => DeltaError::VectorFile { data_file, file: file.as_str().to_owned(), offset, reason },
    }
}

#[cfg(test)]
mod tests;
