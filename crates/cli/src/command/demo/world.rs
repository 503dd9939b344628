//! The world the demo plays in: a clock and ids of its own, so that the story reads the same wherever it is told.
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use lakebed_core::{
    env::{Clock, Env, Ids},
    version::Millis,
};

/// 2026-11-02T09:00:00Z.
const START: i64 = 1_793_610_000_000;
const HOUR_MS: i64 = 3_600_000;

/// A clock that stands still until the story moves it.
#[derive(Debug)]
pub(super) struct StoryClock {
    now: AtomicI64,
    real: Arc<dyn Clock>,
}

impl StoryClock {
    pub(super) fn new() -> Self {
        Self { now: AtomicI64::new(START), real: Env::system().clock }
    }

    /// So many hours after the start.
    pub(super) fn set(&self, hours: i64) {
        self.now.store(START.saturating_add(hours.saturating_mul(HOUR_MS)), Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for StoryClock {
    fn now(&self) -> Millis {
        Millis(self.now.load(Ordering::Relaxed))
    }

    /// Pauses are for others, and others live in real time.
    async fn sleep(&self, pause: Duration) {
        self.real.sleep(pause).await;
    }
}

/// Ids that follow one another, spread over all bits. Nobody else writes to the demo's table.
#[derive(Debug, Default)]
pub(super) struct StoryIds(AtomicU64);

impl Ids for StoryIds {
    fn uuid(&self) -> u128 {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        (u128::from(mixed(number)) << 64) | u128::from(mixed(!number))
    }
}

/// The finalizer of SplitMix64: each number another one, and neighbours far apart.
fn mixed(number: u64) -> u64 {
    let spread = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let spread = (spread ^ (spread >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let spread = (spread ^ (spread >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    spread ^ (spread >> 31)
}
