//! Whether a store honours "create only if absent".
//!
//! 1. Create an object under a fresh name, only if absent: it must succeed.
//! 2. Create it again with other bytes: it must be refused.
//! 3. Read it: it must hold the first bytes.
//! 4. Delete it. The verdict counts more than a probe object that stays behind.
//!
//! Old servers and proxies ignore the condition (`If-None-Match`) and answer success: of two commits both would win.
use std::sync::Arc;

use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload, path::Path};

use super::storage_error;
use crate::{Error, Result, env::Env};

/// Whether commits may rest on a store's conditional create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CreateSupport {
    /// The second writer was refused.
    Honoured,
    /// The store has no such operation, and says so.
    Missing,
    /// The store answers success to both writers. Never commit here.
    Ignored,
}

impl CreateSupport {
    /// `Ok` where commits are safe.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported), with the reason.
    pub fn require(self, store: &dyn ObjectStore) -> Result<()> {
        let problem = match self {
            Self::Honoured => return Ok(()),
            Self::Missing => "cannot create an object only if it is absent: no commit is safe there",
            Self::Ignored => "ignores `create only if absent`: of two commits both would win",
        };
        Err(Error::unsupported(format!("{store} {problem}"))
            .with_hint("use a store that honours If-None-Match, or switch that on; nothing was committed"))
    }
}

/// Asks `store` by writing one object of a fresh name below `prefix`.
///
/// # Errors
/// The store's own, when it does not answer: nothing is known then.
pub async fn probe_create(store: &Arc<dyn ObjectStore>, prefix: &Path, env: &Env) -> Result<CreateSupport> {
    let name = format!(".lakebed-probe-{:032x}", env.ids.uuid());
    let key = if prefix.as_ref().is_empty() { name } else { format!("{prefix}/{name}") };
    let key = Path::parse(&key).map_err(|it| Error::internal(it.to_string()))?;
    let create = |body: &'static [u8]| store.put_opts(&key, PutPayload::from_static(body), PutMode::Create.into());
    match create(b"1").await {
        Ok(_) => (),
        Err(object_store::Error::NotImplemented { .. } | object_store::Error::NotSupported { .. }) => {
            return Ok(CreateSupport::Missing);
        }
        Err(err) => return Err(storage_error(key.as_ref(), err)),
    }
    let second = create(b"2").await;
    let held = match store.get(&key).await {
        Ok(found) => found.bytes().await,
        Err(err) => Err(err),
    };
    if let Err(err) = store.delete(&key).await {
        tracing::warn!(object = %key, %err, "the probe object stays behind");
    }
    let held = held.map_err(|it| storage_error(key.as_ref(), it))?;
    match second {
        Ok(_) => Ok(CreateSupport::Ignored),
        Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
            Ok(if held.as_ref() == b"1" { CreateSupport::Honoured } else { CreateSupport::Ignored })
        }
        Err(err) => Err(storage_error(key.as_ref(), err)),
    }
}
