//! Opening files beneath a folder, never through a link.
//!
//! Linux resolves the whole path in one call (`openat2` with `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS`), so nothing can
//! be swapped between a check and its use. Where that call is missing, the path is opened folder by folder, each
//! without following a link.
use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path as FsPath, PathBuf},
};

use object_store::Result;
use rustix::{
    fs::{self, AtFlags, FileType, Mode, OFlags, Stat},
    io::Errno,
};

use super::error::{DiskError, reading, unsent};

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Never waits, whatever stands there: a pipe without a writer opens at once, and is refused then.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);

/// A folder by its path. It may not exist yet, and may be replaced at any time: it is opened anew for each call.
#[derive(Debug)]
pub(super) struct Jail {
    path: PathBuf,
}

impl Jail {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &FsPath {
        &self.path
    }

    /// A regular file, open for reading, and what the disk says of it.
    pub(super) fn open_file(&self, key: &str) -> Result<(OwnedFd, Stat)> {
        let file = self.open(key, READ)?;
        let stat = fs::fstat(&file).map_err(|it| reading(key, it))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok((file, stat)),
            FileType::Directory => Err(reading(key, Errno::NOENT)),
            _ => Err(DiskError::NotRegular { path: key.to_owned() }.into()),
        }
    }

    /// A folder; the jail itself is `""`.
    pub(super) fn open_folder(&self, key: &str) -> Result<OwnedFd> {
        self.open(key, FOLDER)
    }

    fn open(&self, key: &str, flags: OFlags) -> Result<OwnedFd> {
        let opened = self.folder().and_then(|folder| open_beneath(folder.as_fd(), key, flags));
        opened.map_err(|errno| self.describe(key, errno))
    }

    /// The error of a path that did not open: links are named.
    pub(super) fn describe(&self, key: &str, errno: Errno) -> object_store::Error {
        match (errno, self.folder()) {
            (Errno::LOOP, Ok(folder)) => {
                let link = first_link(folder.as_fd(), key).unwrap_or_else(|| key.to_owned());
                DiskError::Link { link }.into()
            }
            _ => reading(key, errno),
        }
    }

    fn folder(&self) -> rustix::io::Result<OwnedFd> {
        fs::open(&self.path, FOLDER, Mode::empty())
    }

    /// The folder a new file goes to, made durable with all folders that had to be made for it, and the file's name.
    pub(super) fn make_parent<'a>(&self, key: &'a str) -> Result<(OwnedFd, &'a str)> {
        let (parent, name) = key.rsplit_once('/').unwrap_or(("", key));
        match self.open_folder(parent) {
            Ok(folder) => return Ok((folder, name)),
            Err(object_store::Error::NotFound { .. }) => (),
            Err(err) => return Err(err),
        }
        make_folders(&self.path).map_err(|source| DiskError::Unsent { path: key.to_owned(), source })?;
        let mut folder = self.open_folder("")?;
        for step in parent.split('/').filter(|it| !it.is_empty()) {
            folder = self.make_folder(&folder, step, key)?;
        }
        Ok((folder, name))
    }

    fn make_folder(&self, parent: &OwnedFd, name: &str, key: &str) -> Result<OwnedFd> {
        match fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => fs::fsync(parent).map_err(|it| unsent(key, it))?,
            Err(Errno::EXIST) => (),
            Err(errno) => return Err(unsent(key, errno)),
        }
        open_beneath(parent.as_fd(), name, FOLDER).map_err(|errno| match errno {
            Errno::LOOP => self.describe(key, errno),
            _ => unsent(key, errno),
        })
    }
}

/// Makes the jail's own folder; what lies above it is the operator's, links included.
fn make_folders(path: &FsPath) -> io::Result<()> {
    let mut missing = Vec::new();
    let mut there = path;
    while !there.exists() {
        missing.push(there);
        let Some(parent) = there.parent() else { break };
        there = if parent.as_os_str().is_empty() { FsPath::new(".") } else { parent };
    }
    for folder in missing.into_iter().rev() {
        match std::fs::create_dir(folder) {
            Err(err) if err.kind() != io::ErrorKind::AlreadyExists => return Err(err),
            _ => (),
        }
        let parent = folder.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(FsPath::new("."));
        std::fs::File::open(parent)?.sync_all()?;
    }
    Ok(())
}

/// Opens `key` below `folder`; a link anywhere in it is `ELOOP`.
pub(super) fn open_beneath(folder: BorrowedFd<'_>, key: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    #[cfg(target_os = "linux")]
    if let Some(opened) = resolve_beneath(folder, key, flags) {
        return opened;
    }
    open_by_steps(folder, key, flags)
}

/// `None` where the kernel, or a sandbox around us, lacks the call.
#[cfg(target_os = "linux")]
fn resolve_beneath(folder: BorrowedFd<'_>, key: &str, flags: OFlags) -> Option<rustix::io::Result<OwnedFd>> {
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::fs::ResolveFlags;
    static MISSING: AtomicBool = AtomicBool::new(false);
    if MISSING.load(Ordering::Relaxed) {
        return None;
    }
    let path = if key.is_empty() { "." } else { key };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // `EAGAIN` says that a rename came in between; it may do so again.
    for _ in 0..64 {
        match fs::openat2(folder, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => (),
            Err(Errno::NOSYS) => {
                MISSING.store(true, Ordering::Relaxed);
                return None;
            }
            // A sandbox may deny the call itself; then the steps below say what really holds.
            Err(Errno::PERM) => return None,
            opened => return Some(opened),
        }
    }
    None
}

pub(super) fn open_by_steps(folder: BorrowedFd<'_>, key: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let mut steps = key.split('/').filter(|it| !it.is_empty()).peekable();
    let mut at: Option<OwnedFd> = None;
    while let Some(step) = steps.next() {
        if step == "." || step == ".." {
            return Err(Errno::XDEV);
        }
        let parent = at.as_ref().map_or(folder, AsFd::as_fd);
        let wanted = if steps.peek().is_some() { FOLDER } else { flags };
        at = Some(open_step(parent, step, wanted)?);
    }
    match at {
        Some(opened) => Ok(opened),
        None => fs::openat(folder, ".", flags, Mode::empty()),
    }
}

/// Opens one name. A link to a folder answers "not a folder", which is told from a file by a second look.
fn open_step(parent: BorrowedFd<'_>, name: &str, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let opened = fs::openat(parent, name, flags | OFlags::NOFOLLOW, Mode::empty());
    if matches!(opened, Err(Errno::NOTDIR)) && is_link(parent, name) {
        return Err(Errno::LOOP);
    }
    opened
}

pub(super) fn is_link(folder: BorrowedFd<'_>, name: &str) -> bool {
    fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Symlink)
}

/// The first part of `key` that is a link.
fn first_link(folder: BorrowedFd<'_>, key: &str) -> Option<String> {
    let ends = key.match_indices('/').map(|(at, _)| at).chain([key.len()]);
    // The parts before are no links, so the disk follows none on the way.
    ends.map(|end| &key[..end]).find(|it| is_link(folder, it)).map(str::to_owned)
}
