//! A copy in a folder: the embedded log, which a restart goes on with. Nothing of it is synced while the node runs,
//! because the shared log has everything; so a copy that was not closed properly is thrown away and made anew.

mod unsynced;

use super::{LocalCopy, Outcomes};
use prombus_log::{FileStore, LogOptions, OsFiles};
use prombus_store::{Answer, Batch, ManualClock, Store, StoreFailed, Wrapper};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use unsynced::UnsyncedFiles;

/// The file that says of which log this is a copy, and whether it was closed.
const STATE_FILE: &str = "COPY";
/// Locked as long as a node uses the folder.
const LOCK_FILE: &str = "LOCK";
/// The file with the node's number.
const NODE_FILE: &str = "NODE";
/// The folder of the log.
const LOG_FOLDER: &str = "log";

/// A copy in a folder.
pub struct FolderCopy {
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
    node: u64,
}

/// Why a copy was made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebuilt {
    /// There was none.
    New,
    /// The node was killed, or its machine lost power.
    NotClosed,
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
        let log_folder = folder.join(LOG_FOLDER);
        let mut rebuilt = match read_state(folder, log_id)? {
            Found::Closed => None,
            Found::Nothing => Some(Rebuilt::New),
            Found::NotClosed => Some(Rebuilt::NotClosed),
        };
        write_state(folder, log_id, false).map_err(failed)?;
        let node = node_number(folder).map_err(failed)?;
        let mut opened = None;
        if rebuilt.is_none() {
            match Self::open_log(folder, &log_folder, log_id, lock.clone()) {
                Ok((copy, true)) => opened = Some(copy),
                Ok((_, false)) | Err(_) => rebuilt = Some(Rebuilt::Damaged),
            }
        }
        let copy = match opened {
            Some(copy) => copy,
            None => {
                match fs::remove_dir_all(&log_folder) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(failed(error));
                    }
                    _ => {}
                }
                Self::open_log(folder, &log_folder, log_id, lock)?.0
            }
        };
        Ok((Self { node, ..copy }, rebuilt))
    }

    /// The node's number: drawn when the folder was made and kept in it. One process at a time has the folder, so at any
    /// time at most one is this node.
    pub fn node(&self) -> u64 {
        self.node
    }

    fn open_log(
        folder: &Path,
        log_folder: &Path,
        log_id: u64,
        lock: Arc<fs::File>,
    ) -> Result<(Self, bool), OpenCopyError> {
        let clock = Arc::new(ManualClock::at(0));
        let failed = |error| OpenCopyError::Log {
            folder: folder.to_owned(),
            error,
        };
        let files = OsFiles::open(log_folder).map_err(|error| failed(error.into()))?;
        let options = LogOptions {
            clock: clock.clone(),
            log_id: Some(log_id),
            // Retention and compaction happen at marks in the shared log, on all nodes alike.
            maintain_interval_ms: u64::MAX,
            ..LogOptions::default()
        };
        let url = format!("copy:{}", folder.display());
        let files = Arc::new(UnsyncedFiles::new(Arc::new(files)));
        let (store, report) = FileStore::on_files(files, options, url).map_err(failed)?;
        let is_sound = report.damage.is_empty() && report.cut_tail.is_none();
        let store = ClosedProperly {
            store,
            folder: folder.to_owned(),
            log_id,
            _lock: lock,
        };
        let copy = Self {
            store: Arc::new(store),
            clock,
            node: 0,
        };
        Ok((copy, is_sound))
    }
}

impl LocalCopy for FolderCopy {
    fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    fn apply(&self, batches: Vec<Batch>, now_ms: u64) -> Answer<Outcomes, StoreFailed> {
        self.clock.set(now_ms);
        let store = self.store.clone();
        Box::pin(async move {
            let mut outcomes = Vec::with_capacity(batches.len());
            for batch in batches {
                match store.commit(batch).await {
                    Err(prombus_store::CommitError::StoreFailed(error)) => return Err(error),
                    outcome => outcomes.push(outcome),
                }
            }
            Ok(outcomes)
        })
    }

    fn maintain(&self, now_ms: u64) -> Answer<(), StoreFailed> {
        self.clock.set(now_ms);
        let maintained = self.store.maintain();
        Box::pin(async move {
            maintained.await.map_err(|error| StoreFailed {
                cause: error.to_string().into(),
            })
        })
    }
}

/// The store of a copy: when it is closed, its files are synced and the folder says so.
struct ClosedProperly {
    store: FileStore,
    folder: PathBuf,
    log_id: u64,
    /// Keeps other nodes out of the folder.
    _lock: Arc<fs::File>,
}

impl Wrapper for ClosedProperly {
    fn inner(&self) -> &dyn Store {
        &self.store
    }

    fn close(&self) -> Answer<(), prombus_store::CommitError> {
        let closed = Store::close(&self.store);
        let (folder, log_id) = (self.folder.clone(), self.log_id);
        Box::pin(async move {
            closed.await?;
            let marked = tokio::task::spawn_blocking(move || {
                sync_files(&folder.join(LOG_FOLDER))?;
                write_state(&folder, log_id, true)
            });
            let cause = match marked.await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            let cause = format!("the copy could not be closed: {cause}").into();
            Err(StoreFailed { cause }.into())
        })
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
    Closed,
    NotClosed,
}

fn read_state(folder: &Path, wanted: u64) -> Result<Found, OpenCopyError> {
    let text = match fs::read_to_string(folder.join(STATE_FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let is_lock = |entry: &fs::DirEntry| entry.file_name() == LOCK_FILE;
            let mut others = fs::read_dir(folder)
                .into_iter()
                .flatten()
                .filter(|entry| !entry.as_ref().is_ok_and(is_lock));
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
        (Some(_), Some("closed")) => Ok(Found::Closed),
        // A file that was cut by a power loss is of a copy that was not closed.
        _ => Ok(Found::NotClosed),
    }
}

fn write_state(folder: &Path, log_id: u64, is_closed: bool) -> io::Result<()> {
    let word = if is_closed { "closed" } else { "open" };
    let next = folder.join("COPY.next");
    let mut file = fs::File::create(&next)?;
    writeln!(file, "{log_id:016x} {word}")?;
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

fn sync_files(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            fs::File::open(path)?.sync_all()?;
        }
    }
    fs::File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests;
