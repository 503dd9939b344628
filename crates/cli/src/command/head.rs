//! `head`: the first rows of a table, in the order in which its files lie.
use std::sync::Arc;

use futures::StreamExt as _;
use lakebed_core::{Error, version::VersionId};
use lakebed_engine::error::of_datafusion;

use crate::{
    args::Head,
    door::Door,
    failure::{Failure, Verdict},
    render::Envelope,
};

pub(crate) async fn run(door: &Door, args: &Head) -> Result<Verdict, Failure> {
    let opened = door.table(&args.table).await?;
    let version = door.version(&opened).await?.version;
    let (format, location) = (opened.table.format(), opened.table.storage().location());
    let mut session = door.lake.session()?;
    session.know(Arc::clone(&opened.table));
    let sql = format!(
        "SELECT * FROM {format}.`{}` VERSION AS OF {} LIMIT {}",
        location.replace('`', "``"),
        literal(&version.id),
        args.rows
    );
    let statements = session.parse(&sql)?;
    let statement = statements.first().ok_or_else(|| Error::internal("the statement of `head` is gone"))?;
    let output = session.run(statement).await?;
    let envelope = Envelope::new("lakebed.head/1", location);
    let rows = output.rows.map(|it| it.map_err(of_datafusion));
    door.rows(&output.schema, rows, Some(&envelope)).await?;
    Ok(Verdict::Yes)
}

/// A version in SQL: digits stand for themselves, anything else is a text.
fn literal(id: &VersionId) -> String {
    if id.as_str().bytes().all(|it| it.is_ascii_digit()) {
        return id.as_str().to_owned();
    }
    format!("'{}'", id.as_str().replace('\'', "''"))
}
