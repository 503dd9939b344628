//! Time and ids that a test owns.
//!
//! Three clocks: [`ManualClock`] stands still until somebody advances it; [`SteppingClock`] moves a millisecond at each
//! look and makes every sleep pass at once; [`RuntimeClock`] follows tokio's clock, which a paused runtime moves only
//! when nothing else can run. [`SeededIds`] are the same ids for the same seed.
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use lakebed_core::{
    env::{Clock, Env, Ids},
    version::Millis,
};
use tokio::sync::watch;

use crate::seed::{Dice, Seed};

/// The moment at which test clocks start: 2026-01-01T00:00:00Z.
pub const START: Millis = Millis(1_767_225_600_000);

/// An [`Env`] whose clock steps and whose ids come from `seed`: enough for tests that do not care about time.
pub fn env(seed: Seed) -> Env {
    Env { clock: Arc::new(SteppingClock::default()), ids: Arc::new(SeededIds::new(seed)) }
}

/// A clock that stands still; sleepers wait until [`ManualClock::advance`] passes their time.
#[derive(Debug)]
pub struct ManualClock {
    now: watch::Sender<i64>,
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::at(START)
    }
}

impl ManualClock {
    pub fn at(now: Millis) -> Self {
        Self { now: watch::Sender::new(now.0) }
    }

    pub fn advance(&self, by: Duration) {
        self.now.send_modify(|it| *it = it.saturating_add(millis(by)));
    }

    /// Sets the clock, also backwards: clocks of real machines do that.
    pub fn set(&self, now: Millis) {
        self.now.send_replace(now.0);
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Millis {
        Millis(*self.now.borrow())
    }

    async fn sleep(&self, pause: Duration) {
        let mut changes = self.now.subscribe();
        let end = self.now().0.saturating_add(millis(pause));
        let woken = changes.wait_for(|now| *now >= end).await;
        woken.expect("the sender lives as long as the borrowed clock");
    }
}

/// A clock that moves one millisecond at each look. Sleeping moves it by the pause and lets others run once.
#[derive(Debug)]
pub struct SteppingClock(AtomicI64);

impl Default for SteppingClock {
    fn default() -> Self {
        Self::at(START)
    }
}

impl SteppingClock {
    pub fn at(now: Millis) -> Self {
        Self(AtomicI64::new(now.0))
    }

    /// Passes time in which nobody looks.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(millis(by), Ordering::Relaxed);
    }
}

#[async_trait]
impl Clock for SteppingClock {
    fn now(&self) -> Millis {
        Millis(self.0.fetch_add(1, Ordering::Relaxed))
    }

    async fn sleep(&self, pause: Duration) {
        self.0.fetch_add(millis(pause), Ordering::Relaxed);
        tokio::task::yield_now().await;
    }
}

/// Tokio's own clock, counted from [`START`]; deterministic on a current-thread runtime whose time is paused.
#[derive(Debug)]
pub struct RuntimeClock(tokio::time::Instant);

impl RuntimeClock {
    /// Must be called inside a runtime with timers.
    pub fn start() -> Self {
        Self(tokio::time::Instant::now())
    }
}

#[async_trait]
impl Clock for RuntimeClock {
    fn now(&self) -> Millis {
        Millis(START.0.saturating_add(millis(self.0.elapsed())))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the clock of simulated worlds")]
    async fn sleep(&self, pause: Duration) {
        tokio::time::sleep(pause).await;
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// Ids drawn from a seed; never the same twice in one stream.
#[derive(Debug)]
pub struct SeededIds(Dice);

impl SeededIds {
    pub fn new(seed: Seed) -> Self {
        Self(Dice::new(seed))
    }
}

impl Ids for SeededIds {
    fn uuid(&self) -> u128 {
        (u128::from(self.0.next()) << 64) | u128::from(self.0.next())
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_manual_sleeper_wakes_when_its_time_has_passed() {
        let clock = ManualClock::default();
        let mut sleeper = clock.sleep(Duration::from_millis(50));
        assert!((&mut sleeper).now_or_never().is_none());
        clock.advance(Duration::from_millis(49));
        assert!((&mut sleeper).now_or_never().is_none());
        clock.advance(Duration::from_millis(1));
        sleeper.await;
        assert_eq!(clock.now(), Millis(START.0 + 50));
    }

    #[tokio::test]
    async fn a_stepping_clock_never_shows_one_moment_twice() {
        let clock = SteppingClock::default();
        let (first, second) = (clock.now(), clock.now());
        assert!(first < second);
        clock.sleep(Duration::from_secs(1)).await;
        assert!(clock.now() >= Millis(second.0 + 1000));
    }
}
