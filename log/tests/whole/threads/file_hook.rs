//! A disk in memory on which a test decides, operation by operation, what waits and what else happens meanwhile.

use prombus_log::fault::FaultFiles;
use prombus_log::{File, Files};
use std::io;
use std::sync::Arc;

/// Hears of what the log does to its files, each by the name it was created or opened with.
pub(super) trait Hook: Send + Sync + 'static {
    fn before_write(&self, _name: &str, _bytes: usize) {}
    fn before_create(&self, _name: &str) {}
    fn after_rename(&self, _from: &str, _to: &str) {}
}

/// A folder in memory with a hook.
pub(super) struct HookedFiles<H> {
    pub(super) disk: Arc<FaultFiles>,
    pub(super) hook: Arc<H>,
}

struct HookedFile<H> {
    name: String,
    file: Arc<dyn File>,
    hook: Arc<H>,
}

impl<H: Hook> HookedFiles<H> {
    fn file(&self, name: &str, file: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(HookedFile {
            name: name.to_owned(),
            file,
            hook: self.hook.clone(),
        })
    }
}

impl<H: Hook> Files for HookedFiles<H> {
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.file(name, self.disk.open(name)?))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.hook.before_create(name);
        Ok(self.file(name, self.disk.create(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)?;
        self.hook.after_rename(from, to);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.disk.sync_names()
    }

    fn lock(&self) -> io::Result<()> {
        self.disk.lock()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.disk.free_bytes()
    }
}

impl<H: Hook> File for HookedFile<H> {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.file.read_at(buffer, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.hook.before_write(&self.name, bytes.len());
        self.file.write_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        self.file.truncate(bytes)
    }
}
