//! Making files visible: all of one or nothing, for good.
//!
//! 1. Make the folder, and sync every folder that got a new one.
//! 2. Write a temporary file in it, and sync the file.
//! 3. Create: link it to its name, which fails when the name is taken; where the file system has no links, rename
//!    without replacing. Overwrite: rename.
//! 4. Sync the folder. Only now is the write acknowledged.
//! 5. Unlink the temporary name.
//!
//! Never an exclusive create under the final name: a kill would leave half a commit for ever. An error before step 3
//! says that nothing happened; one from there on leaves open what happened.
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use object_store::{
    CopyMode, Error as StoreError, MultipartUpload, PutPayload, PutResult, Result, UploadPart, path::Path,
};
use rustix::{
    fs::{self, AtFlags, FileType, Mode, OFlags, RenameFlags},
    io::Errno,
};

use super::{
    blocking,
    error::{DiskError, reading, unsent},
    jail::{Jail, is_link},
    read,
};

/// A temporary file; its name is gone when this is.
#[derive(Debug)]
struct Draft {
    folder: OwnedFd,
    file: OwnedFd,
    temporary: String,
    key: String,
    name: String,
}

pub(super) fn put<'a>(
    jail: &Jail,
    key: &str,
    chunks: impl Iterator<Item = &'a Bytes>,
    mode: CopyMode,
) -> Result<PutResult> {
    let draft = Draft::new(jail, key)?;
    let mut at = 0;
    for chunk in chunks {
        draft.write(chunk, at)?;
        at += chunk.len() as u64;
    }
    draft.make_visible(mode)
}

pub(super) fn copy(jail: &Jail, from: &str, to: &str, mode: CopyMode) -> Result<()> {
    let (source, _) = jail.open_file(from)?;
    let draft = Draft::new(jail, to)?;
    let mut target = std::fs::File::from(draft.file.try_clone().map_err(|source| draft.failed(source))?);
    io::copy(&mut std::fs::File::from(source), &mut target).map_err(|source| draft.failed(source))?;
    draft.make_visible(mode).map(|_| ())
}

/// Deletes files, never what a link points to. One answer a key, in their order.
pub(super) fn delete(jail: &Jail, keys: Vec<Result<Path>>) -> Vec<Result<Path>> {
    let mut last: Option<(String, OwnedFd)> = None;
    let mut delete = |key: Path| {
        let (parent, name) = key.as_ref().rsplit_once('/').unwrap_or(("", key.as_ref()));
        if last.as_ref().is_none_or(|it| it.0 != parent) {
            last = Some((parent.to_owned(), jail.open_folder(parent)?));
        }
        let (_, folder) = last.as_ref().expect("it was opened right above");
        delete_in(folder, name, key.as_ref()).map(|()| key.clone())
    };
    keys.into_iter().map(|key| delete(key?)).collect()
}

fn delete_in(folder: &OwnedFd, name: &str, key: &str) -> Result<()> {
    let stat = fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|it| reading(key, it))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => fs::unlinkat(folder, name, AtFlags::empty()).map_err(|it| reading(key, it)),
        FileType::Directory => Err(reading(key, Errno::NOENT)),
        FileType::Symlink => Err(DiskError::Link { link: key.to_owned() }.into()),
        _ => Err(DiskError::NotRegular { path: key.to_owned() }.into()),
    }
}

impl Draft {
    fn new(jail: &Jail, key: &str) -> Result<Self> {
        let (folder, name) = jail.make_parent(key)?;
        let (file, temporary) = temporary(&folder).map_err(|it| unsent(key, it))?;
        Ok(Self { folder, file, temporary, key: key.to_owned(), name: name.to_owned() })
    }

    fn failed(&self, source: io::Error) -> StoreError {
        DiskError::Unsent { path: self.key.clone(), source }.into()
    }

    fn write(&self, bytes: &[u8], mut at: u64) -> Result<()> {
        let mut left = bytes;
        while !left.is_empty() {
            let written = match rustix::io::pwrite(&self.file, left, at) {
                Ok(0) => return Err(unsent(&self.key, Errno::NOSPC)),
                Ok(written) => written,
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(unsent(&self.key, errno)),
            };
            left = &left[written..];
            at += written as u64;
        }
        Ok(())
    }

    fn make_visible(self, mode: CopyMode) -> Result<PutResult> {
        fs::fsync(&self.file).map_err(|it| unsent(&self.key, it))?;
        let stat = fs::fstat(&self.file).map_err(|it| unsent(&self.key, it))?;
        match mode {
            CopyMode::Create => self.link()?,
            CopyMode::Overwrite => fs::renameat(&self.folder, &self.temporary, &self.folder, &self.name)
                .map_err(|it| if refused(it) { unsent(&self.key, it) } else { self.unknown(it) })?,
        }
        fs::fsync(&self.folder).map_err(|it| self.unknown(it))?;
        Ok(PutResult { e_tag: Some(read::etag(&stat)), version: None })
    }

    fn link(&self) -> Result<()> {
        match fs::linkat(&self.folder, &self.temporary, &self.folder, &self.name, AtFlags::empty()) {
            Ok(()) => Ok(()),
            // A network file system may answer its own second try: the file tells how many names it has.
            Err(Errno::EXIST) if self.has_two_names() => Ok(()),
            Err(errno @ Errno::EXIST) => Err(self.taken(errno)),
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::MLINK) => self.rename(),
            Err(errno) if refused(errno) => Err(unsent(&self.key, errno)),
            Err(_) if self.has_two_names() => Ok(()),
            Err(errno) => Err(self.unknown(errno)),
        }
    }

    fn rename(&self) -> Result<()> {
        let (from, to) = (&self.temporary, &self.name);
        match fs::renameat_with(&self.folder, from, &self.folder, to, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            Err(errno @ Errno::EXIST) => Err(self.taken(errno)),
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Err(StoreError::NotSupported {
                source: "the file system has neither hard links nor renames that keep what is there".into(),
            }),
            Err(errno) if refused(errno) => Err(unsent(&self.key, errno)),
            Err(errno) => Err(self.unknown(errno)),
        }
    }

    fn has_two_names(&self) -> bool {
        fs::fstat(&self.file).is_ok_and(|it| it.st_nlink == 2)
    }

    fn taken(&self, errno: Errno) -> StoreError {
        if is_link(self.folder.as_fd(), &self.name) {
            return DiskError::Link { link: self.key.clone() }.into();
        }
        StoreError::AlreadyExists { path: self.key.clone(), source: io::Error::from(errno).into() }
    }

    fn unknown(&self, errno: Errno) -> StoreError {
        DiskError::Io { path: self.key.clone(), source: errno.into() }.into()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After a rename the name is gone already; a leftover is an orphan like any other.
        let _ = fs::unlinkat(&self.folder, &self.temporary, AtFlags::empty());
    }
}

/// Errors that a disk gives before it changes anything.
fn refused(errno: Errno) -> bool {
    let before = [
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::ROFS,
        Errno::ACCESS,
        Errno::PERM,
        Errno::NOENT,
        Errno::NOTDIR,
        Errno::ISDIR,
        Errno::NAMETOOLONG,
    ];
    before.contains(&errno)
}

/// A file nobody else has, in `folder`. Its name is short: the final one may be as long as names can be.
fn temporary(folder: &OwnedFd) -> rustix::io::Result<(OwnedFd, String)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let name = format!(".lakebed-{}-{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match fs::openat(folder, &name, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => return Ok((file, name)),
            // Left by a process that died, or made on another host of a shared disk.
            Err(Errno::EXIST | Errno::INTR) => (),
            Err(errno) => return Err(errno),
        }
    }
}

/// An upload in parts. Completing it creates the object and never replaces one.
#[derive(Debug)]
pub(super) struct Upload {
    /// `None` once completed or aborted.
    draft: Option<Arc<Draft>>,
    written: u64,
}

impl Upload {
    pub(super) fn begin(jail: &Jail, key: &str) -> Result<Self> {
        Ok(Self { draft: Some(Arc::new(Draft::new(jail, key)?)), written: 0 })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the upload is over, or parts of it are still being written")]
struct NotUploading;

fn not_uploading() -> StoreError {
    super::error::generic(NotUploading)
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let at = self.written;
        self.written += data.content_length() as u64;
        let draft = self.draft.clone();
        Box::pin(async move {
            let draft = draft.ok_or_else(not_uploading)?;
            blocking(move || {
                let mut at = at;
                for chunk in data.iter() {
                    draft.write(chunk, at)?;
                    at += chunk.len() as u64;
                }
                // The disk works while the next part is being made, not all at once when the upload completes.
                fs::fdatasync(&draft.file).map_err(|it| unsent(&draft.key, it))
            })
            .await
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let draft = self.draft.take().and_then(|it| Arc::try_unwrap(it).ok()).ok_or_else(not_uploading)?;
        blocking(move || draft.make_visible(CopyMode::Create)).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.draft = None;
        Ok(())
    }
}
