use std::sync::Arc;

use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
use proptest::prelude::*;

use super::*;

const INLINE: &str = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L";

fn descriptor(storage_type: &str, text: &str, offset: Option<i32>, bytes: i32, rows: i64) -> DeletionVectorDescriptor {
    DeletionVectorDescriptor {
        storage_type: storage_type.to_owned(),
        path_or_inline_dv: text.to_owned(),
        offset,
        size_in_bytes: bytes,
        cardinality: rows,
    }
}

fn data_file() -> FilePath {
    FilePath::below("part-0.parquet")
}

fn storage(store: InMemory) -> Storage {
    Storage::new(Arc::new(store), Path::from("t"), "memory:///t")
}

/// What reading the vector gives: the rows, or the error.
async fn outcome(vector: &DeletionVectorDescriptor, file: Option<Vec<u8>>) -> String {
    let store = InMemory::new();
    if let Some(bytes) = file {
        let path = Path::from("t/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin");
        store.put(&path, bytes.into()).await.unwrap();
    }
    let storage = storage(store);
    let read = match vector.delete_file(&data_file(), storage.policy()) {
        Ok(file) => read(&storage, &file).await,
        Err(err) => Err(err),
    };
    read.map_or_else(|err| err.to_string(), |rows| format!("{:?}", rows.iter().collect::<Vec<_>>()))
}

fn body(rows: &[u64]) -> Vec<u8> {
    [&MAGIC.to_le_bytes()[..], &bitmap::write(&RoaringTreemap::from_iter(rows))].concat()
}

fn frame(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes()[..], body, &crc32(body).to_be_bytes()].concat()
}

#[tokio::test]
async fn an_inline_vector_is_cut_to_its_size() {
    assert_eq!(outcome(&descriptor("i", INLINE, None, 44, 6), None).await, "[3, 4, 7, 11, 18, 29]");
    for (vector, reason) in [
        (descriptor("i", INLINE, Some(1), 44, 6), "an inline vector has no offset"),
        (descriptor("i", INLINE, None, 45, 6), "sizeInBytes is 45, but the inline text has 44 bytes"),
        (descriptor("i", INLINE, None, 40, 6), "sizeInBytes is 40"),
        (descriptor("i", INLINE, None, -1, 6), "sizeInBytes is -1"),
        (descriptor("i", INLINE, None, 44, 7), "it holds 6 rows, its cardinality is 7"),
        (descriptor("i", &format!("{INLINE}0#"), None, 45, 6), "not a multiple of 5"),
        (descriptor("x", INLINE, None, 44, 6), "storageType is `x`"),
    ] {
        let found = outcome(&vector, None).await;
        assert!(found.contains(reason) && found.contains("part-0.parquet"), "{found}");
    }
}

#[test]
fn the_last_twenty_characters_are_the_uuid() {
    let path = |text: &str| uuid_path(text).unwrap_or_else(|it| it);
    assert_eq!(path("^-aqEH.-t@S}K{vb[*k^"), "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin");
    assert_eq!(path("ab^-aqEH.-t@S}K{vb[*k^"), "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin");
    assert_eq!(path("aqEH"), "`aqEH` does not name a file");
    assert!(path("../../etc/^-aqEH.-t@S}K{vb[*k^").contains("does not name a file"));
    assert!(path("é^-aqEH.-t@S}K{vb[*k").contains("does not name a file"));
}

#[tokio::test]
async fn a_vector_in_a_file_is_checked_against_size_checksum_magic_and_count() {
    let name = "ab^-aqEH.-t@S}K{vb[*k^";
    let one = body(&[0, 9, 1 << 33]);
    let file = [&[1u8][..], &frame(&one), &frame(&body(&[5]))].concat();
    let second = 1 + 8 + one.len() as i32;
    let length = |rows: &[u64]| body(rows).len() as i32;

    let first = descriptor("u", name, Some(1), one.len() as i32, 3);
    assert_eq!(outcome(&first, Some(file.clone())).await, "[0, 9, 8589934592]");
    assert_eq!(
        outcome(&DeletionVectorDescriptor { offset: None, ..first.clone() }, Some(file.clone())).await,
        "[0, 9, 8589934592]"
    );
    assert_eq!(outcome(&descriptor("u", name, Some(second), length(&[5]), 1), Some(file.clone())).await, "[5]");

    let flipped = |at: usize| {
        let mut bytes = file.clone();
        bytes[at] ^= 1;
        bytes
    };
    let native = [&NATIVE_MAGIC.to_le_bytes()[..], &one[4..]].concat();
    for (vector, bytes, reason) in [
        (first.clone(), flipped(0), "the file's version is Some(0), not 1"),
        (first.clone(), flipped(20), "checksum mismatch"),
        (first.clone(), flipped(4 + one.len()), "checksum mismatch"),
        (first.clone(), flipped(4), "its size in the file is"),
        (first.clone(), [&[1u8][..], &frame(&native)].concat(), "native form"),
        (first.clone(), [&[1u8][..], &frame(&[7; 40])].concat(), "the file has 49 bytes"),
        (
            descriptor("u", name, Some(1), 40, 3),
            [&[1u8][..], &frame(&[7; 40])].concat(),
            "its magic number is 117901063",
        ),
        (
            DeletionVectorDescriptor { cardinality: 2, ..first.clone() },
            file.clone(),
            "it holds 3 rows, its cardinality is 2",
        ),
        (DeletionVectorDescriptor { offset: Some(0), ..first.clone() }, file.clone(), "offset is Some(0)"),
        (DeletionVectorDescriptor { offset: Some(i32::MAX), ..first.clone() }, file.clone(), "the vector ends at"),
    ] {
        let found = outcome(&vector, Some(bytes)).await;
        assert!(found.contains(reason) && found.contains("part-0.parquet"), "{found}");
    }
    assert!(outcome(&first, None).await.contains("the file is missing"));
}

#[test]
fn an_absolute_path_goes_through_the_policy() {
    let policy = PathPolicy::new("memory:///t");
    let vector = descriptor("p", "memory:///t/dv%20s/x.bin", Some(4), 40, 6);
    let file = vector.delete_file(&data_file(), &policy).unwrap();
    assert_eq!(file.place, DeletePlace::Range { path: FilePath::below("dv s/x.bin"), offset: 4, length: 48 });
    assert_eq!(file.id.as_deref(), Some("pmemory:///t/dv%20s/x.bin@4"));
    descriptor("p", "../x.bin", Some(4), 40, 6).delete_file(&data_file(), &policy).unwrap_err();
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        let _ = decode(&bytes);
        let _ = unframe(&bytes).map(decode);
        let _ = decode(&[&MAGIC.to_le_bytes()[..], &bytes].concat());
    }

    #[test]
    fn no_descriptor_makes_it_panic(kind in "[iupx]", text in ".{0,50}", offset in any::<Option<i32>>(), bytes in any::<i32>(), rows in any::<i64>()) {
        let _ = descriptor(&kind, &text, offset, bytes, rows).delete_file(&data_file(), &PathPolicy::new("memory:///t"));
    }
}
