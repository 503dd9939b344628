//! What a commit makes due. The commit stands whatever happens here.
use lakebed_core::{
    Error, Result,
    commit::Committed,
    maintain::{self, Maintenance},
};

use super::WriteContext;

/// Carries out what the table's own properties make due after a commit; what went wrong, as sentences.
pub(super) async fn after(context: &WriteContext, committed: &Committed) -> Vec<String> {
    let due = match context.table.due(committed).await {
        Ok(due) => due,
        Err(err) => return vec![warned(committed, "upkeep", &err)],
    };
    let mut warnings = Vec::new();
    for action in due {
        if let Err(err) = carry_out(context, &action).await {
            warnings.push(warned(committed, name_of(&action), &err));
        }
    }
    warnings
}

async fn carry_out(context: &WriteContext, action: &Maintenance) -> Result<()> {
    let WriteContext { table, publisher, env, .. } = context;
    let plan = table.plan(action).await?;
    let applied = maintain::run(table.as_ref(), publisher.as_ref(), env, plan).await?;
    applied.stopped.map_or(Ok(()), Err)
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
