//! A folder that counts the changes of its names, so that a caller that opens several files knows whether they belong
//! together.

use super::{File, Files};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Another folder, whose changes of names are counted.
pub struct TrackedFiles {
    files: Arc<dyn Files>,
    begun: AtomicU64,
    ended: AtomicU64,
}

impl TrackedFiles {
    /// A folder that nothing was changed in yet.
    pub fn new(files: Arc<dyn Files>) -> Self {
        Self {
            files,
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        }
    }

    /// How many changes of names there were; `None` while one is under way.
    pub(crate) fn changes(&self) -> Option<u64> {
        let ended = self.ended.load(Ordering::SeqCst);
        (self.begun.load(Ordering::SeqCst) == ended).then_some(ended)
    }

    fn change<T>(&self, change: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let changed = change();
        self.ended.fetch_add(1, Ordering::SeqCst);
        changed
    }
}

impl Files for TrackedFiles {
    fn list(&self) -> io::Result<Vec<String>> {
        self.files.list()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.files.open(name)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.change(|| self.files.create(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.change(|| self.files.rename(from, to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.change(|| self.files.remove(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.files.sync_names()
    }

    fn lock(&self) -> io::Result<()> {
        self.files.lock()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.files.free_bytes()
    }
}
