//! Paths of files as the log spells them.
//!
//! A path below the root is a relative reference, one elsewhere a location; both are percent-encoded once, so that decoding
//! once gives the name again. What is encoded is more than must be: a colon, so that no first segment looks like a
//! scheme, and everything beyond ASCII.
//! Spec: Delta PROTOCOL.md, "Add File and Remove File"; RFC 2396.
use lakebed_core::path::FilePath;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

const ENCODED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b':')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// The text of `path` in an action.
pub(crate) fn encode(path: &FilePath) -> String {
    match path {
        FilePath::Below(path) => utf8_percent_encode(path, ENCODED).to_string(),
        FilePath::Outside(location) => match location.split_once("://") {
            Some((scheme, rest)) => {
                // A port behind the host keeps its colon.
                let (authority, key) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                format!("{scheme}://{authority}{}", utf8_percent_encode(key, ENCODED))
            }
            None => utf8_percent_encode(location, ENCODED).to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use lakebed_core::path::PathPolicy;

    use super::*;

    #[test]
    fn a_name_is_encoded_once() {
        for (name, text) in [
            ("part-0.parquet", "part-0.parquet"),
            ("a=1/b=x+y~z,(1)/p.parquet", "a=1/b=x+y~z,(1)/p.parquet"),
            ("day=a%20b/p", "day=a%2520b/p"),
            ("10:20/p q", "10%3A20/p%20q"),
            ("ä/#?", "%C3%A4/%23%3F"),
        ] {
            let path = FilePath::below(name);
            assert_eq!(encode(&path), text);
            assert_eq!(PathPolicy::new("file:///data/t").resolve_uri(text).unwrap(), path);
        }
    }

    #[test]
    fn a_place_elsewhere_keeps_its_scheme_and_host() {
        let policy = PathPolicy::new("s3://bucket/t").allow("s3://host:9000/other");
        let path = FilePath::Outside("s3://host:9000/other/a b%:c".into());
        assert_eq!(encode(&path), "s3://host:9000/other/a%20b%25%3Ac");
        assert_eq!(policy.resolve_uri(&encode(&path)).unwrap(), path);
    }
}
