//! Opening and refreshing cost what changed, not how old the table is.
use serde_json::json;

use crate::world::{World, add, names, paths};

#[tokio::test]
async fn an_old_table_with_a_checkpoint_opens_like_a_young_one() {
    let (mut costs, mut listed) = (Vec::new(), Vec::new());
    for age in [10_u64, 100, 1_000] {
        let world = World::new();
        for version in age - 5..=age + 3 {
            world.commit(version, &[add(version)]).await;
        }
        world.checkpoint(age).await;
        for version in (0..age - 5).step_by(7) {
            world.put(&format!("{version:020}.crc"), "{}").await;
        }
        let world = World { store: world.store.restarted() };
        let table = world.table().await;
        assert_eq!(paths(&table.latest().await.unwrap()).await.unwrap(), names(0..=age + 3));
        let (opened, keys) = (world.store.requests(), world.store.listed());
        table.latest().await.unwrap();
        let old = world.store.requests();
        listed.push((keys, world.store.listed() - keys));
        paths(&world.at(age + 1).await.unwrap()).await.unwrap();
        costs.push((opened, old - opened, world.store.requests() - old));
    }
    assert_eq!(costs, [(6, 1, 4); 3]);
    // From the checkpoint on, and the name that ends the listing; from the newest commit on, and that name.
    assert_eq!(listed, [(6, 2); 3], "keys listed by opening and by refreshing");
}

#[tokio::test]
async fn thousands_of_commits_without_a_checkpoint_are_read_once_each() {
    let world = World::with_versions(2_000).await;
    let world = World { store: world.store.restarted() };
    assert_eq!(world.files().await.unwrap().len(), 2_001);
    // The hint that is not there, one listing, and the commits.
    assert_eq!(world.store.requests(), 2_003);
    world.put("_last_checkpoint", json!({"version": 0}).to_string()).await;
    assert_eq!(world.files().await.unwrap().len(), 2_001);
}
