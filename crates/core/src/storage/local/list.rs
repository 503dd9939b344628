//! Walking folders in the order of keys.
//!
//! A key sorts by its bytes, `/` included, so a folder `a` comes after a file `a.txt` and before `a0`: within one
//! folder, entries sort by name with `/` behind the names of folders. Folders that lie wholly before the offset are not
//! opened, files before it not looked at. A batch ends where the walk enters a folder, so that a caller who stops there
//! has not paid for it.
use std::{
    cmp::Ordering,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
    vec,
};

use object_store::{ListResult, ObjectMeta, Result, path::Path};
use rustix::{
    fs::{self, AtFlags, Dir, FileType},
    io::Errno,
};

use super::{
    error::{DiskError, reading},
    jail::{Jail, open_beneath},
    read,
};

const BATCH: usize = 1_000;
const DEPTH: usize = 128;

pub(super) struct Walk {
    jail: Arc<Jail>,
    prefix: String,
    offset: String,
    /// `None` before the first batch.
    levels: Option<Vec<Level>>,
}

struct Level {
    folder: OwnedFd,
    /// The key of the folder; `""` for the jail.
    key: String,
    entries: vec::IntoIter<Entry>,
}

struct Entry {
    name: String,
    kind: FileType,
}

impl Walk {
    pub(super) fn new(jail: Arc<Jail>, prefix: Option<&Path>, offset: Option<&Path>) -> Self {
        let text = |it: Option<&Path>| it.map_or(String::new(), |it| it.as_ref().to_owned());
        Self { jail, prefix: text(prefix), offset: text(offset), levels: None }
    }

    /// The next objects, with an error for each link; `None` at the end. After any other error there is nothing more.
    pub(super) fn batch(&mut self) -> Option<Vec<Result<ObjectMeta>>> {
        let mut batch = Vec::new();
        match self.fill(&mut batch) {
            Ok(()) if batch.is_empty() => return None,
            Ok(()) => (),
            Err(err) => {
                self.levels = Some(Vec::new());
                batch.push(Err(err));
            }
        }
        Some(batch)
    }

    fn fill(&mut self, batch: &mut Vec<Result<ObjectMeta>>) -> Result<()> {
        let mut levels = match self.levels.take() {
            Some(levels) => levels,
            None => first(&self.jail, &self.prefix, &self.offset)?.into_iter().collect(),
        };
        loop {
            let depth = levels.len();
            let Some(level) = levels.last_mut() else { break };
            if batch.len() >= BATCH {
                break;
            }
            let Some(entry) = level.entries.next() else {
                levels.pop();
                continue;
            };
            let key = child(&level.key, &entry.name);
            match entry.kind {
                FileType::Directory => {
                    if depth >= DEPTH {
                        return Err(DiskError::TooDeep { path: key, limit: DEPTH }.into());
                    }
                    let inner = inner(level, &entry.name, key, &self.offset)?;
                    levels.extend(inner);
                    if !batch.is_empty() {
                        break;
                    }
                }
                // Left out, a linked commit would silently be an older table.
                FileType::Symlink => batch.push(Err(DiskError::Link { link: key }.into())),
                _ => batch.extend(object(level, &entry.name, key)?.map(Ok)),
            }
        }
        self.levels = Some(levels);
        Ok(())
    }
}

/// Which entries of one folder come after the offset, or hold keys that do.
///
/// Asked while the folder is read: what a long log has before the offset is neither kept nor sorted.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    All,
    /// Names after this rest of the offset.
    After(&'a str),
    Nothing,
}

impl<'a> Wanted<'a> {
    fn of(folder: &str, offset: &'a str) -> Self {
        if offset.is_empty() {
            return Self::All;
        }
        let rest = if folder.is_empty() { Some(offset) } else { offset.strip_prefix(folder) };
        match rest {
            Some(rest) if folder.is_empty() => Self::After(rest),
            Some(rest) if rest.starts_with('/') => Self::After(&rest[1..]),
            _ if folder.bytes().chain([b'/']).cmp(offset.bytes()) == Ordering::Greater => Self::All,
            _ => Self::Nothing,
        }
    }

    fn holds(self, name: &str, kind: FileType) -> bool {
        match (self, kind) {
            (Self::All, _) => true,
            (Self::Nothing, _) => false,
            (Self::After(rest), FileType::Directory) => {
                let below = rest.strip_prefix(name).is_some_and(|it| it.starts_with('/'));
                below || name.bytes().chain([b'/']).cmp(rest.bytes()) == Ordering::Greater
            }
            (Self::After(rest), _) => name > rest,
        }
    }
}

/// The level of the prefix; `None` where no such folder is.
fn first(jail: &Jail, prefix: &str, offset: &str) -> Result<Option<Level>> {
    match jail.open_folder(prefix) {
        Ok(folder) => level(folder, prefix.to_owned(), offset).map(Some),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(err) => Err(err),
    }
}

/// The level of a folder inside another; `None` when it is gone meanwhile.
fn inner(parent: &Level, name: &str, key: String, offset: &str) -> Result<Option<Level>> {
    use rustix::fs::OFlags;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match open_beneath(parent.folder.as_fd(), name, flags) {
        Ok(folder) => level(folder, key, offset).map(Some),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(Errno::LOOP) => Err(DiskError::Link { link: key }.into()),
        Err(errno) => Err(reading(&key, errno)),
    }
}

fn level(folder: OwnedFd, key: String, offset: &str) -> Result<Level> {
    let mut entries = entries(&folder, &key, Wanted::of(&key, offset))?;
    entries.sort_unstable_by(in_key_order);
    Ok(Level { folder, key, entries: entries.into_iter() })
}

fn in_key_order(a: &Entry, b: &Entry) -> Ordering {
    // Files are by far the most: whole slices, not byte by byte.
    if a.kind != FileType::Directory && b.kind != FileType::Directory {
        return a.name.cmp(&b.name);
    }
    sorted_name(a).cmp(sorted_name(b))
}

fn sorted_name(entry: &Entry) -> impl Iterator<Item = u8> {
    entry.name.bytes().chain((entry.kind == FileType::Directory).then_some(b'/'))
}

/// Files and folders, and links wherever they sort. Pipes, sockets and devices are no objects; names that no key can spell are left alone.
fn entries(folder: &OwnedFd, key: &str, wanted: Wanted<'_>) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(folder).map_err(|it| reading(key, it))? {
        let entry = match entry {
            Ok(entry) => entry,
            // The folder is gone meanwhile.
            Err(Errno::NOENT) => break,
            Err(errno) => return Err(reading(key, errno)),
        };
        let Ok(name) = entry.file_name().to_str() else { continue };
        if matches!(name, "." | "..") || name.bytes().any(|it| it.is_ascii_control()) {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(_) => continue,
            },
            kind => kind,
        };
        match kind {
            FileType::Symlink => entries.push(Entry { name: name.to_owned(), kind }),
            FileType::RegularFile | FileType::Directory if wanted.holds(name, kind) => {
                entries.push(Entry { name: name.to_owned(), kind });
            }
            _ => (),
        }
    }
    Ok(entries)
}

/// What a listing shows of a file; `None` when it is gone meanwhile.
fn object(level: &Level, name: &str, key: String) -> Result<Option<ObjectMeta>> {
    match fs::statat(&level.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
            let location = Path::parse(&key)?;
            read::meta(location, &stat).map(Some)
        }
        Ok(_) | Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(reading(&key, errno)),
    }
}

/// The objects and folders directly in `prefix`.
pub(super) fn folder(jail: &Jail, prefix: &str) -> Result<ListResult> {
    let mut listed = ListResult { common_prefixes: Vec::new(), objects: Vec::new() };
    let Some(mut level) = first(jail, prefix, "")? else { return Ok(listed) };
    while let Some(entry) = level.entries.next() {
        let key = child(&level.key, &entry.name);
        match entry.kind {
            FileType::Directory => listed.common_prefixes.push(Path::parse(&key)?),
            FileType::Symlink => return Err(DiskError::Link { link: key }.into()),
            _ => listed.objects.extend(object(&level, &entry.name, key)?),
        }
    }
    Ok(listed)
}

fn child(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}
