//! Room for recursion.
//!
//! Parser and planner walk, copy and free trees recursively. How deep these get is bounded (see [`sql`](crate::sql)),
//! but not so tightly that a small thread's stack would do in every build; so they run where there is room.
use std::{future::Future, pin::pin, task::Poll};

/// Left over, no new stack is made.
const ENOUGH: usize = 4 << 20;
/// Reserved, not committed: only pages that are touched cost memory.
const ROOM: usize = 64 << 20;

/// Runs `work` with room on the stack.
pub(crate) fn with_room<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(ENOUGH, ROOM, work)
}

/// Runs a future so that every step of it has room.
pub(crate) async fn roomy<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(move |context| -> Poll<F::Output> { with_room(|| future.as_mut().poll(context)) }).await
}
