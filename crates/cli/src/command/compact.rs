//! `compact`: fewer, larger files with the same rows. The engine's own `OPTIMIZE` does it.
use std::sync::Arc;

use futures::TryStreamExt as _;
use lakebed::config::parse_bytes;
use lakebed_core::Error;
use lakebed_engine::{
    error::of_datafusion,
    session::{Output, Session},
};

use crate::{
    args::writing::Compact,
    door::Door,
    failure::{Failure, Verdict},
    render::Envelope,
};

pub(crate) async fn run(door: &Door, args: &Compact) -> Result<Verdict, Failure> {
    let opened = door.bare_table(&args.table).await?;
    if !args.dry_run {
        door.lake.changer(&opened)?;
    }
    let (format, location) = (opened.table.format(), opened.table.storage().location());
    let mut session = door.lake.session()?;
    session.know(Arc::clone(&opened.table));
    if let Some(text) = &args.target_size {
        let bytes = parse_bytes(text).filter(|it| *it > 0).ok_or_else(|| no_size(text))?;
        one(&session, &format!("SET lakebed.optimize.target_bytes = {bytes}")).await?;
    }
    let filter = args.filter.as_ref().map(|it| format!(" WHERE {it}")).unwrap_or_default();
    let dry_run = if args.dry_run { " DRY RUN" } else { "" };
    let sql = format!("OPTIMIZE {format}.`{}`{filter}{dry_run}", location.replace('`', "``"));
    let busy = door.busy("compacting");
    let output = one(&session, &sql).await?;
    drop(busy);
    let schema = if args.dry_run { "lakebed.compact-plan/1" } else { "lakebed.compact/1" };
    let rows = output.rows.map_err(of_datafusion);
    door.rows(&output.schema, rows, Some(&Envelope::new(schema, location))).await?;
    if args.dry_run {
        door.note("nothing was changed");
    }
    Ok(Verdict::Yes)
}

/// Runs a statement that may hold a text of the user's, which must not make it two.
async fn one(session: &Session, sql: &str) -> Result<Output, Failure> {
    let statements = session.parse(sql).map_err(|it| it.with_subject("--where"))?;
    match statements.as_slice() {
        [statement] => Ok(session.run(statement).await?),
        _ => Err(Error::invalid("--where: one condition is wanted, and nothing behind it")
            .with_hint("write it as in SQL: --where \"day >= DATE '2026-11-01'\"")
            .into()),
    }
}

fn no_size(text: &str) -> Error {
    Error::invalid(format!("--target-size: `{}` is no size", text.escape_debug())).with_hint("write 256MiB, or 1GiB")
}
