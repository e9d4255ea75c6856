//! A folder in memory that lies like a disk, for crash tests: what was not synced may be lost, torn or kept in part
//! when the power goes, syncs and writes fail on demand, and space runs out.
//!
//! Everything is decided by the seed given to [`FaultFiles::crash`], so that a failing test can be run again.

mod content;
mod file;
mod names;
#[cfg(test)]
mod tests;

use super::{File, Files};
use content::Content;
use file::FaultFile;
use names::Names;
use prombus_store::LockExt;
use prombus_store::conformance::Random;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// A handle on a folder that lies like a disk. Each handle is one process: the lock belongs to it.
pub struct FaultFiles {
    disk: Arc<Disk>,
    handle: u64,
}

impl FaultFiles {
    /// A new folder with nothing in it.
    pub fn new() -> Self {
        Self::of(State::default())
    }

    /// Another handle on the same folder, as another process has it.
    pub fn another_handle(&self) -> Self {
        let mut state = self.disk.state();
        state.handles += 1;
        Self {
            disk: self.disk.clone(),
            handle: state.handles,
        }
    }

    /// A folder of its own with what is here now, all of it synced.
    pub fn copy(&self) -> Self {
        Self::of(State::with(self.disk.state().names.copy()))
    }

    /// The folder as it may look after a power loss; the same seed gives the same look. What was synced is there for
    /// certain. Of the changes to each file since, all are lost, or the first ones are kept, whole or with the last of
    /// them torn, or single sectors of 512 bytes are. Of the changes to names since, the first ones are kept. Every
    /// handle on this folder fails from now on, and no fault is set on the new one.
    pub fn crash(&self, seed: u64) -> Self {
        let names = self.disk.end();
        Self::of(State::with(
            names.after_power_loss(&mut Random::seeded(seed)),
        ))
    }

    /// The folder as the next process finds it when this one is killed: everything written is there, though what was
    /// not synced is still at risk. Every handle on this folder fails from now on, and no fault is set on the new one.
    pub fn process_crash(&self) -> Self {
        Self::of(State::with(self.disk.end()))
    }

    /// Lets the `n`-th coming sync fail, of a file or of names; 1 is the next. As on Linux, the fate of what it should
    /// have made durable is then unknown, and later syncs succeed without changing that.
    pub fn fail_sync_after(&self, n: u64) {
        self.disk.state().faults.sync = Some(n);
    }

    /// Lets the `n`-th coming write fail after a part of its bytes; 1 is the next.
    pub fn fail_write_after(&self, n: u64) {
        self.disk.state().faults.write = Some(n);
    }

    /// Lets the folder hold so many bytes. A write over that writes what fits and fails with
    /// [`io::ErrorKind::StorageFull`].
    pub fn set_space(&self, bytes: u64) {
        self.disk.state().faults.space = Some(bytes);
    }

    /// Carries out `n` more changes (writes, truncations, syncs, changes of names). The next one and every operation
    /// from then on fail, as if the power had gone right there; [`FaultFiles::crash`] shows what is left.
    pub fn stop_after(&self, n: u64) {
        self.disk.state().faults.stop = Some(n);
    }

    /// Takes all faults back that have not happened yet.
    pub fn clear_faults(&self) {
        self.disk.state().faults = Faults::default();
    }

    /// Whether a sync of names failed, so that no change of names since then is safe from a power loss.
    pub fn has_names_in_doubt(&self) -> bool {
        self.disk.state().names.is_in_doubt()
    }

    /// How many syncs were asked for, of files and of names.
    pub fn syncs(&self) -> u64 {
        self.disk.state().syncs
    }

    /// How many writes were asked for.
    pub fn writes(&self) -> u64 {
        self.disk.state().writes
    }

    /// What the file holds.
    pub fn bytes_of(&self, name: &str) -> io::Result<Vec<u8>> {
        let state = self.disk.state();
        let content = state.names.get(name)?;
        Ok(lock(&content).current().to_vec())
    }

    /// Changes a file while it is in use, as a failing disk does. All it then holds counts as synced.
    pub fn overwrite(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let state = self.disk.state();
        let content = state.names.get(name)?;
        lock(&content).overwrite(change);
        Ok(())
    }

    /// The bytes of all files together.
    pub fn total_bytes(&self) -> u64 {
        self.disk.state().names.total_bytes()
    }

    fn of(state: State) -> Self {
        Self {
            disk: Arc::new(Disk(Mutex::new(state))),
            handle: 0,
        }
    }

    fn file(&self, content: SharedContent) -> Arc<dyn File> {
        Arc::new(FaultFile {
            disk: self.disk.clone(),
            content,
        })
    }
}

impl Default for FaultFiles {
    fn default() -> Self {
        Self::new()
    }
}

impl Files for FaultFiles {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.disk.look()?.names.list())
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let content = self.disk.look()?.names.get(name)?;
        Ok(self.file(content))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let content = self.disk.change()?.names.create(name);
        Ok(self.file(content))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.change()?.names.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.change()?.names.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut state = self.disk.change()?;
        if state.next_sync_fails() {
            state.names.fail_sync();
            return Err(input_output_error());
        }
        state.names.sync();
        Ok(())
    }

    fn lock(&self) -> io::Result<()> {
        let mut state = self.disk.look()?;
        match state.locked_by {
            Some(holder) if holder != self.handle => Err(io::ErrorKind::WouldBlock.into()),
            _ => {
                state.locked_by = Some(self.handle);
                Ok(())
            }
        }
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(self.disk.look()?.room())
    }
}

impl Drop for FaultFiles {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.locked_by == Some(self.handle) {
            state.locked_by = None;
        }
    }
}

/// A file's content, shared by its name and those who have it open. Its lock is only taken with the disk's held, so a
/// crash never comes in the middle of an operation.
type SharedContent = Arc<Mutex<Content>>;

struct Disk(Mutex<State>);

#[derive(Default)]
struct State {
    names: Names,
    faults: Faults,
    /// Whether the power is gone: nothing works any more.
    off: bool,
    handles: u64,
    locked_by: Option<u64>,
    syncs: u64,
    writes: u64,
}

/// What is to go wrong. The counts run down to the operation that fails.
#[derive(Default)]
struct Faults {
    sync: Option<u64>,
    write: Option<u64>,
    stop: Option<u64>,
    space: Option<u64>,
}

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    /// The state for an operation that changes nothing.
    fn look(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.state();
        if state.off {
            Err(no_power())
        } else {
            Ok(state)
        }
    }

    /// The state for an operation that changes something.
    fn change(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.look()?;
        match state.faults.stop {
            Some(0) => {
                state.off = true;
                return Err(no_power());
            }
            Some(left) => state.faults.stop = Some(left - 1),
            None => {}
        }
        Ok(state)
    }

    /// Turns the disk off and takes out what it holds.
    fn end(&self) -> Names {
        let mut state = self.state();
        let ended = State {
            off: true,
            ..State::default()
        };
        std::mem::replace(&mut *state, ended).names
    }
}

impl State {
    fn with(names: Names) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }

    fn next_sync_fails(&mut self) -> bool {
        self.syncs += 1;
        count_down(&mut self.faults.sync)
    }

    fn next_write_fails(&mut self) -> bool {
        self.writes += 1;
        count_down(&mut self.faults.write)
    }

    /// How many bytes the files may still grow by.
    fn room(&self) -> u64 {
        let space = self.faults.space.unwrap_or(u64::MAX);
        space.saturating_sub(self.names.total_bytes())
    }
}

/// Whether the operation being counted is the one that fails; it happens once.
fn count_down(left: &mut Option<u64>) -> bool {
    match left {
        Some(0 | 1) => {
            *left = None;
            true
        }
        Some(left) => {
            *left -= 1;
            false
        }
        None => false,
    }
}

fn no_power() -> io::Error {
    io::Error::other("the disk has no power")
}

fn input_output_error() -> io::Error {
    const EIO: i32 = 5;
    io::Error::from_raw_os_error(EIO)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.guard()
}
