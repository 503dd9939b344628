//! The bytes of one file on their way to storage.
//!
//! A small file is created in one request when it is whole. A large one is uploaded in parts while it is written. Its
//! name is one that nobody else makes: an answer that is lost, or says that the name is taken, is settled by a look at
//! the object's size.
use bytes::{Bytes, BytesMut};
use datafusion::common::runtime::SpawnedTask;
use futures::{StreamExt, stream};
use lakebed_core::{
    Error, ErrorKind, Result,
    path::FilePath,
    storage::{Put, Storage},
};
use tokio::sync::mpsc;

/// What is held back before an upload begins.
const WHOLE: usize = 8 << 20;
/// Parts that wait for the store.
const QUEUE: usize = 2;
const TRIES: usize = 3;

/// A file that is being written.
#[derive(Debug)]
pub(super) struct Sink {
    storage: Storage,
    path: FilePath,
    bytes: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    Held(Vec<Bytes>),
    Uploading { parts: mpsc::Sender<Bytes>, upload: SpawnedTask<Result<Put>> },
}

impl Sink {
    pub(super) fn new(storage: Storage, path: FilePath) -> Self {
        Self { storage, path, bytes: 0, state: State::Held(Vec::new()) }
    }

    /// Bytes taken so far that are still in memory at most.
    pub(super) fn held(&self) -> usize {
        match &self.state {
            State::Held(parts) => parts.iter().map(Bytes::len).sum(),
            State::Uploading { .. } => 0,
        }
    }

    /// Takes more bytes of the file; waits while the store is slower than the writer.
    pub(super) async fn push(&mut self, more: Bytes) -> Result<()> {
        self.bytes += more.len() as u64;
        match &mut self.state {
            State::Held(parts) => {
                parts.push(more);
                if self.held() > WHOLE {
                    self.begin().await?;
                }
                Ok(())
            }
            State::Uploading { .. } => self.send(more).await,
        }
    }

    /// Ends the file: it is in the store when this returns. Its size.
    pub(super) async fn finish(mut self) -> Result<u64> {
        let put = match std::mem::replace(&mut self.state, State::Held(Vec::new())) {
            State::Held(parts) => return self.create(joined(parts)).await,
            State::Uploading { parts, upload } => {
                drop(parts);
                joined_task(upload).await?
            }
        };
        match put {
            Put::Won => Ok(self.bytes),
            Put::Lost | Put::Unknown if self.is_there().await? => Ok(self.bytes),
            Put::Lost | Put::Unknown => Err(self.untaken()),
        }
    }

    async fn begin(&mut self) -> Result<()> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let body = stream::unfold(receiver, |mut it| async { it.recv().await.map(|part| (Ok(part), it)) }).boxed();
        let (storage, path) = (self.storage.clone(), self.path.as_str().to_owned());
        let upload = SpawnedTask::spawn(async move { storage.create_stream(&path, body).await });
        let held = std::mem::replace(&mut self.state, State::Uploading { parts: sender, upload });
        if let State::Held(parts) = held {
            for part in parts {
                self.send(part).await?;
            }
        }
        Ok(())
    }

    async fn send(&mut self, part: Bytes) -> Result<()> {
        let State::Uploading { parts, .. } = &self.state else { return Err(Error::internal("no upload")) };
        if parts.send(part).await.is_ok() {
            return Ok(());
        }
        // Nobody takes parts any more: the upload has failed, and says why.
        match std::mem::replace(&mut self.state, State::Held(Vec::new())) {
            State::Uploading { upload, .. } => {
                let _ = joined_task(upload).await?;
                Err(self.untaken())
            }
            State::Held(_) => Err(Error::internal("no upload")),
        }
    }

    async fn create(&self, body: Bytes) -> Result<u64> {
        for _ in 0..TRIES {
            match self.storage.create(self.path.as_str(), body.clone()).await? {
                Put::Won => return Ok(self.bytes),
                Put::Lost | Put::Unknown if self.is_there().await? => return Ok(self.bytes),
                Put::Lost | Put::Unknown => (),
            }
        }
        Err(self.untaken())
    }

    async fn is_there(&self) -> Result<bool> {
        Ok(self.storage.head(&self.path).await?.is_some_and(|it| it.bytes == self.bytes))
    }

    fn untaken(&self) -> Error {
        Error::new(ErrorKind::Unavailable, format!("storage did not take {}", self.path))
    }
}

async fn joined_task(upload: SpawnedTask<Result<Put>>) -> Result<Put> {
    upload.join().await.map_err(|it| Error::internal(format!("an upload ended early: {it}")))?
}

fn joined(mut parts: Vec<Bytes>) -> Bytes {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let mut whole = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
    parts.iter().for_each(|it| whole.extend_from_slice(it));
    whole.freeze()
}
