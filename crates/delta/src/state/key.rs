//! What a file is known by.
//!
//! A path can be written in several ways: relative or absolute, with escapes, `file:/x`, `file:///x` or `/x`. They
//! meet in one key: below the root the decoded relative path, elsewhere the decoded location with one spelling
//! of its scheme. With a deletion vector, the vector's id is part of the key.
//!
//! Spec: Delta PROTOCOL.md, "Action Reconciliation".
use std::borrow::Cow;

use lakebed_core::path::PathPolicy;
use percent_encoding::percent_decode_str;

use super::columns::VectorColumns;

/// The canonical form of a path as written. Borrowed where the two are the same.
pub(crate) fn canonical<'a>(policy: &PathPolicy, raw: &'a str) -> Cow<'a, str> {
    if is_plain(raw) {
        return Cow::Borrowed(raw);
    }
    match policy.resolve_uri(raw) {
        Ok(path) => Cow::Owned(path.as_str().to_owned()),
        // A place the policy does not admit still has to meet its removal; reading it is refused elsewhere.
        Err(_) => Cow::Owned(outside(raw)),
    }
}

/// Whether a path is a relative one without escapes or anything else to mend.
fn is_plain(raw: &str) -> bool {
    let bytes = raw.as_bytes();
    // Not an absolute path, an empty segment, or one that may be `.` or `..`.
    let segment_at = |at: usize| bytes.get(at).is_some_and(|it| !matches!(it, b'/' | b'.'));
    memchr::memchr3(b'%', b':', b'\\', bytes).is_none()
        && memchr::memchr(0, bytes).is_none()
        && segment_at(0)
        && memchr::memchr_iter(b'/', bytes).all(|slash| segment_at(slash + 1))
}

fn outside(raw: &str) -> String {
    let decoded = percent_decode_str(raw).decode_utf8_lossy();
    let local = decoded.strip_prefix("file:").unwrap_or(&decoded);
    if local.starts_with('/') { format!("/{}", local.trim_start_matches('/')) } else { local.to_owned() }
}

/// The key of row `row`, with its vector if it has one.
pub(crate) fn of_row<'a>(
    policy: &PathPolicy,
    raw: &'a str,
    vectors: Option<&VectorColumns>,
    row: usize,
) -> Cow<'a, str> {
    let path = canonical(policy, raw);
    match vectors.and_then(|it| it.get(row)) {
        Some(vector) => Cow::Owned(format!("{path}\0{}", vector.unique_id())),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, expected: &str) {
        let policy = PathPolicy::new("file:///data/t");
        assert_eq!(canonical(&policy, raw), expected, "{raw}");
    }

    #[test]
    fn plain_paths_are_their_own_key() {
        for raw in ["part-0.parquet", "a=1/b=x+y/part-0.parquet", "ä=é/p.parquet"] {
            assert!(matches!(canonical(&PathPolicy::new("file:///data/t"), raw), Cow::Borrowed(_)), "{raw}");
        }
    }

    #[test]
    fn what_needs_mending_is_not_plain() {
        for raw in ["", "/a", "./a", "../a", "a//b", "a/./b", "a/../b", "a/", "a/.b", "a%20b", "s3:b", "a\\b", "a\0b"] {
            assert!(!is_plain(raw), "{raw:?}");
        }
    }

    #[test]
    fn spellings_of_one_place_meet() {
        check("part%20x", "part x");
        check("a=%2520/x", "a=%20/x");
        let policy = PathPolicy::new("file:///data/t");
        for raw in ["/some/p%20x", "file:/some/p%20x", "file:///some/p%20x"] {
            assert_eq!(canonical(&policy, raw), "/some/p x", "{raw}");
        }
    }
}
