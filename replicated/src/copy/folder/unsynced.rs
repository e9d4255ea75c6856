//! Files that are not synced: a copy is not what makes commits durable, and would only wait for the disk.

use prombus_log::{File, Files};
use std::io;
use std::sync::Arc;

/// Another folder, of which nothing is synced.
pub(super) struct UnsyncedFiles(Arc<dyn Files>);

struct UnsyncedFile(Arc<dyn File>);

impl UnsyncedFiles {
    pub(super) fn new(files: Arc<dyn Files>) -> Self {
        Self(files)
    }
}

impl Files for UnsyncedFiles {
    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(UnsyncedFile(self.0.open(name)?)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(UnsyncedFile(self.0.create(name)?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self) -> io::Result<()> {
        self.0.lock()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.0.free_bytes()
    }
}

impl File for UnsyncedFile {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.0.read_at(buffer, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.0.write_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn bytes(&self) -> io::Result<u64> {
        self.0.bytes()
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        self.0.truncate(bytes)
    }

    fn preallocate(&self, from: u64, to: u64) -> io::Result<()> {
        self.0.preallocate(from, to)
    }
}
