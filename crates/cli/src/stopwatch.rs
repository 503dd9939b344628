//! Measured time. The one place of this crate that asks the machine for it; nothing is decided by it.
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "measuring belongs to the doors")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
