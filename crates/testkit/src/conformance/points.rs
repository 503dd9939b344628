//! Every call that an action makes, and everything that can befall it.
//!
//! 1. The table is made once. Each run gets a copy of its objects and a process of its own, which has opened the newest
//!    version before anything goes wrong.
//! 2. A run without faults tells which calls the action makes from the moment on at which it *arms* the fault. Up to the
//!    call that goes wrong, every run makes the same.
//! 3. One run for each call and each thing that can befall it. A call that only reads leaves nothing behind, come to pass
//!    or not: what tells its faults apart is the answer, and whether the process lives on.
//! 4. Clock and ids are the same in every run, so that runs that do the same leave the same bytes: of those that end alike,
//!    one is judged.
use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
};

use futures::TryStreamExt;
use lakebed_core::{Result, path::FilePath, table::Table, version::AsOf};

use super::{Subject, World};
use crate::store::{Fault, Op, Times};

/// What befalls a call that writes. The processes of all but the first two live on.
const WRITING: [Fault; 6] = [
    Fault::CrashBefore,
    Fault::CrashAfter,
    Fault::FailAfter,
    Fault::LoseAnswer,
    Fault::LoseRequest,
    Fault::LoseAnswerAndRetry,
];

/// What befalls a call that reads.
const READING: [Fault; 3] = [Fault::CrashBefore, Fault::FailBefore, Fault::LoseRequest];

/// One run: a call, counted from 1 since the fault was armed, and what befalls it; or none.
#[derive(Debug, Clone)]
pub(super) struct Point {
    nth: u64,
    fault: Option<Fault>,
    /// For people who look for a failure.
    pub(super) what: String,
}

impl Point {
    fn untouched() -> Self {
        Self { nth: 0, fault: None, what: "untouched".to_owned() }
    }

    /// Whether nothing goes wrong.
    pub(super) fn is_untouched(&self) -> bool {
        self.fault.is_none()
    }

    /// Whether the process lives on.
    pub(super) fn survives(&self) -> bool {
        !matches!(self.fault, Some(Fault::CrashBefore | Fault::CrashAfter))
    }

    /// From now on calls count, and one of them goes wrong.
    pub(super) fn arm(&self, world: &World) {
        world.store.clear_log();
        if let Some(fault) = &self.fault {
            world.store.add_rule(None, "", fault.clone(), Times::Nth(self.nth));
        }
    }
}

/// Runs `action` in a copy of `made`, untouched and then once for each point; `judge` looks at each outcome.
///
/// The action has to arm the point it is given.
pub(super) async fn at_every_call(
    subject: &dyn Subject,
    made: &World,
    action: impl AsyncFn(&dyn Table, &World, &Point) -> Result<()>,
    judge: impl AsyncFn(&Point, Result<()>, &World),
) {
    let now = made.env.clock.now();
    let run = async |point: &Point| {
        let world = made.forked(now);
        let table = subject.open(world.location()).await.expect("a table");
        table.snapshot(&AsOf::Latest).await.expect("its newest version");
        (action(table.as_ref(), &world, point).await, world)
    };
    let untouched = Point::untouched();
    let (done, world) = run(&untouched).await;
    let calls: Vec<(Op, String)> = world.store.log().into_iter().map(|it| (it.op, it.path)).collect();
    assert!(!calls.is_empty(), "the fault was not armed");
    judge(&untouched, done, &world).await;
    let mut seen = HashSet::new();
    for (at, (op, path)) in calls.iter().enumerate() {
        let faults = if op.writes() { &WRITING[..] } else { &READING[..] };
        for fault in faults {
            let nth = at as u64 + 1;
            let what = format!("{fault:?} at call {nth} of {}, {op:?} {path}", calls.len());
            let point = Point { nth, fault: Some(fault.clone()), what };
            let (done, world) = run(&point).await;
            assert!(world.store.requests() as u64 >= nth, "{}: it was not made", point.what);
            if seen.insert((point.survives(), done.as_ref().err().map(|it| it.kind()), left(&world).await)) {
                judge(&point, done, &world).await;
            }
        }
    }
}

/// A number for all objects of a world and what is in them.
async fn left(world: &World) -> u64 {
    let storage = world.store.restarted().storage("t");
    let listed: Vec<_> = storage.list_all("").try_collect().await.expect("a listing");
    let mut hasher = DefaultHasher::new();
    for object in listed {
        let body = storage.read(&FilePath::below(object.path.as_str())).await.expect("a body");
        (object.path, body).hash(&mut hasher);
    }
    hasher.finish()
}
