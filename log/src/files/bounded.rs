//! A folder of which a bounded number of files is open at a time. A handle opens its file when it is used and may be
//! closed again while it is idle, so that the number of segments is not limited by the number of descriptors.
//!
//! What the seam promises still holds: before a name is removed or given to another file, the handles that read the old
//! file open it and keep it open until they are dropped. A file with unsynced writes is not closed either, because the
//! error of a later write-back is certain to be reported only to a descriptor that was open meanwhile.

use super::removed::{LastUse, RemovedFiles};
use super::{File, Files};
use prombus_store::LockExt;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError, Weak};

/// Another folder, with a limit on the descriptors of idle files.
pub(crate) struct BoundedFiles {
    open: Arc<OpenFiles>,
    /// The handles of each name. Held while a name changes its file.
    handles: Mutex<HashMap<String, Vec<Weak<Handle>>>>,
    /// Where files go whose name is gone.
    removed: Arc<RemovedFiles>,
}

/// The handles whose file is open, in the order in which the clock hand passes them.
struct OpenFiles {
    files: Arc<dyn Files>,
    limit: usize,
    ring: Mutex<VecDeque<Weak<Handle>>>,
}

struct Handle {
    me: Weak<Handle>,
    open: Arc<OpenFiles>,
    /// Set by every use, cleared when the clock hand passes.
    was_used: AtomicBool,
    state: Mutex<HandleState>,
    /// Writes begun, and how many of them a successful sync has covered.
    writes: AtomicU64,
    synced_writes: AtomicU64,
}

struct HandleState {
    name: String,
    file: Option<Arc<dyn File>>,
    /// The name is gone or belongs to another file now, so the file could not be opened again.
    is_detached: bool,
    /// Shared with the other handles of a file whose name is gone.
    last_use: Option<Arc<LastUse>>,
}

impl BoundedFiles {
    /// Keeps at most `limit` idle files open.
    pub(crate) fn new(files: Arc<dyn Files>, limit: usize, removed: Arc<RemovedFiles>) -> Self {
        let ring = Mutex::default();
        Self {
            open: Arc::new(OpenFiles { files, limit, ring }),
            handles: Mutex::default(),
            removed,
        }
    }

    /// The file of a name that is about to go.
    fn last_use(&self, name: &str, handles: &[Arc<Handle>]) -> Option<Arc<LastUse>> {
        let open = handles
            .iter()
            .find_map(|handle| handle.state().file.clone());
        let file = open.or_else(|| self.open.open_file(&*self.open.files, name).ok())?;
        Some(LastUse::new(file, &self.removed))
    }

    fn handles(&self) -> MutexGuard<'_, HashMap<String, Vec<Weak<Handle>>>> {
        self.handles.guard()
    }

    /// Adds a handle and lets it open its file. The names are not locked meanwhile, since making a file may take long;
    /// the handle's own lock is what a change of its name waits for.
    fn add_handle(
        &self,
        name: &str,
        open: impl FnOnce(&dyn Files) -> io::Result<Arc<dyn File>>,
    ) -> io::Result<Arc<dyn File>> {
        let handle = Arc::new_cyclic(|me| Handle {
            me: me.clone(),
            open: self.open.clone(),
            was_used: AtomicBool::new(true),
            state: Mutex::new(HandleState {
                name: name.to_owned(),
                file: None,
                is_detached: false,
                last_use: None,
            }),
            writes: AtomicU64::new(0),
            synced_writes: AtomicU64::new(0),
        });
        let mut state = handle.state();
        {
            let mut handles = self.handles();
            let of_name = handles.entry(name.to_owned()).or_default();
            of_name.retain(|other| other.strong_count() > 0);
            of_name.push(Arc::downgrade(&handle));
        }
        state.file = Some(open(&*self.open.files)?);
        drop(state);
        self.open.admit(&handle);
        Ok(handle)
    }
}

impl Files for BoundedFiles {
    fn list(&self) -> io::Result<Vec<String>> {
        self.open.files.list()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.add_handle(name, |files| self.open.open_file(files, name))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.add_handle(name, |files| {
            self.open.retry_with_room(|| files.create(name))
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut handles = self.handles();
        let replaced = live(&handles, to);
        detach_all(&replaced)?;
        let last_use = self.last_use(to, &replaced);
        let moved = live(&handles, from);
        let mut states: Vec<MutexGuard<'_, HandleState>> =
            moved.iter().map(|handle| handle.state()).collect();
        if let Err(error) = self.open.files.rename(from, to) {
            drop(states);
            replaced.iter().for_each(|handle| handle.attach());
            return Err(error);
        }
        for state in &mut states {
            to.clone_into(&mut state.name);
        }
        keep_until_dropped(&replaced, last_use);
        handles.remove(from);
        handles.insert(to.to_owned(), moved.iter().map(Arc::downgrade).collect());
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut handles = self.handles();
        let removed = live(&handles, name);
        detach_all(&removed)?;
        let last_use = self.last_use(name, &removed);
        if let Err(error) = self.open.files.remove(name) {
            removed.iter().for_each(|handle| handle.attach());
            return Err(error);
        }
        handles.remove(name);
        keep_until_dropped(&removed, last_use);
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        self.open.files.sync_names()
    }

    fn lock(&self) -> io::Result<()> {
        self.open.files.lock()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.open.files.free_bytes()
    }
}

fn live(handles: &HashMap<String, Vec<Weak<Handle>>>, name: &str) -> Vec<Arc<Handle>> {
    let of_name = handles.get(name).map(Vec::as_slice).unwrap_or_default();
    of_name.iter().filter_map(Weak::upgrade).collect()
}

fn detach_all(handles: &[Arc<Handle>]) -> io::Result<()> {
    for (at, handle) in handles.iter().enumerate() {
        if let Err(error) = handle.detach() {
            handles[..at].iter().for_each(|handle| handle.attach());
            return Err(error);
        }
    }
    Ok(())
}

/// The name of these handles' file is gone; the last of them lets go of it.
fn keep_until_dropped(handles: &[Arc<Handle>], last_use: Option<Arc<LastUse>>) {
    for handle in handles {
        handle.state().last_use.clone_from(&last_use);
    }
}

impl OpenFiles {
    fn open_file(&self, files: &dyn Files, name: &str) -> io::Result<Arc<dyn File>> {
        self.retry_with_room(|| files.open(name))
    }

    /// Where the process has no descriptor left, idle files are closed and it is tried once more.
    fn retry_with_room<T>(&self, open: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match open() {
            Err(error) if is_out_of_descriptors(&error) => {
                let mut ring = self.ring();
                self.close_idle(&mut ring, 0);
                drop(ring);
                open()
            }
            outcome => outcome,
        }
    }

    fn ring(&self) -> MutexGuard<'_, VecDeque<Weak<Handle>>> {
        self.ring.guard()
    }

    /// Adds a handle that was just opened, and closes idle ones beyond the limit.
    fn admit(&self, handle: &Arc<Handle>) {
        let mut ring = self.ring();
        ring.push_back(Arc::downgrade(handle));
        self.close_idle(&mut ring, self.limit);
    }

    /// Closes files until at most `limit` are open: a second chance for each that was used since the hand passed. Files
    /// that are detached or have unsynced writes stay open.
    fn close_idle(&self, ring: &mut VecDeque<Weak<Handle>>, limit: usize) {
        for _ in 0..2 * ring.len() {
            if ring.len() <= limit {
                return;
            }
            let Some(weak) = ring.pop_front() else { return };
            let Some(handle) = weak.upgrade() else {
                continue;
            };
            let mut state = match handle.state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    ring.push_back(weak);
                    continue;
                }
            };
            if state.is_detached {
                continue;
            }
            if handle.has_unsynced_writes() || handle.was_used.swap(false, Ordering::Relaxed) {
                ring.push_back(weak);
                continue;
            }
            state.file = None;
        }
    }
}

#[cfg(target_os = "linux")]
fn is_out_of_descriptors(error: &io::Error) -> bool {
    let errno = rustix::io::Errno::from_io_error(error);
    matches!(
        errno,
        Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE)
    )
}

#[cfg(not(target_os = "linux"))]
fn is_out_of_descriptors(_: &io::Error) -> bool {
    false
}

impl Handle {
    fn state(&self) -> MutexGuard<'_, HandleState> {
        self.state.guard()
    }

    fn has_unsynced_writes(&self) -> bool {
        self.writes.load(Ordering::Acquire) != self.synced_writes.load(Ordering::Acquire)
    }

    /// The open file.
    fn file(&self) -> io::Result<Arc<dyn File>> {
        self.was_used.store(true, Ordering::Relaxed);
        let mut state = self.state();
        if let Some(file) = &state.file {
            return Ok(file.clone());
        }
        let file = self.open_again(&mut state)?;
        drop(state);
        if let Some(me) = self.me.upgrade() {
            self.open.admit(&me);
        }
        Ok(file)
    }

    fn open_again(&self, state: &mut HandleState) -> io::Result<Arc<dyn File>> {
        let file = self.open.open_file(&*self.open.files, &state.name)?;
        state.file = Some(file.clone());
        Ok(file)
    }

    /// The file, from now on held open until it is synced.
    fn file_to_write(&self) -> io::Result<Arc<dyn File>> {
        self.writes.fetch_add(1, Ordering::AcqRel);
        self.file()
    }

    /// Opens the file if it is closed, and keeps it open: its name is about to go.
    fn detach(&self) -> io::Result<()> {
        let mut state = self.state();
        if state.file.is_none() {
            self.open_again(&mut state)?;
        }
        state.is_detached = true;
        Ok(())
    }

    /// Takes [`Self::detach`] back: the name stays.
    fn attach(&self) {
        self.state().is_detached = false;
        if let Some(me) = self.me.upgrade() {
            self.open.admit(&me);
        }
    }
}

impl File for Handle {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.file()?.read_at(buffer, at)
    }

    fn read_block(&self, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
        self.file()?.read_block(at, bytes)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.file_to_write()?.write_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        let writes = self.writes.load(Ordering::Acquire);
        self.file()?.sync()?;
        self.synced_writes.fetch_max(writes, Ordering::AcqRel);
        Ok(())
    }

    fn bytes(&self) -> io::Result<u64> {
        self.file()?.bytes()
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        self.file_to_write()?.truncate(bytes)
    }

    fn preallocate(&self, from: u64, to: u64) -> io::Result<()> {
        self.file_to_write()?.preallocate(from, to)
    }
}

#[cfg(test)]
mod tests;
