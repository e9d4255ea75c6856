//! A folder that can be closed to changes. When a log is opened anew underneath a running store, whatever the failed
//! one still has under way must not reach the disk any more, or two logs would write to it at once.

use super::{File, Files};
use prombus_store::RwLockExt;
use std::io;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// Another folder, which takes no changes once [`Self::close`] was called. Reading goes on.
pub struct FencedFiles {
    files: Arc<dyn Files>,
    fence: Arc<Fence>,
}

/// Whether changes are refused. A change holds the lock to read, so that none is under way when closing returns.
#[derive(Default)]
struct Fence(RwLock<bool>);

struct FencedFile {
    file: Arc<dyn File>,
    fence: Arc<Fence>,
}

impl FencedFiles {
    /// A folder that takes changes until it is closed.
    pub fn new(files: Arc<dyn Files>) -> Self {
        Self {
            files,
            fence: Arc::default(),
        }
    }

    /// Waits for the changes that are under way and refuses all further ones, also through files that are open.
    pub fn close(&self) {
        let closed = self.fence.0.write();
        *closed.unwrap_or_else(PoisonError::into_inner) = true;
    }

    fn fenced(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        let fence = self.fence.clone();
        Arc::new(FencedFile { file, fence })
    }
}

impl Fence {
    /// Lets a change happen for as long as this is held.
    fn pass(&self) -> io::Result<RwLockReadGuard<'_, bool>> {
        let is_closed = self.0.read_guard();
        if *is_closed {
            let cause = "the log was opened anew; this one may not write any more";
            return Err(io::Error::other(cause));
        }
        Ok(is_closed)
    }
}

impl Files for FencedFiles {
    fn list(&self) -> io::Result<Vec<String>> {
        self.files.list()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.files.open(name).map(|file| self.fenced(file))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let _passed = self.fence.pass()?;
        self.files.create(name).map(|file| self.fenced(file))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let _passed = self.fence.pass()?;
        self.files.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let _passed = self.fence.pass()?;
        self.files.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        let _passed = self.fence.pass()?;
        self.files.sync_names()
    }

    fn lock(&self) -> io::Result<()> {
        self.files.lock()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.files.free_bytes()
    }
}

impl File for FencedFile {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.file.read_at(buffer, at)
    }

    fn read_block(&self, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
        self.file.read_block(at, bytes)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let _passed = self.fence.pass()?;
        self.file.write_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        let _passed = self.fence.pass()?;
        self.file.sync()
    }

    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        let _passed = self.fence.pass()?;
        self.file.truncate(bytes)
    }

    fn preallocate(&self, from: u64, to: u64) -> io::Result<()> {
        let _passed = self.fence.pass()?;
        self.file.preallocate(from, to)
    }

    fn shrink_removed(&self, bytes: u64) -> io::Result<bool> {
        let _passed = self.fence.pass()?;
        self.file.shrink_removed(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::fault::FaultFiles;

    #[test]
    fn nothing_changes_behind_a_closed_fence() {
        let disk = Arc::new(FaultFiles::new());
        let files = FencedFiles::new(disk.clone());
        let file = files.create("one").expect("a file");
        file.write_at(b"before", 0).expect("it is written");
        files.close();
        assert!(file.write_at(b"behind", 0).is_err());
        assert!(file.sync().is_err() && file.truncate(0).is_err());
        assert!(file.preallocate(6, 9).is_err());
        assert!(files.create("two").is_err() && files.remove("one").is_err());
        assert!(files.rename("one", "two").is_err() && files.sync_names().is_err());
        let mut read = [0; 6];
        assert_eq!(file.read_at(&mut read, 0).expect("it is read"), 6);
        assert_eq!(&read, b"before");
        assert_eq!(disk.list().expect("names"), ["one"]);
    }
}
