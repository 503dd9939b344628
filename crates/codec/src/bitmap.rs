//! Sets of row numbers in the portable Roaring format for 64-bit numbers.
//!
//! Little-endian: a 64-bit count of buckets, then for each a 32-bit key (the numbers' upper half, ascending) and a
//! 32-bit Roaring bitmap of their lower halves.
//! Spec: RoaringFormatSpec, "Extension for 64-bit implementations".
use roaring::{RoaringBitmap, RoaringTreemap};

use crate::{CodecError, fence::fence};

/// The fewest bytes a bucket takes: its key, a cookie and a container count.
const SMALLEST_BUCKET: u64 = 4 + 4 + 4;

/// Reads a bitmap that fills `bytes` exactly.
///
/// # Errors
/// [`CodecError::Bitmap`] if the bytes end early or late, if keys do not ascend, or if a container is malformed.
/// Memory stays within a small multiple of `bytes`.
pub fn read(bytes: &[u8]) -> Result<RoaringTreemap, CodecError> {
    let (count, mut rest) = bytes.split_first_chunk::<8>().ok_or_else(|| bad("shorter than its bucket count"))?;
    let count = u64::from_le_bytes(*count);
    if count > rest.len() as u64 / SMALLEST_BUCKET {
        return Err(bad(format!("{count} buckets do not fit into {} bytes", bytes.len())));
    }
    let mut buckets: Vec<(u32, RoaringBitmap)> = Vec::new();
    for _ in 0..count {
        let (key, bucket, after) = read_bucket(rest)?;
        // A key that comes twice would silently replace its first bucket, and bring deleted rows back.
        if buckets.last().is_some_and(|(last, _)| *last >= key) {
            return Err(bad(format!("bucket {key} is out of order")));
        }
        buckets.push((key, bucket));
        rest = after;
    }
    if !rest.is_empty() {
        return Err(bad(format!("{} bytes follow the last bucket", rest.len())));
    }
    Ok(RoaringTreemap::from_bitmaps(buckets))
}

/// The bitmap in the form [`read`] reads.
pub fn write(bitmap: &RoaringTreemap) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(bitmap.serialized_size());
    bitmap.serialize_into(&mut bytes).expect("writing to memory does not fail");
    bytes
}

/// CRC-32 as zlib computes it, which guards stored bitmaps.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

fn read_bucket(bytes: &[u8]) -> Result<(u32, RoaringBitmap, &[u8]), CodecError> {
    let (key, mut rest) = bytes.split_first_chunk::<4>().ok_or_else(|| bad("a bucket lacks its key"))?;
    let bucket = fence("bitmap", || RoaringBitmap::deserialize_from(&mut rest))?;
    Ok((u32::from_le_bytes(*key), bucket.map_err(|it| bad(it.to_string()))?, rest))
}

fn bad(reason: impl Into<String>) -> CodecError {
    CodecError::Bitmap(reason.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(bytes: &[u8], reason: &str) {
        let err = read(bytes).unwrap_err().to_string();
        assert!(err.contains(reason), "{err}");
    }

    #[test]
    fn the_length_must_be_exact() {
        let bytes = write(&RoaringTreemap::from_iter([1, 2, 1 << 40]));
        assert_eq!(read(&bytes).unwrap().len(), 3);
        refused(&[&bytes[..], &[0]].concat(), "1 bytes follow");
        refused(&bytes[..7], "shorter than its bucket count");
        for cut in 8..bytes.len() {
            read(&bytes[..cut]).unwrap_err();
        }
    }

    #[test]
    fn hostile_counts_ask_for_no_memory() {
        refused(&u64::MAX.to_le_bytes(), "do not fit");
        let run_of_everything = [&1u64.to_le_bytes()[..], &[0; 4], &[0xff; 12]].concat();
        read(&run_of_everything).unwrap_err();
    }

    #[test]
    fn a_bucket_that_comes_twice_is_refused() {
        let one = write(&RoaringTreemap::from_iter([5]));
        let twice = [&2u64.to_le_bytes()[..], &one[8..], &one[8..]].concat();
        refused(&twice, "bucket 0 is out of order");
    }

    #[test]
    fn run_containers_are_read() {
        // Cookie 12347 with one container, bitmap of run containers, key 0 with 10 rows, one run: 3..=12.
        let run = [0x3b, 0x30, 0, 0, 1, 0, 0, 9, 0, 1, 0, 3, 0, 9, 0];
        let bytes = [&1u64.to_le_bytes()[..], &[0; 4], &run].concat();
        assert_eq!(read(&bytes).unwrap(), RoaringTreemap::from_iter(3..=12));
    }

    proptest! {
        #[test]
        fn written_bitmaps_are_read_back(rows in proptest::collection::btree_set(0u64..1 << 35, 0..200)) {
            let bitmap = RoaringTreemap::from_iter(rows);
            prop_assert_eq!(read(&write(&bitmap)).unwrap(), bitmap);
        }

        #[test]
        fn no_bytes_make_it_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), near in any::<bool>()) {
            if near && bytes.len() > 16 {
                bytes[..16].copy_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x3b, 0x30, 0, 0]);
            }
            let _ = read(&bytes);
        }
    }
}
