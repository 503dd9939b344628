//! What a commit makes due. The commit stands whatever happens here.
use super::{Maintenance, run};
use crate::{
    Error, Result,
    commit::{Committed, Publisher},
    env::Env,
    table::Table,
};

/// Carries out what the table's own properties make due after a commit; what went wrong, as sentences.
pub async fn after(table: &dyn Table, publisher: &dyn Publisher, env: &Env, committed: &Committed) -> Vec<String> {
    let due = match table.due(committed).await {
        Ok(due) => due,
        Err(err) => return vec![warned(committed, "upkeep", &err)],
    };
    let mut warnings = Vec::new();
    for action in due {
        if let Err(err) = carry_out(table, publisher, env, &action).await {
            warnings.push(warned(committed, name_of(&action), &err));
        }
    }
    warnings
}

async fn carry_out(table: &dyn Table, publisher: &dyn Publisher, env: &Env, action: &Maintenance) -> Result<()> {
    let plan = table.plan(action).await?;
    run(table, publisher, env, plan).await?.stopped.map_or(Ok(()), Err)
}

fn name_of(action: &Maintenance) -> &'static str {
    match action {
        Maintenance::Checkpoint => "the checkpoint",
        Maintenance::Expire(_) => "forgetting old versions",
        _ => "upkeep",
    }
}

fn warned(committed: &Committed, what: &str, err: &Error) -> String {
    let version = &committed.version.id;
    tracing::warn!(%version, %err, "the commit stands, {what} after it failed");
    format!("version {version} is committed; {what} after it failed: {err}")
}
