//! What went wrong, and what the caller can do about it.
use std::{error::Error as StdError, fmt};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a caller can do about an [`Error`]. Adding a kind is an API decision: each has an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong.
    Invalid,
    /// Something of that name is already there.
    AlreadyExists,
    /// The table, version, ref or file is not there.
    NotFound,
    /// Another writer committed something this commit cannot be rebased over: redo it.
    Conflict,
    /// A safety rule forbids it; the message says which, and what would lift it.
    Refused,
    /// What is stored does not follow the format's specification.
    Corrupt,
    /// The table asks for a feature this build does not have, or the format has no such thing.
    Unsupported,
    /// Storage or a catalog knows the caller and says no, or does not know the caller.
    Unauthorized,
    /// Storage or a catalog did not answer: retrying may help.
    Unavailable,
    /// The commit may or may not have become visible: look before retrying.
    Unknown,
    /// A bound on memory, size, depth or time was reached.
    Limit,
    /// A bug in Lakebed.
    Internal,
}

impl ErrorKind {
    /// The exit code of a program that ends with such an error. Stable: scripts rest on it.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Invalid | Self::AlreadyExists => 2,
            Self::NotFound => 3,
            Self::Conflict => 4,
            Self::Refused => 5,
            Self::Corrupt => 6,
            Self::Unsupported => 7,
            Self::Unauthorized => 8,
            Self::Unavailable => 9,
            Self::Unknown => 10,
            Self::Limit => 11,
            Self::Internal => 70,
        }
    }
}

/// The error of every public Lakebed function: a precise cause, a kind to act on, and often a next step.
pub struct Error {
    inner: Box<Inner>,
}

struct Inner {
    kind: ErrorKind,
    cause: Box<dyn StdError + Send + Sync>,
    subject: Option<String>,
    hint: Option<String>,
}

impl Error {
    /// `cause` is a message or the error of one floor.
    pub fn new(kind: ErrorKind, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { inner: Box::new(Inner { kind, cause: cause.into(), subject: None, hint: None }) }
    }

    /// Puts before the message what it is about: the file, and the place in it, that said so.
    #[must_use]
    pub fn with_subject(mut self, subject: impl fmt::Display) -> Self {
        self.inner.subject = Some(match self.inner.subject.take() {
            Some(inner) => format!("{subject}: {inner}"),
            None => subject.to_string(),
        });
        self
    }

    /// Adds what to do next: a command, a setting, a place to look. Shown after the message as `hint: …`.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.inner.hint = Some(hint.into());
        self
    }

    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    pub fn hint(&self) -> Option<&str> {
        self.inner.hint.as_deref()
    }

    /// The precise cause, for a caller that knows which floor it came from.
    pub fn cause<E: StdError + 'static>(&self) -> Option<&E> {
        self.inner.cause.downcast_ref()
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message.into())
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotFound, message.into())
    }

    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corrupt, message.into())
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message.into())
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message.into())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.inner.kind)
            .field("subject", &self.inner.subject)
            .field("cause", &self.inner.cause)
            .field("hint", &self.inner.hint)
            .finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(subject) = &self.inner.subject {
            write!(f, "{subject}: ")?;
        }
        self.inner.cause.fmt(f)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner.cause.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_stands_before_the_message_and_changes_nothing_else() {
        let err = Error::corrupt("no path").with_hint("mend it").with_subject("line 3").with_subject("7.json");
        assert_eq!(err.to_string(), "7.json: line 3: no path");
        assert_eq!((err.kind(), err.hint()), (ErrorKind::Corrupt, Some("mend it")));
    }

    #[test]
    fn exit_codes_are_stable() {
        for (kind, code) in [
            (ErrorKind::Invalid, 2),
            (ErrorKind::AlreadyExists, 2),
            (ErrorKind::NotFound, 3),
            (ErrorKind::Conflict, 4),
            (ErrorKind::Refused, 5),
            (ErrorKind::Corrupt, 6),
            (ErrorKind::Unsupported, 7),
            (ErrorKind::Unauthorized, 8),
            (ErrorKind::Unavailable, 9),
            (ErrorKind::Unknown, 10),
            (ErrorKind::Limit, 11),
            (ErrorKind::Internal, 70),
        ] {
            assert_eq!(kind.exit_code(), code, "{kind:?}");
        }
    }
}
