//! The memory of a session, shared by all that its statements hold.
//!
//! Who can spill gets an even share of what is there for those who can. A part of the whole is kept from them: who
//! cannot spill, or must hold something to be able to (the merge of a sort, a file that is being written), comes late, and
//! would find that those who can have taken everything.
//!
//! The merge of a sort opens as many of the files it spilled as it gets memory for, and is content with few; but what it
//! must have to begin is an error where it is denied. So the merges share a part of the whole, too: the first of them
//! would leave nothing for the others.
use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use datafusion::{
    error::{DataFusionError, Result},
    execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, human_readable_size},
};

/// Kept from those who can spill at most.
const MOST_KEPT: usize = 256 << 20;

/// What DataFusion calls the memory that a sort merges in.
const MERGE: &str = "ExternalSorterMerge";

/// Hands out up to so many bytes.
#[derive(Debug)]
pub(super) struct Pool {
    bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    spillers: usize,
    /// Sorts, each of which may come to merge what it spilled.
    merges: usize,
    /// Bytes of consumers that can spill.
    spillable: usize,
    /// Of all others.
    fixed: usize,
}

impl Pool {
    pub(super) fn new(bytes: usize) -> Self {
        Self { bytes, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn part(&mut self, consumer: &MemoryConsumer) -> &mut usize {
        match consumer.can_spill() {
            true => &mut self.spillable,
            false => &mut self.fixed,
        }
    }
}

impl MemoryPool for Pool {
    fn name(&self) -> &str {
        "session"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        let mut state = self.state();
        state.spillers += usize::from(consumer.can_spill());
        state.merges += usize::from(is_merge(consumer));
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        let mut state = self.state();
        state.spillers = state.spillers.saturating_sub(usize::from(consumer.can_spill()));
        state.merges = state.merges.saturating_sub(usize::from(is_merge(consumer)));
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        *self.state().part(reservation.consumer()) += additional;
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let mut state = self.state();
        let part = state.part(reservation.consumer());
        *part = part.saturating_sub(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut state = self.state();
        let left = self.bytes.saturating_sub(state.spillable + state.fixed);
        let room = match reservation.consumer().can_spill() {
            true => {
                let kept = state.fixed.max(MOST_KEPT.min(self.bytes / 2));
                let share = self.bytes.saturating_sub(kept) / state.spillers.max(1);
                share.saturating_sub(reservation.size()).min(left)
            }
            false if is_merge(reservation.consumer()) => {
                let share = self.bytes / 8 * 3 / state.merges.max(1);
                share.saturating_sub(reservation.size()).min(left)
            }
            false => left,
        };
        if additional > room {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "{} more for {}, which has {}: {} are left for it of {}",
                human_readable_size(additional),
                reservation.consumer().name(),
                human_readable_size(reservation.size()),
                human_readable_size(room),
                human_readable_size(self.bytes),
            )));
        }
        *state.part(reservation.consumer()) += additional;
        Ok(())
    }

    fn reserved(&self) -> usize {
        let state = self.state();
        state.spillable + state.fixed
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.bytes)
    }
}

fn is_merge(consumer: &MemoryConsumer) -> bool {
    consumer.name().starts_with(MERGE)
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session({})", human_readable_size(self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn who_can_spill_leaves_room_for_who_cannot() {
        let pool: Arc<dyn MemoryPool> = Arc::new(Pool::new(1_000));
        let [a, b] = ["a", "b"].map(|it| MemoryConsumer::new(it).with_can_spill(true).register(&pool));
        let fixed = MemoryConsumer::new("fixed").register(&pool);
        assert!(a.try_grow(251).is_err());
        a.try_grow(250).unwrap();
        b.try_grow(250).unwrap();
        assert!(b.try_grow(1).is_err());
        fixed.try_grow(500).unwrap();
        let err = fixed.try_grow(1).unwrap_err().to_string();
        assert!(err.contains("for fixed, which has 500.0 B: 0.0 B are left"), "{err}");
        drop(b);
        assert_eq!(pool.reserved(), 750);
        // Alone with what cannot spill, the other gets what is left, and no more.
        a.try_grow(250).unwrap();
        assert!(a.try_grow(1).is_err());
        drop((a, fixed));
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn of_several_merges_the_first_leaves_room_for_the_others() {
        let pool: Arc<dyn MemoryPool> = Arc::new(Pool::new(1_600));
        let merges: Vec<_> = (0..4).map(|at| MemoryConsumer::new(format!("{MERGE}[{at}]")).register(&pool)).collect();
        let writer = MemoryConsumer::new("writer").register(&pool);
        for merge in &merges {
            merge.try_grow(150).unwrap();
            assert!(merge.try_grow(1).is_err());
        }
        // Others are not bound by it, and a merge that is over leaves its share.
        writer.try_grow(700).unwrap();
        let mut merges = merges;
        merges.truncate(2);
        merges[0].try_grow(150).unwrap();
        assert!(merges[0].try_grow(1).is_err());
    }
}
