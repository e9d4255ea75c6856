//! Files that have lost their last name and are not read any more. Closing a large one frees its space in one go: the file
//! system's journal, and a disk that is told of it (`discard`), are then busy for 10 ms and more, for which every fdatasync
//! waits. So the log's freeing thread takes them from here and gives their space back piece by piece.

use super::File;
use prombus_store::LockExt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// So much is freed at a time.
pub(crate) const FREED_BYTES: u64 = 1 << 20;
/// How many files wait at most, and take space meanwhile; others are closed at once.
const MAX_WAITING: usize = 4;

/// The files that wait for the freeing thread. Nothing waits where there is none.
#[derive(Default)]
pub(crate) struct RemovedFiles {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<Arc<dyn File>>,
    is_served: bool,
}

impl RemovedFiles {
    /// From now on there is a freeing thread, until [`Self::stop`].
    pub(crate) fn serve(&self) {
        self.state().is_served = true;
    }

    /// Closes all that waits, and ends the freeing thread.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        state.is_served = false;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.wake.notify_all();
        drop(waiting);
    }

    /// Waits for the next file. `None` if the thread is to end.
    pub(crate) fn next(&self) -> Option<Arc<dyn File>> {
        let waits = |state: &mut State| state.is_served && state.waiting.is_empty();
        let waited = self.wake.wait_while(self.state(), waits);
        waited.unwrap_or_else(PoisonError::into_inner).waiting.pop()
    }

    /// Takes a file, or closes it at once where it is small, too many wait or no one serves them.
    fn put(&self, file: Arc<dyn File>) {
        let is_large = file.bytes().is_ok_and(|bytes| bytes > FREED_BYTES);
        let mut state = self.state();
        if is_large && state.is_served && state.waiting.len() < MAX_WAITING {
            state.waiting.push(file);
            drop(state);
            self.wake.notify_all();
        } else {
            drop(state);
            drop(file);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.guard()
    }
}

/// Held by all handles of a file whose name is gone; with the last of them the file is given to [`RemovedFiles`].
pub(super) struct LastUse {
    file: Option<Arc<dyn File>>,
    removed: Arc<RemovedFiles>,
}

impl LastUse {
    pub(super) fn new(file: Arc<dyn File>, removed: &Arc<RemovedFiles>) -> Arc<Self> {
        Arc::new(Self {
            file: Some(file),
            removed: removed.clone(),
        })
    }
}

impl Drop for LastUse {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            self.removed.put(file);
        }
    }
}

/// Frees a removed file piece by piece and calls `pause` after each; the rest is freed when it is closed, as all of it is
/// where the file has another name or is read by somebody else, such as a backup. `pause` returns whether to go on.
pub(crate) fn free_in_pieces(file: &dyn File, pause: impl Fn() -> bool) -> io::Result<()> {
    loop {
        let bytes = file.bytes()?;
        if bytes <= FREED_BYTES || !file.shrink_removed(bytes - FREED_BYTES)? || !pause() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{BoundedFiles, Files, OsFiles};
    use std::cell::Cell;

    const BYTES: u64 = 5 * FREED_BYTES / 2;

    fn folder() -> (tempfile::TempDir, Arc<RemovedFiles>, BoundedFiles) {
        let root = tempfile::tempdir().unwrap();
        let files = Arc::new(OsFiles::open(root.path()).unwrap());
        let removed = Arc::new(RemovedFiles::default());
        removed.serve();
        let bounded = BoundedFiles::new(files, 8, removed.clone());
        (root, removed, bounded)
    }

    fn waiting(removed: &RemovedFiles) -> usize {
        removed.state().waiting.len()
    }

    fn make(files: &BoundedFiles, name: &str) -> Arc<dyn File> {
        let file = files.create(name).unwrap();
        file.write_at(b"content", BYTES - 7).unwrap();
        file
    }

    #[test]
    fn a_file_is_freed_once_nobody_reads_it() {
        let (_root, removed, files) = folder();
        let made = make(&files, "old");
        let reader = files.open("old").unwrap();
        make(&files, "new");
        files.rename("new", "old").unwrap();
        drop(made);
        assert_eq!(waiting(&removed), 0);
        let mut content = [0; 7];
        assert_eq!(reader.read_at(&mut content, BYTES - 7).unwrap(), 7);
        assert_eq!(&content, b"content");
        drop(reader);
        let file = removed.next().expect("it waits");
        let pauses = Cell::new(0);
        let pause = || {
            pauses.set(pauses.get() + 1);
            true
        };
        free_in_pieces(&*file, pause).unwrap();
        assert_eq!(pauses.get(), 2);
        assert_eq!(file.bytes().unwrap(), FREED_BYTES / 2);
        assert_eq!(files.open("old").unwrap().bytes().unwrap(), BYTES);
    }

    #[test]
    fn one_that_no_one_had_open_is_freed_too_and_small_ones_are_closed() {
        let (_root, removed, files) = folder();
        drop(make(&files, "a"));
        files.remove("a").unwrap();
        assert_eq!(waiting(&removed), 1);
        files.create("b").unwrap().write_at(b"b", 0).unwrap();
        files.remove("b").unwrap();
        assert_eq!(waiting(&removed), 1);
        for at in 0..2 * MAX_WAITING {
            let name = at.to_string();
            drop(make(&files, &name));
            files.remove(&name).unwrap();
        }
        assert_eq!(waiting(&removed), MAX_WAITING);
        removed.stop();
        assert!(removed.next().is_none());
        drop(make(&files, "c"));
        files.remove("c").unwrap();
        assert_eq!(waiting(&removed), 0);
    }

    /// As a backup makes them.
    #[test]
    fn a_file_with_another_name_is_left_as_it_is() {
        let (root, removed, files) = folder();
        drop(make(&files, "a"));
        let link = root.path().join("linked");
        std::fs::hard_link(root.path().join("a"), &link).unwrap();
        files.remove("a").unwrap();
        let file = removed.next().expect("it waits");
        free_in_pieces(&*file, || true).unwrap();
        drop(file);
        let content = std::fs::read(&link).unwrap();
        assert_eq!(content.len() as u64, BYTES);
        assert!(content.ends_with(b"content"));
    }

    #[test]
    fn what_a_backup_reads_is_left_as_it_is() {
        let (root, removed, files) = folder();
        drop(make(&files, "a"));
        let backup = OsFiles::open_read_only(root.path()).unwrap();
        let reader = backup.open("a").unwrap();
        files.remove("a").unwrap();
        let file = removed.next().expect("it waits");
        free_in_pieces(&*file, || true).unwrap();
        drop(file);
        assert_eq!(reader.bytes().unwrap(), BYTES);
        assert_eq!(reader.read_block(BYTES - 7, 7).unwrap(), b"content");
    }

    #[test]
    fn it_stops_when_the_log_is_closed() {
        let (_root, removed, files) = folder();
        drop(make(&files, "a"));
        files.remove("a").unwrap();
        let file = removed.next().expect("it waits");
        free_in_pieces(&*file, || false).unwrap();
        assert_eq!(file.bytes().unwrap(), BYTES - FREED_BYTES);
    }
}
