//! Reading bytes at positions.
use std::{ops::Range, os::fd::OwnedFd};

use bytes::Bytes;
use chrono::DateTime;
use object_store::{ObjectMeta, Result, path::Path};
use rustix::{buffer::spare_capacity, fs::Stat, io::Errno};

use super::error::{DiskError, reading};

/// Ranges closer than this are read in one call: copying the gap costs less than the call.
const GAP: u64 = 4 * 1024;
/// Larger reads are not joined: each joined range keeps the whole buffer alive.
const JOINED: u64 = 8 * 1024 * 1024;

pub(super) fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

pub(super) fn meta(location: Path, stat: &Stat) -> Result<ObjectMeta> {
    let nanos = u32::try_from(stat.st_mtime_nsec).unwrap_or(0);
    let Some(last_modified) = DateTime::from_timestamp(stat.st_mtime, nanos) else {
        let source = std::io::Error::other("its time of modification is no date");
        return Err(DiskError::Io { path: location.to_string(), source }.into());
    };
    Ok(ObjectMeta { location, last_modified, size: size(stat), e_tag: Some(etag(stat)), version: None })
}

/// Another file under the same name differs in one of the three.
pub(super) fn etag(stat: &Stat) -> String {
    format!("{:x}-{:x}.{:x}-{:x}", stat.st_ino, stat.st_mtime, stat.st_mtime_nsec, size(stat))
}

/// The bytes of one range, which lies within the file.
pub(super) fn range(file: &OwnedFd, key: &str, range: &Range<u64>) -> Result<Bytes> {
    let wanted = usize::try_from(range.end - range.start).map_err(|_| reading(key, Errno::NOMEM))?;
    let mut bytes = Vec::with_capacity(wanted);
    while bytes.len() < wanted {
        // The allocator may have given more room than was asked for: `truncate` below cuts what that reads.
        let at = range.start + bytes.len() as u64;
        match rustix::io::pread(file, spare_capacity(&mut bytes), at) {
            // It was cut meanwhile.
            Ok(0) => return Err(DiskError::Short { path: key.to_owned(), bytes: at }.into()),
            Ok(_) => (),
            Err(Errno::INTR) => (),
            Err(errno) => return Err(reading(key, errno)),
        }
    }
    bytes.truncate(wanted);
    Ok(Bytes::from(bytes))
}

/// The bytes of each of `ranges`, in their order; near ones are read together.
pub(super) fn ranges(file: &OwnedFd, key: &str, size: u64, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
    if ranges.iter().any(|it| it.end > size || it.start > it.end) {
        return Err(DiskError::Short { path: key.to_owned(), bytes: size }.into());
    }
    let mut order: Vec<usize> = (0..ranges.len()).collect();
    order.sort_unstable_by_key(|&it| ranges[it].start);
    let mut read = vec![Bytes::new(); ranges.len()];
    let mut rest = order.as_slice();
    while let Some(&first) = rest.first() {
        let mut joined = ranges[first].clone();
        let mut count = 1;
        while let Some(&next) = rest.get(count) {
            let end = joined.end.max(ranges[next].end);
            if ranges[next].start > joined.end.saturating_add(GAP) || end - joined.start > JOINED {
                break;
            }
            joined.end = end;
            count += 1;
        }
        let (group, left) = rest.split_at(count);
        let bytes = range(file, key, &joined)?;
        for &it in group {
            // Both differences are at most the length of `bytes`, a `usize`.
            read[it] =
                bytes.slice((ranges[it].start - joined.start) as usize..(ranges[it].end - joined.start) as usize);
        }
        rest = left;
    }
    Ok(read)
}
