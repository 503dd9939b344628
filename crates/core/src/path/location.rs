//! References as tables write them, and the locations they mean.
use std::{borrow::Cow, fmt};

use percent_encoding::percent_decode_str;

use super::shown;
use crate::{Error, ErrorKind, Result};

/// A reference, read but not yet joined to a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    /// Segments below the table's root.
    Relative(Vec<String>),
    /// Segments below the root of the table's own store.
    Absolute(Vec<String>),
    Location(Location),
}

/// A place in some store, in canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    scheme: String,
    /// Bucket, container or host; empty for local files and memory.
    authority: String,
    segments: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Escapes {
    Decode,
    Keep,
}

impl Reference {
    /// Spec: RFC 2396, sections 3 and 4.
    pub(super) fn encoded(raw: &str) -> Result<Self> {
        Self::read(raw, Escapes::Decode)
    }

    pub(super) fn plain(raw: &str) -> Result<Self> {
        Self::read(raw, Escapes::Keep)
    }

    fn read(raw: &str, escapes: Escapes) -> Result<Self> {
        if raw.is_empty() {
            return Err(Error::corrupt("a path is empty"));
        }
        if let Some((scheme, rest)) = split_scheme(raw) {
            // In a relative path these are part of a name; behind a scheme they would be a query or a fragment.
            if escapes == Escapes::Decode && rest.contains(['?', '#']) {
                let message = format!("path `{}` has a query or a fragment", shown(raw));
                return Err(Error::corrupt(message).with_hint("in a name these are written `%3F` and `%23`"));
            }
            return Location::read(raw, scheme, rest, escapes).map(Self::Location);
        }
        match raw.strip_prefix('/') {
            None => Ok(Self::Relative(segments(raw, raw, escapes)?)),
            Some(rest) if rest.starts_with('/') && !rest.starts_with("//") => {
                Err(refused(raw, "names a host without a scheme"))
            }
            Some(rest) => Ok(Self::Absolute(segments(raw, rest, escapes)?)),
        }
    }
}

impl Location {
    /// A location of the operator's: whatever cannot be read as one matches nothing but itself.
    pub(super) fn trusted(text: &str) -> Self {
        match Reference::plain(text) {
            Ok(Reference::Location(location)) => location,
            Ok(Reference::Absolute(segments) | Reference::Relative(segments)) => {
                Self { scheme: "file".to_owned(), authority: String::new(), segments }
            }
            Err(_) => Self { scheme: String::new(), authority: text.to_owned(), segments: Vec::new() },
        }
    }

    fn read(raw: &str, scheme: &str, rest: &str, escapes: Escapes) -> Result<Self> {
        let scheme = canonical_scheme(scheme);
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
            None => ("", rest),
        };
        let authority = canonical_authority(raw, &scheme, authority)?;
        Ok(Self { scheme, authority, segments: segments(raw, path, escapes)? })
    }

    pub(super) fn segments(&self) -> &[String] {
        &self.segments
    }

    /// Another place in the same store.
    pub(super) fn with_segments(&self, segments: Vec<String>) -> Self {
        Self { scheme: self.scheme.clone(), authority: self.authority.clone(), segments }
    }

    /// The segments below `root`; `None` when this lies elsewhere. `/t_other` is not below `/t`.
    pub(super) fn below(&self, root: &Self) -> Option<&[String]> {
        if (&self.scheme, &self.authority) != (&root.scheme, &root.authority) {
            return None;
        }
        self.segments.strip_prefix(root.segments.as_slice())
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.authority)?;
        self.segments.iter().try_for_each(|it| write!(f, "/{it}"))
    }
}

/// Whether `raw` is a relative path that stays as it is under every rule here: what nearly all paths are, found without
/// an allocation.
pub(super) fn is_canonical(raw: &str) -> bool {
    let plain = |it: u8| (it.is_ascii_graphic() || it == b' ') && !matches!(it, b'%' | b'\\' | b':');
    raw.as_bytes().split(|it| *it == b'/').all(|it| !matches!(it, b"" | b"." | b"..") && it.iter().copied().all(plain))
}

/// `scheme` and `/…`. A colon with anything else behind it belongs to a name: `a:b.parquet`, `10:20/x`.
fn split_scheme(raw: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = raw.split_once(':')?;
    let letters = scheme.starts_with(|it: char| it.is_ascii_alphabetic());
    let rest_of_it = scheme.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'-' | b'.'));
    (letters && rest_of_it && rest.starts_with('/')).then_some((scheme, rest))
}

fn canonical_scheme(scheme: &str) -> String {
    let scheme = scheme.to_ascii_lowercase();
    match scheme.as_str() {
        "s3a" | "s3n" => "s3".to_owned(),
        "gcs" => "gs".to_owned(),
        "abfs" => "abfss".to_owned(),
        "wasb" => "wasbs".to_owned(),
        _ => scheme,
    }
}

fn canonical_authority(raw: &str, scheme: &str, authority: &str) -> Result<String> {
    if authority.contains(['%', '\\']) || authority.chars().any(|it| it.is_control() || it.is_whitespace()) {
        return Err(refused(raw, "has a host that is no name"));
    }
    // Azure names a container before the `@`; elsewhere a user and a password would stand there.
    let azure = matches!(scheme, "abfss" | "wasbs");
    match authority.split_once('@') {
        Some((container, host)) if !azure || container.contains(':') || host.contains('@') => {
            Err(refused(raw, "names a user"))
        }
        Some((container, host)) => Ok(format!("{container}@{}", host.to_ascii_lowercase())),
        None => match scheme {
            "file" if authority.is_empty() || authority.eq_ignore_ascii_case("localhost") => Ok(String::new()),
            "file" => Err(refused(raw, "names a file of another host")),
            "http" | "https" | "hdfs" => Ok(authority.to_ascii_lowercase()),
            _ => Ok(authority.to_owned()),
        },
    }
}

/// The segments of a path. Empty ones vanish, as Hadoop writes none: `a//b` is `a/b`.
fn segments(raw: &str, path: &str, escapes: Escapes) -> Result<Vec<String>> {
    let decoded = match escapes {
        Escapes::Keep => Cow::Borrowed(path),
        Escapes::Decode => decode(raw, path)?,
    };
    // Checks come after decoding, so that `%2e%2e` and `%2F` hide nothing.
    if decoded.contains(char::is_control) {
        return Err(Error::corrupt(format!("path `{}` holds a control character", shown(raw))));
    }
    if decoded.contains('\\') {
        return Err(refused(raw, "holds a back-slash"));
    }
    let mut segments = Vec::new();
    for segment in decoded.split('/') {
        match segment {
            "" => (),
            ".." => return Err(refused(raw, "climbs out of its folder")),
            "." => return Err(Error::corrupt(format!("path `{}` holds the segment `.`", shown(raw)))),
            name => segments.push(name.to_owned()),
        }
    }
    Ok(segments)
}

/// Decodes `%41` to `A`, once. `+` stays.
fn decode<'a>(raw: &str, path: &'a str) -> Result<Cow<'a, str>> {
    let mut rest = path.as_bytes();
    while let Some(at) = rest.iter().position(|it| *it == b'%') {
        let digits = rest.get(at + 1..at + 3).filter(|it| it.iter().all(u8::is_ascii_hexdigit));
        if digits.is_none() {
            let message = format!("path `{}` has a percent sign without two hexadecimal digits", shown(raw));
            return Err(Error::corrupt(message).with_hint("a percent sign in a name is written `%25`"));
        }
        rest = &rest[at + 3..];
    }
    percent_decode_str(path)
        .decode_utf8()
        .map_err(|_| Error::corrupt(format!("path `{}` is not UTF-8 once decoded", shown(raw))))
}

fn refused(raw: &str, why: &str) -> Error {
    Error::new(ErrorKind::Refused, format!("path `{}` {why}", shown(raw)))
}
