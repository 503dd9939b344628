use object_store::ObjectStoreExt;

use super::*;

async fn create(store: &FaultyStore, key: &str, body: &'static str) -> Result<PutResult> {
    store.put_opts(&Path::from(key), PutPayload::from_static(body.as_bytes()), PutMode::Create.into()).await
}

async fn read(store: &FaultyStore, key: &str) -> Option<String> {
    let body = store.restarted().get(&Path::from(key)).await.ok()?.bytes().await.unwrap();
    Some(String::from_utf8(body.to_vec()).unwrap())
}

async fn check_create(fault: Fault, answer: &str, landed: bool) {
    let store = FaultyStore::new(Seed(1)).rule(Op::Create, "log/", fault.clone(), Times::First(1));
    let said = match create(&store, "log/1", "a").await {
        Ok(_) => "won",
        Err(Error::AlreadyExists { .. }) => "exists",
        Err(Error::PermissionDenied { .. }) => "denied",
        Err(_) => "no answer",
    };
    assert_eq!((said, read(&store, "log/1").await.is_some()), (answer, landed), "{fault:?}");
    assert!(create(&store, "data/1", "a").await.is_ok(), "other keys are not touched by {fault:?}");
}

#[tokio::test]
async fn each_fault_of_a_create_says_and_does_its_own() {
    check_create(Fault::FailBefore, "no answer", false).await;
    check_create(Fault::FailAfter, "no answer", true).await;
    check_create(Fault::LoseAnswer, "no answer", true).await;
    check_create(Fault::LoseRequest, "no answer", false).await;
    check_create(Fault::LoseAnswerAndRetry, "exists", true).await;
    check_create(Fault::Forbid, "denied", false).await;
    check_create(Fault::Full, "no answer", false).await;
    check_create(Fault::Delay(Duration::from_secs(1)), "won", true).await;
}

#[tokio::test]
async fn after_the_crash_everything_fails_and_the_bytes_stay() {
    let store = FaultyStore::new(Seed(1));
    store.crash_after(1);
    assert!(create(&store, "a", "1").await.is_ok());
    assert!(!store.crashed());
    assert!(create(&store, "b", "2").await.is_err());
    assert!(store.crashed());
    assert!(store.get(&Path::from("a")).await.is_err());
    assert_eq!((read(&store, "a").await.as_deref(), read(&store, "b").await), (Some("1"), None));
}

#[tokio::test]
async fn a_process_dies_before_or_after_a_call() {
    for (fault, landed) in [(Fault::CrashBefore, None), (Fault::CrashAfter, Some("2"))] {
        let store = FaultyStore::new(Seed(1)).keeping("b").rule(None, "", fault.clone(), Times::Nth(2));
        assert!(create(&store, "a", "1").await.is_ok());
        assert!(create(&store, "b", "2").await.is_err());
        assert!(store.crashed() && create(&store, "c", "3").await.is_err(), "{fault:?}");
        assert_eq!((read(&store, "b").await.as_deref(), read(&store, "c").await), (landed, None), "{fault:?}");
        let kept: Vec<(String, Bytes)> = landed.map(|it| ("b".to_owned(), it.into())).into_iter().collect();
        assert_eq!(store.kept(), kept);
    }
}

#[tokio::test]
async fn a_stale_list_lacks_the_newest() {
    let store = FaultyStore::new(Seed(1)).rule(Op::List, "", Fault::StaleList(1), Times::First(1));
    for key in ["t/1", "t/2", "t/3"] {
        create(&store, key, "x").await.unwrap();
    }
    let names = async || {
        let found: Vec<ObjectMeta> = store.list(Some(&Path::from("t"))).try_collect().await.unwrap();
        found.into_iter().map(|it| it.location.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["t/1", "t/2"]);
    assert_eq!(names().await, ["t/1", "t/2", "t/3"]);
}

#[tokio::test]
async fn bodies_come_short_or_flipped() {
    let store = FaultyStore::new(Seed(3)).rule(Op::Get, "", Fault::ShortBody(2), Times::Nth(1)).rule(
        Op::Get,
        "",
        Fault::BitFlip,
        Times::Nth(1),
    );
    create(&store, "a", "hello").await.unwrap();
    let key = Path::from("a");
    assert_eq!(store.get(&key).await.unwrap().bytes().await.unwrap(), "hel");
    let flipped = store.get(&key).await.unwrap().bytes().await.unwrap();
    let bits: u32 = flipped.iter().zip(b"hello").map(|(one, other)| (one ^ other).count_ones()).sum();
    assert_eq!(bits, 1);
    assert_eq!(store.get(&key).await.unwrap().bytes().await.unwrap(), "hello");
}

#[tokio::test]
async fn the_log_tells_requests_and_waves() {
    let store =
        FaultyStore::new(Seed(1)).timed(Arc::new(crate::env::SteppingClock::default()), Duration::from_millis(5));
    futures::future::join_all(["a", "b", "c"].map(|key| create(&store, key, "x"))).await;
    assert_eq!((store.requests(), waves(&store.log())), (3, 1));
    let _ = store.get(&Path::from("a")).await;
    assert_eq!((store.requests(), waves(&store.log()), store.count(Op::Create)), (4, 2, 3));
}

#[tokio::test]
async fn without_conditions_the_last_create_wins() {
    let store = FaultyStore::new(Seed(1));
    store.ignore_conditions();
    create(&store, "a", "1").await.unwrap();
    create(&store, "a", "2").await.unwrap();
    assert_eq!(read(&store, "a").await.as_deref(), Some("2"));
}
