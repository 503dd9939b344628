//! Reading `_last_checkpoint`.
use lakebed_core::{ErrorKind, Result};

use super::Log;
use crate::{layout, spec::LastCheckpoint};

/// What the hint says; `None` when there is none or it says nothing sensible, which `warnings` then tells.
///
/// # Errors
/// Only when the store does not answer: a hint can be wrong in every way and harms nothing.
pub(crate) async fn read(log: &Log, warnings: &mut Vec<String>) -> Result<Option<LastCheckpoint>> {
    let body = match log.read(layout::LAST_CHECKPOINT).await {
        Ok(Some(body)) => body,
        Ok(None) => return Ok(None),
        Err(err) if err.kind() == ErrorKind::Limit => {
            warnings.push(format!("{err}: ignored"));
            return Ok(None);
        }
        Err(err) => return Err(err),
    };
    match serde_json::from_slice(&body) {
        Ok(hint) => Ok(Some(hint)),
        Err(err) => {
            warnings.push(format!("{} is damaged ({err}): ignored", layout::LAST_CHECKPOINT));
            Ok(None)
        }
    }
}
