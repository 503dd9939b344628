//! How a statement that changes rows begins.
use std::sync::Arc;

use datafusion::execution::SessionState;
use lakebed_core::{Result, timeline::Action};
use sqlparser::ast::TableFactor;

use crate::{
    session::{Destination, Output, Session, counted},
    sql::write::Target,
    write::{Done, Driver, Prepared, intent},
};

/// A statement that has its target, its state and its write.
pub(super) struct Started {
    pub(super) to: Destination,
    pub(super) state: Arc<SessionState>,
    pub(super) driver: Driver,
}

/// Finds the target and begins the write; `None` if the job that the session names did this before.
pub(super) async fn start(
    session: &Session,
    target: &TableFactor,
    action: Action,
    operation: &str,
    parameters: impl IntoIterator<Item = (&'static str, String)>,
) -> Result<Option<Started>> {
    let to = session.destination(&Target::of(target)?).await?;
    let state = Arc::new(session.statement_state());
    let context = session.write_context(&to, Arc::clone(&state))?;
    let settings = session.write_settings()?;
    let mut intent = intent(action, operation);
    intent.parameters.extend(parameters.into_iter().map(|(name, value)| (name.to_owned(), value)));
    intent.application = settings.application;
    intent.user_metadata = settings.user_metadata;
    let driver = Driver::begin(&context, intent).await?;
    match driver.applied().await {
        Ok(false) => Ok(Some(Started { to, state, driver })),
        Ok(true) => driver.drop_it().await.map(|_| None),
        Err(err) => driver.conclude(Err(err)).await.map(|_| None),
    }
}

impl Started {
    /// Commits what was prepared; the statement's answer.
    pub(super) async fn end(self, prepared: Result<Prepared>) -> Result<Output> {
        let Done { count, version: _, warnings: _ } = self.driver.conclude(prepared).await?;
        counted(count)
    }
}
