//! What was asked of the store, in which order, and what had to wait for what.
use super::Op;

/// One call. `started` and `ended` are ticks of one counter over all calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Io {
    pub op: Op,
    pub path: String,
    /// Bytes sent or received.
    pub bytes: u64,
    pub started: u64,
    /// `None` while it is under way, or when its caller went away.
    pub ended: Option<u64>,
    pub failed: bool,
}

/// How many dependent rounds the calls took: a call belongs to the round after the last one that had ended when it began.
///
/// Latency is what a wave costs; calls of one wave could have been under way together.
pub fn waves(log: &[Io]) -> usize {
    lakebed_core::storage::waves(log.iter().map(|it| (it.started, it.ended)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(started: u64, ended: u64) -> Io {
        Io { op: Op::Get, path: String::new(), bytes: 0, started, ended: Some(ended), failed: false }
    }

    #[test]
    fn calls_that_overlap_are_one_wave() {
        assert_eq!(waves(&[]), 0);
        assert_eq!(waves(&[io(0, 3), io(1, 2)]), 1);
        assert_eq!(waves(&[io(0, 1), io(2, 4), io(3, 5), io(6, 7)]), 3);
    }
}
