//! Random choices that a number replays: SplitMix64, small enough to need no crate.
use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

/// Starts a [`Dice`]. Every failure of a seeded test prints it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Seed(pub u64);

impl fmt::Display for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seed({})", self.0)
    }
}

/// A stream of choices. Shared by reference; the order of calls is part of what a seed replays.
#[derive(Debug)]
pub struct Dice(AtomicU64);

impl Dice {
    pub fn new(seed: Seed) -> Self {
        Self(AtomicU64::new(seed.0))
    }

    /// The next 64 bits.
    pub fn next(&self) -> u64 {
        let state = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `below` - 1; 0 when `below` is 0.
    pub fn below(&self, below: u64) -> u64 {
        self.next().checked_rem(below).unwrap_or(0)
    }

    /// True in `percent` of 100 throws.
    pub fn chance(&self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A new stream that does not disturb this one beyond one throw.
    pub fn split(&self) -> Dice {
        Dice::new(Seed(self.next()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays_and_another_differs() {
        let throws = |seed| {
            let dice = Dice::new(Seed(seed));
            (0..8).map(|_| dice.next()).collect::<Vec<_>>()
        };
        assert_eq!(throws(7), throws(7));
        assert_ne!(throws(7), throws(8));
    }

    #[test]
    fn below_nothing_is_zero() {
        assert_eq!(Dice::new(Seed(1)).below(0), 0);
    }
}
