//! Creating an object from a stream.
//!
//! 1. Read the stream until it ends or [`IN_MEMORY`] bytes are there. If it ended, create the object in one request.
//! 2. Else look whether the object is there: then it is lost already.
//! 3. Upload parts of at least [`IN_MEMORY`] bytes, then complete. A failed stream or part aborts the upload.
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, stream::BoxStream};
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutPayload, path::Path};

use super::{Put, error, storage_error};
use crate::Result;

/// What is held in memory of a stream; cloud stores take no smaller parts than 5 MiB.
const IN_MEMORY: usize = 8 * 1024 * 1024;

pub(super) async fn create(
    store: &Arc<dyn ObjectStore>,
    key: &Path,
    what: &str,
    mut body: BoxStream<'static, Result<Bytes>>,
) -> Result<Put> {
    let (first, more) = next_part(&mut body).await?;
    if !more {
        return error::outcome(what, store.put_opts(key, PutPayload::from(first), PutMode::Create.into()).await);
    }
    match store.head(key).await {
        Ok(_) => return Ok(Put::Lost),
        Err(object_store::Error::NotFound { .. }) => (),
        Err(err) => return Err(storage_error(what, err)),
    }
    let mut upload = store.put_multipart(key).await.map_err(|it| storage_error(what, it))?;
    match parts(upload.as_mut(), what, first, &mut body).await {
        Ok(()) => error::outcome(what, upload.complete().await),
        Err(err) => {
            // The object is not visible; parts that stay behind are the store's to clean.
            let _ = upload.abort().await;
            Err(err)
        }
    }
}

async fn parts(
    upload: &mut dyn MultipartUpload,
    what: &str,
    first: Bytes,
    body: &mut BoxStream<'static, Result<Bytes>>,
) -> Result<()> {
    let mut part = (first, true);
    loop {
        if !part.0.is_empty() {
            upload.put_part(PutPayload::from(part.0)).await.map_err(|it| storage_error(what, it))?;
        }
        if !part.1 {
            return Ok(());
        }
        part = next_part(body).await?;
    }
}

/// The next [`IN_MEMORY`] bytes or a bit more, and whether the stream may have more.
async fn next_part(body: &mut BoxStream<'static, Result<Bytes>>) -> Result<(Bytes, bool)> {
    let mut part = BytesMut::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk?;
        if part.is_empty() && chunk.len() >= IN_MEMORY {
            return Ok((chunk, true));
        }
        part.extend_from_slice(&chunk);
        if part.len() >= IN_MEMORY {
            return Ok((part.freeze(), true));
        }
    }
    Ok((part.freeze(), false))
}
