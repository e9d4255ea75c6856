//! A folder that is not believed any more once a sync of its names has failed: a later one that succeeds says nothing
//! about the changes that came before, so a file made since then could be gone after a crash.

use super::{File, Files};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Another folder, in which every sync of names fails after the first that did.
pub(crate) struct StrictFiles {
    files: Arc<dyn Files>,
    sync_failed: AtomicBool,
}

impl StrictFiles {
    pub(crate) fn new(files: Arc<dyn Files>) -> Self {
        Self {
            files,
            sync_failed: AtomicBool::new(false),
        }
    }
}

impl Files for StrictFiles {
    fn list(&self) -> io::Result<Vec<String>> {
        self.files.list()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.files.open(name)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.files.create(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        if self.sync_failed.load(Ordering::Acquire) {
            let cause = "an earlier sync of the folder failed; open the log anew";
            return Err(io::Error::other(cause));
        }
        let outcome = self.files.sync_names();
        if outcome.is_err() {
            self.sync_failed.store(true, Ordering::Release);
        }
        outcome
    }

    fn lock(&self) -> io::Result<()> {
        self.files.lock()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.files.free_bytes()
    }
}
