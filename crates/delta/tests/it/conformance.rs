//! Tables written by other engines, read through the reference reader: one test a case.
use std::sync::Arc;

use lakebed_core::{Result, change::ChangeSpan, format::TableFormat, table::Snapshot};
use lakebed_delta::Delta;
use lakebed_testkit::{
    corpus::{self, Case},
    corpus_tests, reference,
    rows::Rows,
};

use crate::world::{as_of, location, open};

async fn read(case: &Case) -> Result<Rows> {
    let storage = case.storage()?;
    assert!(Delta.detect(&storage).await?, "{} is a Delta table", case.name);
    let table = Delta.open(location(storage)).await?;
    match &case.spec.cdf {
        Some(range) => {
            let span = ChangeSpan { first: as_of(range.start), last: as_of(range.end) };
            let feed = table.change_feed(&span).await?;
            reference::read_changes(&Delta, table.storage(), feed).await
        }
        None => reference::read_table(&Delta, table.as_ref(), &case.as_of()).await,
    }
}

async fn run(case: Case) {
    let actual = read(&case).await;
    corpus::check(&case, &actual);
    if case.spec.txn.is_empty() && case.spec.domain.is_empty() {
        return;
    }
    let table = open(case.storage().unwrap()).await;
    let snapshot = table.latest().await.unwrap();
    for (application, version) in &case.spec.txn {
        assert_eq!(snapshot.transaction(application), Some(*version), "{application}");
    }
    for (domain, configuration) in &case.spec.domain {
        assert_eq!(snapshot.domain(domain), Some(configuration.as_str()), "{domain}");
    }
    let facts = Arc::clone(&snapshot).facts();
    assert!(!facts.is_empty());
}

corpus_tests! { delta, run }
