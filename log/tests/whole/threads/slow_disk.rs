//! A disk on which every operation takes its time, now more and now less.

use prombus_log::fault::FaultFiles;
use prombus_log::{File, Files};
use prombus_store::conformance::Random;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const LONGEST: usize = 12;

/// A folder in memory that lets other threads go first.
pub(super) struct DawdlingFiles {
    files: Arc<FaultFiles>,
    pace: Arc<Pace>,
}

struct DawdlingFile {
    file: Arc<dyn File>,
    pace: Arc<Pace>,
}

#[derive(Default)]
struct Pace(AtomicU64);

impl Pace {
    fn dawdle(&self) {
        let count = self.0.fetch_add(1, Ordering::Relaxed);
        for _ in 0..Random::seeded(count).index(LONGEST) {
            std::thread::yield_now();
        }
    }
}

impl DawdlingFiles {
    pub(super) fn new(files: Arc<FaultFiles>) -> Self {
        Self {
            files,
            pace: Arc::default(),
        }
    }

    fn file(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(DawdlingFile {
            file,
            pace: self.pace.clone(),
        })
    }
}

impl Files for DawdlingFiles {
    fn list(&self) -> io::Result<Vec<String>> {
        self.files.list()
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.pace.dawdle();
        Ok(self.file(self.files.open(name)?))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.pace.dawdle();
        Ok(self.file(self.files.create(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.pace.dawdle();
        self.files.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.pace.dawdle();
        self.files.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.pace.dawdle();
        self.files.sync_names()
    }

    fn lock(&self) -> io::Result<()> {
        self.files.lock()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.files.free_bytes()
    }
}

impl File for DawdlingFile {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.pace.dawdle();
        self.file.read_at(buffer, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.pace.dawdle();
        self.file.write_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.pace.dawdle();
        self.file.sync()
    }

    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        self.file.truncate(bytes)
    }
}
