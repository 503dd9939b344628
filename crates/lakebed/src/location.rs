//! What a user writes for a place, read once and made canonical.
//!
//! - A path without a scheme, or `file:…`: a local folder. Relative paths start at the folder the caller names.
//! - `memory:///key`: a store that lives as long as the process.
//! - `s3://bucket/key` (also `s3a`, `s3n`), `gs://bucket/key`.
//! - `abfss://container@account.dfs.core.windows.net/key` (also `abfs`, `wasb`, `wasbs`), `az://container/key`.
//! - `http://host/key`, `https://host/key`: read-only.
//!
//! Keys are taken as written, never percent-decoded: a bucket may hold a key with a `%` in it. Only the path of a
//! `file:` URL is decoded when it holds valid escapes and nothing of its literal name is there.
use std::path::{Component, Path, PathBuf};

use lakebed_core::{Error, Result};

/// A canonical place: where to connect, and the key below that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// An absolute path without `.` and `..`; symlinks are not resolved here.
    Local(PathBuf),
    Remote {
        scheme: Scheme,
        /// `bucket`, `container@account.dfs.core.windows.net`, `host:port`; empty for `memory`.
        authority: String,
        /// Without a leading or trailing slash; may be empty.
        key: String,
    },
}

/// The kinds of stores that are not the local disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    Memory,
    S3,
    Gs,
    /// `abfss`, with the account in the authority.
    Abfss,
    /// `az`, with the account from the configuration.
    Az,
    Http,
    Https,
}

impl Scheme {
    /// The canonical spelling in locations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::S3 => "s3",
            Self::Gs => "gs",
            Self::Abfss => "abfss",
            Self::Az => "az",
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().as_str() {
            "memory" => Self::Memory,
            "s3" | "s3a" | "s3n" => Self::S3,
            "gs" | "gcs" => Self::Gs,
            "abfs" | "abfss" | "wasb" | "wasbs" => Self::Abfss,
            "az" | "azure" => Self::Az,
            "http" => Self::Http,
            "https" => Self::Https,
            _ => return None,
        })
    }
}

impl Place {
    /// Reads `text`; relative paths start at `base`, which is absolute.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](lakebed_core::ErrorKind) for a scheme nobody knows, an empty or broken location.
    pub fn parse(text: &str, base: &Path) -> Result<Self> {
        if text.is_empty() {
            return Err(Error::invalid("an empty location names no table"));
        }
        if text.contains('\0') {
            return Err(Error::invalid(format!("location `{}` holds a NUL", text.escape_debug())));
        }
        let Some((scheme, rest)) = split_scheme(text) else { return Ok(Self::Local(absolute(base, Path::new(text)))) };
        if scheme.eq_ignore_ascii_case("file") {
            return local_url(text, rest);
        }
        let Some(known) = Scheme::parse(scheme) else {
            return Err(Error::invalid(format!("no store is known for `{scheme}:`"))
                .with_hint("use a path, file:, memory:, s3:, gs:, abfss:, az:, http: or https:"));
        };
        remote(text, known, rest)
    }

    /// The place of `name`, one segment, below this one.
    #[must_use]
    pub fn join(&self, name: &str) -> Self {
        match self {
            Self::Local(path) => Self::Local(path.join(name)),
            Self::Remote { scheme, authority, key } => {
                let key = if key.is_empty() { name.to_owned() } else { format!("{key}/{name}") };
                Self::Remote { scheme: *scheme, authority: authority.clone(), key }
            }
        }
    }

    /// The last segment; empty for a whole store.
    pub fn name(&self) -> &str {
        match self {
            Self::Local(path) => path.file_name().and_then(|it| it.to_str()).unwrap_or_default(),
            Self::Remote { key, .. } => key.rsplit('/').next().unwrap_or_default(),
        }
    }

    /// The location as errors, metadata and reports spell it; no trailing slash.
    pub fn location(&self) -> String {
        match self {
            Self::Local(path) => format!("file://{}", path.to_string_lossy().trim_end_matches('/')),
            Self::Remote { scheme, authority, key } if key.is_empty() => format!("{}://{authority}", scheme.name()),
            Self::Remote { scheme, authority, key } => format!("{}://{authority}/{key}", scheme.name()),
        }
    }
}

/// Whether `text` can only be a place, not a name in a catalog.
pub fn looks_like_place(text: &str) -> bool {
    split_scheme(text).is_some() || text.contains('/') || text.contains('\\') || matches!(text, "." | "..")
}

/// `s3://b/k` → (`s3`, `//b/k`). One letter is no scheme: it is a drive.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let mut letters = scheme.chars();
    let starts = letters.next().is_some_and(|it| it.is_ascii_alphabetic());
    let known = starts && scheme.len() > 1 && letters.all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it));
    // `a:b` is a file name that somebody may have; `a:/b` and the schemes we know are locations.
    let meant = rest.starts_with('/') || scheme.eq_ignore_ascii_case("file") || Scheme::parse(scheme).is_some();
    (known && meant).then_some((scheme, rest))
}

fn local_url(text: &str, rest: &str) -> Result<Place> {
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(after) => match after.find('/') {
            Some(at) if matches!(&after[..at], "" | "localhost") => &after[at..],
            _ => return Err(Error::invalid(format!("`{text}` names another machine; file: URLs name this one"))),
        },
    };
    if !path.starts_with('/') {
        return Err(Error::invalid(format!("`{text}` is no absolute path"))
            .with_hint("write file:///absolute/path, or a plain relative path"));
    }
    let literal = absolute(Path::new("/"), Path::new(path));
    if !path.contains('%') || literal.exists() {
        return Ok(Place::Local(literal));
    }
    let decoded = percent_decode(path).map(|it| absolute(Path::new("/"), Path::new(&it)));
    Ok(Place::Local(decoded.filter(|it| it.exists()).unwrap_or(literal)))
}

fn percent_decode(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, tail)) = rest.split_first() {
        if first != b'%' {
            out.push(first);
            rest = tail;
            continue;
        }
        let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
        out.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &tail[2..];
    }
    String::from_utf8(out).ok().filter(|it| !it.contains('\0'))
}

fn remote(text: &str, scheme: Scheme, rest: &str) -> Result<Place> {
    let rest = match (rest.strip_prefix("//"), scheme) {
        (Some(after), _) => after,
        (None, Scheme::Memory) => rest,
        (None, _) => return Err(Error::invalid(format!("`{text}`: `//` is missing after the scheme"))),
    };
    let (authority, key) = rest.split_once('/').unwrap_or((rest, ""));
    // `memory:t`, `memory://t` and `memory:///t` are one place: there is one such store.
    let (authority, key) = if scheme == Scheme::Memory { ("", rest) } else { (authority, key) };
    if authority.is_empty() && scheme != Scheme::Memory {
        return Err(Error::invalid(format!("`{text}` names no bucket, container or host")));
    }
    if authority.contains('@') && scheme != Scheme::Abfss {
        return Err(Error::invalid(format!("a {} location holds a user or password", scheme.name()))
            .with_hint("credentials come from the environment or the configuration, never from a location"));
    }
    let key = clean_key(text, key)?;
    Ok(Place::Remote { scheme, authority: canonical_authority(scheme, authority), key })
}

/// Drops empty segments; `.` and `..` are refused, since stores take them literally and people do not.
fn clean_key(text: &str, key: &str) -> Result<String> {
    let segments: Vec<&str> = key.split('/').filter(|it| !it.is_empty()).collect();
    match segments.iter().find(|it| matches!(**it, "." | "..")) {
        Some(dots) => Err(Error::invalid(format!("`{text}` holds a `{dots}` segment"))),
        None => Ok(segments.join("/")),
    }
}

/// `wasb`'s blob host and `abfss`'s dfs host are two doors to one container; the second is canonical.
fn canonical_authority(scheme: Scheme, authority: &str) -> String {
    match scheme {
        Scheme::Abfss => authority.replace(".blob.core.", ".dfs.core."),
        Scheme::Http | Scheme::Https => authority.to_ascii_lowercase(),
        _ => authority.to_owned(),
    }
}

/// Joins and removes `.` and `..` by their text.
fn absolute(base: &Path, path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in base.join(path).components() {
        match part {
            Component::CurDir => (),
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let read = Place::parse(text, Path::new("/home/me"));
        let shown = read.map_or_else(|err| format!("error: {err}"), |it| it.location());
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn local_paths_become_file_locations() {
        check("t", "file:///home/me/t");
        check("./a/../t/", "file:///home/me/t");
        check("/data/t@1", "file:///data/t@1");
        check("file:/data/t", "file:///data/t");
        check("file:///data//t/", "file:///data/t");
        check("file://localhost/data/t", "file:///data/t");
        check("a:b", "file:///home/me/a:b");
        check("/", "file://");
    }

    #[test]
    fn stores_have_one_spelling() {
        check("s3a://bucket/a//b/", "s3://bucket/a/b");
        check("S3N://bucket", "s3://bucket");
        check("gs://bucket/a b", "gs://bucket/a b");
        check("wasbs://c@acc.blob.core.windows.net/t", "abfss://c@acc.dfs.core.windows.net/t");
        check("azure://c/t%20x", "az://c/t%20x");
        check("HTTPS://Host:8080/t", "https://host:8080/t");
        check("memory:t", "memory:///t");
        check("memory:///t", "memory:///t");
    }

    #[test]
    fn what_names_no_place_is_refused() {
        check("", "error: an empty location names no table");
        check("a\0b", "error: location `a\\0b` holds a NUL");
        check("ftp://host/t", "error: no store is known for `ftp:`");
        check("s3:bucket/t", "error: `s3:bucket/t`: `//` is missing after the scheme");
        check("s3:///t", "error: `s3:///t` names no bucket, container or host");
        check("s3://b/../t", "error: `s3://b/../t` holds a `..` segment");
        check("s3://key:secret@b/t", "error: a s3 location holds a user or password");
        check("file://server/share", "error: `file://server/share` names another machine; file: URLs name this one");
        check("file:t", "error: `file:t` is no absolute path");
    }

    #[test]
    fn names_and_places_differ_by_their_look() {
        for (text, place) in
            [("orders", false), ("sales.orders", false), ("./t", true), ("s3://b/t", true), (".", true)]
        {
            assert_eq!(looks_like_place(text), place, "{text}");
        }
    }
}
