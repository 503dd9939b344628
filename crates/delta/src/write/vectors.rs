//! Deletion vectors of one write → one file.
//!
//! The format's version, then each vector as a big-endian size, the bitmap with its magic number, and a big-endian CRC-32
//! of these; see [`crate::deletes`] for the whole. Vectors always go to a file, however small, as the reference
//! implementation writes them.
//! Spec: Delta PROTOCOL.md, "Deletion Vector File Storage Format".
use bytes::{BufMut, Bytes, BytesMut};
use lakebed_core::{
    Error, ErrorKind, Result,
    env::Env,
    file::DeleteFile,
    path::FilePath,
    storage::{Put, Storage},
    write::NewVector,
};
use uuid::Uuid;

use crate::{deletes, spec::DeletionVectorDescriptor};

/// Writes `vectors` to one new file, and describes each, in their order. Nothing is written when there are none.
pub(crate) async fn write(storage: &Storage, env: &Env, vectors: &[NewVector]) -> Result<Vec<DeleteFile>> {
    if vectors.is_empty() {
        return Ok(Vec::new());
    }
    let id = Uuid::from_u128(env.ids.uuid());
    let (body, descriptors) = encode(id, vectors)?;
    create(storage, &deletes::uuid_file(id), body).await?;
    let described =
        descriptors.iter().zip(vectors).map(|(it, vector)| it.delete_file(&vector.target, storage.policy()));
    described.collect()
}

fn encode(id: Uuid, vectors: &[NewVector]) -> Result<(Bytes, Vec<DeletionVectorDescriptor>)> {
    let mut body = BytesMut::from(&[deletes::FILE_VERSION][..]);
    let mut descriptors = Vec::with_capacity(vectors.len());
    for vector in vectors {
        let bitmap = deletes::encode(&vector.rows);
        let too_large = |_| Error::new(ErrorKind::Limit, "deletion vectors of one write have more than 2 GiB");
        let offset = i32::try_from(body.len()).map_err(too_large)?;
        let size = i32::try_from(bitmap.len()).map_err(too_large)?;
        body.put_i32(size);
        body.put_slice(&bitmap);
        body.put_u32(lakebed_codec::bitmap::crc32(&bitmap));
        descriptors.push(DeletionVectorDescriptor {
            storage_type: "u".to_owned(),
            path_or_inline_dv: deletes::uuid_text(id),
            offset: Some(offset),
            size_in_bytes: size,
            cardinality: i64::try_from(vector.rows.len()).map_err(|it| Error::internal(it.to_string()))?,
        });
    }
    Ok((body.freeze(), descriptors))
}

/// Creates a file under a name nobody else has. A lost answer is looked after.
async fn create(storage: &Storage, name: &str, body: Bytes) -> Result<()> {
    match storage.create(name, body.clone()).await? {
        Put::Won => Ok(()),
        Put::Lost | Put::Unknown => match storage.read(&FilePath::below(name)).await? {
            Some(there) if there == body => Ok(()),
            _ => Err(Error::new(ErrorKind::Unavailable, format!("{name} could not be written"))),
        },
    }
}

/// The descriptor of a vector that [`DeletionVectorDescriptor::delete_file`] described.
pub(crate) fn descriptor(file: &DeleteFile) -> Result<DeletionVectorDescriptor> {
    deletes::descriptor(file).ok_or_else(|| {
        let target = file.targets.first().map_or("an unnamed file", FilePath::as_str);
        Error::invalid(format!("what takes rows from {target} is no deletion vector of Delta"))
    })
}

#[cfg(test)]
mod tests {
    use lakebed_core::env::Env;
    use lakebed_testkit::{env, seed::Seed, store::FaultyStore};
    use roaring::RoaringTreemap;

    use super::*;

    fn vector(target: &str, rows: impl IntoIterator<Item = u64>) -> NewVector {
        NewVector { target: FilePath::below(target), rows: RoaringTreemap::from_iter(rows) }
    }

    #[tokio::test]
    async fn vectors_of_one_write_share_a_file_and_are_read_back() {
        let store = FaultyStore::new(Seed(1));
        let (storage, env): (_, Env) = (store.storage("t"), env::env(Seed(1)));
        let vectors = [vector("a.parquet", [0, 3]), vector("b.parquet", 5..2_000), vector("c.parquet", [1 << 33])];
        let written = write(&storage, &env, &vectors).await.unwrap();
        assert_eq!(store.log().iter().filter(|it| it.op == lakebed_testkit::store::Op::Create).count(), 1);
        for (file, vector) in written.iter().zip(&vectors) {
            assert_eq!(file.targets, std::slice::from_ref(&vector.target));
            assert_eq!(file.rows, Some(vector.rows.len()));
            assert_eq!(deletes::read(&storage, file).await.unwrap(), vector.rows);
            assert_eq!(descriptor(file).unwrap().unique_id(), *file.id.as_ref().unwrap());
            assert_eq!(descriptor(file).unwrap().delete_file(&vector.target, storage.policy()).unwrap(), *file);
        }
        assert!(write(&storage, &env, &[]).await.unwrap().is_empty());
    }
}
