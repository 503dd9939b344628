//! The words people name versions by: one grammar for the command line, SQL, HTTP and the web.
//!
//! ```text
//! rev    = base step* | step+          steps alone start at the head
//! base   = "head" | "earliest" | "latest-readable"
//!        | "{" time "}"                the newest version committed at or before
//!        | digits | "v" digits         a version's own id
//!        | kind ":" name               kind is tag, branch, savepoint or set
//!        | name                        a ref
//! step   = "^" | "-" (alone) | "~" | "~" digits      back one version, or so many
//! range  = [rev] ".." [rev]            versions after the first up to the second
//!        | rev "..." rev               … after the newest version both have behind them
//! ```
//!
//! A name is looked up whole before its steps are read, so a ref may hold `~`; one that is called like a word above is
//! written with its kind, `tag:head`. A ref and a version of one name that are not the same version are an error that
//! lists both: nobody is to read the wrong one in silence.
use std::fmt;

use crate::{Error, Result};

mod name;
mod parse;
mod range;
mod resolve;

pub use self::{
    name::check_ref_name,
    parse::split_table_rev,
    range::{RevRange, resolve_range},
    resolve::resolve,
};

/// A version by any of its names, not yet looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rev {
    /// As written.
    text: String,
    base: Base,
    /// How many versions back from `base`.
    back: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Base {
    Head,
    Earliest,
    LatestReadable,
    Time(String),
    /// Digits only, as the format spells its ids; with what was written.
    Version(String),
    Tag(String),
    Branch(String),
    Name(String),
}

impl Rev {
    /// Reads a revision, the text behind the `@`.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid), with the grammar as a hint.
    pub fn parse(text: &str) -> Result<Self> {
        parse::rev(text)
    }

    /// The newest version.
    pub fn head() -> Self {
        Self { text: "head".to_owned(), base: Base::Head, back: 0 }
    }
}

impl fmt::Display for Rev {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.text.escape_debug())
    }
}

fn invalid(text: &str, why: &str) -> Error {
    let short: String = text.chars().take(100).collect();
    Error::invalid(format!("revision `{}` {why}", short.escape_debug())).with_hint(
        "a revision is a version's id, a tag or branch, `{2026-10-04 20:57:02}`, `head`, `earliest`, and `~3` steps back",
    )
}

#[cfg(test)]
mod tests;
