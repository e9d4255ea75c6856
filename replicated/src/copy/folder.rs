//! A copy in a folder: the embedded log, which a restart goes on with, also after a kill or a power loss. Only one that is
//! damaged is made anew.

use super::log::{LogCopy, Place, Shelf};
use super::{LocalCopy, Outcomes, StagedCopy};
use crate::trims::Trim;
use prombus_log::image::Image;
use prombus_log::{LogOptions, OpenReport, OsFiles};
use prombus_store::{Answer, Batch, Store, StoreFailed};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that says of which log this is a copy, and where it is.
const STATE_FILE: &str = "COPY";
/// Locked as long as a node uses the folder.
const LOCK_FILE: &str = "LOCK";
/// The file with the node's number.
const NODE_FILE: &str = "NODE";
/// The folders of logs begin so; a number follows.
const PLACE: &str = "log-";
/// The folder of the log in older versions, which did not sync it.
const OLDER_LOG_FOLDER: &str = "log";

/// A copy in a folder.
pub struct FolderCopy {
    copy: LogCopy,
    node: u64,
}

/// Why a copy was made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebuilt {
    /// There was none.
    New,
    /// An older version made it, which did not sync it.
    Older,
    /// Something in it could not be read.
    Damaged,
}

/// Why a copy could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenCopyError {
    /// The folder holds a copy of something else, which may be the only one.
    #[error("{} holds a copy of shared log {found:016x}, this one is {wanted:016x}; choose another folder with copy=FOLDER, or remove this one", .folder.display())]
    AnotherLog {
        /// The folder.
        folder: PathBuf,
        /// The log that it is a copy of.
        found: u64,
        /// The log that was opened.
        wanted: u64,
    },
    /// Another node uses the folder.
    #[error("another node uses the copy in {}", .0.display())]
    InUse(PathBuf),
    /// There is something else in the folder.
    #[error("{} holds files that are no copy of a shared log", .0.display())]
    Foreign(PathBuf),
    /// The disk failed.
    #[error("the copy in {} cannot be opened: {error}", .folder.display())]
    Io {
        /// The folder.
        folder: PathBuf,
        /// What failed.
        error: io::Error,
    },
    /// The log in it could not be opened.
    #[error("the copy in {} cannot be opened: {error}", .folder.display())]
    Log {
        /// The folder.
        folder: PathBuf,
        /// What failed.
        error: prombus_log::OpenError,
    },
}

impl FolderCopy {
    /// Opens the copy of the log of this number, or makes it. It says whether everything has to be applied again.
    pub fn open(folder: &Path, log_id: u64) -> Result<(Self, Option<Rebuilt>), OpenCopyError> {
        let failed = |error| OpenCopyError::Io {
            folder: folder.to_owned(),
            error,
        };
        fs::create_dir_all(folder).map_err(failed)?;
        let lock = lock(folder)?;
        let (found, mut rebuilt) = match read_state(folder, log_id)? {
            Found::Copy(place) => (Some(place), None),
            Found::Nothing => (None, Some(Rebuilt::New)),
            Found::Older => (None, Some(Rebuilt::Older)),
        };
        let node = node_number(folder).map_err(failed)?;
        let shelf = || FolderShelf {
            folder: folder.to_owned(),
            log_id,
            _lock: lock.clone(),
        };
        let mut opened = None;
        if let Some(name) = found {
            opened = Self::open_in(&shelf(), name, shelf());
            if opened.is_none() {
                rebuilt = Some(Rebuilt::Damaged);
            }
        }
        let copy = match opened {
            Some(copy) => copy,
            None => Self::make_in(&shelf(), shelf())?,
        };
        Ok((Self { copy, node }, rebuilt))
    }

    /// The node's number: drawn when the folder was made and kept in it. One process at a time has the folder, so at any
    /// time at most one is this node.
    pub fn node(&self) -> u64 {
        self.node
    }

    /// The copy in a place; `None` where it cannot be trusted.
    fn open_in(shelf: &FolderShelf, name: String, owned: FolderShelf) -> Option<LogCopy> {
        // The folder that the log is in is not made where it is gone.
        let path = shelf.folder.join(&name);
        let files = path.is_dir().then(|| OsFiles::open(&path).ok())??;
        let place = Place {
            name: name.clone(),
            files: Arc::new(files),
        };
        let opened = shelf.open(place, owned);
        let (copy, report) = opened.ok()?;
        // What a crash has torn at the end is applied again.
        shelf.remove_others(&name).ok()?;
        report.damage.is_empty().then_some(copy)
    }

    fn make_in(shelf: &FolderShelf, owned: FolderShelf) -> Result<LogCopy, OpenCopyError> {
        let failed = |error| OpenCopyError::Io {
            folder: shelf.folder.clone(),
            error,
        };
        let place = shelf.fresh().map_err(failed)?;
        let name = place.name.clone();
        let opened = shelf.open(place, owned);
        let (copy, _) = opened.map_err(|error| OpenCopyError::Log {
            folder: shelf.folder.clone(),
            error,
        })?;
        shelf.adopt(&name).map_err(failed)?;
        Ok(copy)
    }
}

impl LocalCopy for FolderCopy {
    fn store(&self) -> &Arc<dyn Store> {
        self.copy.store()
    }

    fn apply(
        &self,
        batches: Vec<Batch>,
        now_ms: u64,
        position: u64,
    ) -> Answer<Outcomes, StoreFailed> {
        self.copy.apply(batches, now_ms, position)
    }

    fn compact(&self, now_ms: u64) -> Answer<(), StoreFailed> {
        self.copy.compact(now_ms)
    }

    fn due_trims(&self, now_ms: u64) -> Answer<Vec<Trim>, StoreFailed> {
        self.copy.due_trims(now_ms)
    }

    fn can_snapshot(&self) -> bool {
        self.copy.can_snapshot()
    }

    fn image(&self) -> Answer<Option<Image>, StoreFailed> {
        self.copy.image()
    }

    fn stage(&self) -> io::Result<Option<Box<dyn StagedCopy>>> {
        self.copy.stage()
    }
}

/// The logs of a copy as folders of a folder, `log-1`, `log-2` …, of which the file `COPY` names the one in use.
struct FolderShelf {
    folder: PathBuf,
    log_id: u64,
    /// Keeps other nodes out of the folder.
    _lock: Arc<fs::File>,
}

impl FolderShelf {
    fn open(
        &self,
        place: Place,
        owned: Self,
    ) -> Result<(LogCopy, OpenReport), prombus_log::OpenError> {
        let url = format!("copy:{}", self.folder.display());
        let options = LogOptions::default();
        LogCopy::open(place, Box::new(owned), self.log_id, options, url)
    }

    /// The folders of logs.
    fn places(&self) -> io::Result<Vec<String>> {
        let mut places = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name().into_string().unwrap_or_default();
            if name == OLDER_LOG_FOLDER || name.starts_with(PLACE) {
                places.push(name);
            }
        }
        Ok(places)
    }

    fn remove_others(&self, kept: &str) -> io::Result<()> {
        for place in self.places()? {
            if place != kept {
                fs::remove_dir_all(self.folder.join(place))?;
            }
        }
        Ok(())
    }
}

impl Shelf for FolderShelf {
    fn fresh(&self) -> io::Result<Place> {
        let taken = self.places()?.into_iter();
        let taken = taken.filter_map(|name| name.strip_prefix(PLACE)?.parse::<u64>().ok());
        let name = format!("{PLACE}{}", taken.max().unwrap_or(0) + 1);
        let files = Arc::new(OsFiles::open(&self.folder.join(&name))?);
        Ok(Place { name, files })
    }

    fn adopt(&self, place: &str) -> io::Result<()> {
        write_state(&self.folder, self.log_id, place)?;
        self.remove_others(place)
    }
}

/// Takes the folder for this node alone.
fn lock(folder: &Path) -> Result<Arc<fs::File>, OpenCopyError> {
    let failed = |error| OpenCopyError::Io {
        folder: folder.to_owned(),
        error,
    };
    let file = fs::File::create(folder.join(LOCK_FILE)).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Arc::new(file)),
        Err(fs::TryLockError::WouldBlock) => Err(OpenCopyError::InUse(folder.to_owned())),
        Err(fs::TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// What a folder holds.
enum Found {
    Nothing,
    /// A copy in this place.
    Copy(String),
    /// What an older version left.
    Older,
}

fn read_state(folder: &Path, wanted: u64) -> Result<Found, OpenCopyError> {
    let text = match fs::read_to_string(folder.join(STATE_FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A crash may have come before the first copy was whole.
            let is_ours = |entry: &fs::DirEntry| {
                let name = entry.file_name().into_string().unwrap_or_default();
                name == LOCK_FILE || name.starts_with(NODE_FILE) || name.starts_with(PLACE)
            };
            let mut others = fs::read_dir(folder)
                .into_iter()
                .flatten()
                .filter(|entry| !entry.as_ref().is_ok_and(is_ours));
            return match others.next() {
                None => Ok(Found::Nothing),
                Some(_) => Err(OpenCopyError::Foreign(folder.to_owned())),
            };
        }
        Err(error) => {
            let folder = folder.to_owned();
            return Err(OpenCopyError::Io { folder, error });
        }
    };
    let mut words = text.split_whitespace();
    let found = words
        .next()
        .and_then(|word| u64::from_str_radix(word, 16).ok());
    match (found, words.next()) {
        (Some(found), _) if found != wanted => Err(OpenCopyError::AnotherLog {
            folder: folder.to_owned(),
            found,
            wanted,
        }),
        (Some(_), Some(place)) if place.starts_with(PLACE) => Ok(Found::Copy(place.to_owned())),
        _ => Ok(Found::Older),
    }
}

fn write_state(folder: &Path, log_id: u64, place: &str) -> io::Result<()> {
    let next = folder.join("COPY.next");
    let mut file = fs::File::create(&next)?;
    writeln!(file, "{log_id:016x} {place}")?;
    file.sync_all()?;
    fs::rename(next, folder.join(STATE_FILE))?;
    fs::File::open(folder)?.sync_all()
}

/// The number in the folder; one is drawn where there is none.
fn node_number(folder: &Path) -> io::Result<u64> {
    let file = folder.join(NODE_FILE);
    let found = fs::read_to_string(&file).ok();
    let found = found.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    if let Some(node) = found {
        return Ok(node);
    }
    let node = RandomState::new().hash_one("node");
    let next = folder.join("NODE.next");
    let mut written = fs::File::create(&next)?;
    writeln!(written, "{node:016x}")?;
    written.sync_all()?;
    fs::rename(next, file)?;
    fs::File::open(folder)?.sync_all()?;
    Ok(node)
}

#[cfg(test)]
mod tests;
