//! Item 12: a process that dies at any request leaves the old state or the new one.
use std::sync::Arc;

use lakebed_testkit::{
    env::env,
    seed::Seed,
    store::{Fault, FaultyStore, Times},
};
use object_store::memory::InMemory;

use crate::mission::Counted;

const ROWS: &str = "SELECT id, s FROM {t} ORDER BY id";
/// More than any of these statements asks.
const REQUESTS: u64 = 200;

/// Two files and a version that makes the next one due for a checkpoint.
async fn built(properties: &str) -> Arc<InMemory> {
    let memory = Arc::new(InMemory::new());
    let world = Counted::over(FaultyStore::over(Arc::clone(&memory) as _, Seed(1)), env(Seed(2)));
    let create = "CREATE TABLE {t} (id BIGINT, s STRING) TBLPROPERTIES ('delta.checkpointInterval' = '3'";
    world.run(&format!("{create}{properties})")).await;
    world.run("INSERT INTO {t} VALUES (1, 'a'), (2, 'a')").await;
    world.run("INSERT INTO {t} VALUES (3, 'b'), (4, 'b')").await;
    memory
}

fn over(memory: &InMemory) -> Counted {
    Counted::over(FaultyStore::over(Arc::new(memory.fork()), Seed(1)), env(Seed(5)))
}

/// Every request of `text`, the process dead before it or right after it.
async fn at_every_request(properties: &str, text: &str) {
    let base = built(properties).await;
    let (before, after) = (over(&base), over(&base));
    let old = before.run(ROWS).await;
    after.run(text).await;
    let new = after.restarted().run(ROWS).await;
    assert_ne!(old, new, "{text} does something");
    let (mut olds, mut news) = (0, 0);
    for fault in [Fault::CrashBefore, Fault::CrashAfter] {
        for nth in 1..=REQUESTS {
            let world = over(&base);
            world.store.add_rule(None, "", fault.clone(), Times::Nth(nth));
            let told = world.told(text).await;
            let whole = !world.store.crashed();
            let survivor = world.restarted();
            let found = survivor.run(ROWS).await;
            let what = format!("{text}{properties}, {fault:?} at {nth}");
            assert!(found == old || found == new, "{what}: {found:?} is neither the old state nor the new");
            assert!(found == new || told.is_err(), "{what}: it was acknowledged");
            match found == old {
                true => olds += 1,
                false => news += 1,
            }
            if whole {
                assert_eq!(found, new, "{what}");
                break;
            }
            assert!(nth < REQUESTS, "{what}: there is no end");
            // The table goes on, and what the dead one left behind is in nobody's way.
            survivor.run("INSERT INTO {t} VALUES (100, 'later')").await;
            let later = survivor.restarted().run(ROWS).await;
            assert_eq!(later[..later.len() - 1], found, "{what}: afterwards");
            assert_eq!(later.last().map(String::as_str), Some("100  later"), "{what}: afterwards");
        }
    }
    assert!(olds > 2 && news > 2, "{text}: {olds} old, {news} new");
}

const VECTORS: &str = ", 'delta.enableDeletionVectors' = 'true'";
const FEED: &str = ", 'delta.enableChangeDataFeed' = 'true'";

#[tokio::test]
async fn item_12_an_insert_that_dies_anywhere() {
    at_every_request("", "INSERT INTO {t} VALUES (5, 'c'), (6, 'c')").await;
}

#[tokio::test]
async fn item_12_a_delete_that_dies_anywhere() {
    for properties in ["", VECTORS, FEED] {
        at_every_request(properties, "DELETE FROM {t} WHERE id IN (1, 3)").await;
    }
}

#[tokio::test]
async fn item_12_an_update_that_dies_anywhere() {
    for properties in ["", VECTORS, FEED] {
        at_every_request(properties, "UPDATE {t} SET s = 'u' WHERE id IN (2, 4)").await;
    }
}

#[tokio::test]
async fn item_12_a_merge_that_dies_anywhere() {
    let merge = "MERGE INTO {t} AS t USING (VALUES (1, 'm'), (4, 'm'), (7, 'm')) AS s(id, s) ON t.id = s.id \
                 WHEN MATCHED AND t.id = 4 THEN DELETE WHEN MATCHED THEN UPDATE SET s = s.s \
                 WHEN NOT MATCHED THEN INSERT (id, s) VALUES (s.id, s.s)";
    for properties in ["", VECTORS, FEED] {
        at_every_request(properties, merge).await;
    }
}
