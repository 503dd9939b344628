//! Which call of the store goes wrong, how, and how often.
use std::time::Duration;

/// A kind of call, as rules and the log name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    Get,
    Head,
    List,
    /// A put that must not overwrite.
    Create,
    /// A put that replaces a known state.
    Update,
    /// A put that overwrites.
    Put,
    Delete,
    Copy,
}

impl Op {
    pub fn writes(self) -> bool {
        match self {
            Self::Create | Self::Update | Self::Put | Self::Delete | Self::Copy => true,
            Self::Get | Self::Head | Self::List => false,
        }
    }
}

/// What goes wrong with one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Nothing happens, the caller gets an error.
    FailBefore,
    /// It happens, the caller gets a server error.
    FailAfter,
    /// It happens, the caller waits in vain: a timeout.
    LoseAnswer,
    /// It happens, the client's own retry of it is answered "already exists".
    LoseAnswerAndRetry,
    /// It does not happen, and the caller gets a timeout.
    LoseRequest,
    /// The process is dead before it happens: this call fails, and every later one.
    CrashBefore,
    /// It happens, and the process is dead before it hears of it.
    CrashAfter,
    /// There is no room: nothing happens, and the caller is told so.
    Full,
    /// It happens later.
    Delay(Duration),
    /// A listing lacks its newest `n` objects.
    StaleList(usize),
    /// The body ends `n` bytes early.
    ShortBody(usize),
    /// One bit of the body, chosen by the seed, is another one.
    BitFlip,
    /// The caller is not allowed.
    Forbid,
}

/// How often a rule applies, counted over the calls it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    Always,
    First(u64),
    /// Only the n-th call, from 1.
    Nth(u64),
    /// By the seed's dice, in so many of 100 calls.
    Percent(u64),
}

#[derive(Debug, Clone)]
pub(super) struct Rule {
    /// `None` is every call.
    pub(super) op: Option<Op>,
    /// Part of the object's key; empty matches all.
    pub(super) path: String,
    pub(super) fault: Fault,
    pub(super) times: Times,
    pub(super) seen: u64,
}

impl Rule {
    pub(super) fn matches(&self, op: Op, path: &str) -> bool {
        self.op.is_none_or(|it| it == op) && path.contains(&self.path)
    }
}
