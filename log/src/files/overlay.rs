//! A folder whose changes stay in memory, over one that is only read. A log on a disk that takes no writes is opened on
//! this, and so is one that is checked: recovery does all that it does at a start, and nothing of it reaches the disk.

use super::{File, Files};
use prombus_store::LockExt;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// What changes may take in memory together, among them indexes and segments that are written again without their bad
/// bytes; beyond it they fail.
const MAX_OVERLAY_BYTES: usize = 2 << 30;

/// Another folder with changes that are kept in memory.
pub struct OverlayFiles {
    files: Arc<dyn Files>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Names that differ from the folder's: what they name, `None` where they are gone.
    names: BTreeMap<String, Option<Arc<OverlayFile>>>,
    /// Bytes that changes take.
    bytes: usize,
}

/// A file of the folder, or none, with what was written over it.
struct OverlayFile {
    base: Option<Arc<dyn File>>,
    changes: Mutex<Changes>,
    state: Arc<Mutex<State>>,
}

struct Changes {
    /// What the file's length is.
    bytes: u64,
    /// So much of the base still shows; what was cut off does not come back.
    base_bytes: u64,
    /// Written bytes by offset, without overlaps.
    pieces: BTreeMap<u64, Vec<u8>>,
}

impl OverlayFiles {
    /// The folder as it is, for the holder of its lock.
    pub fn new(files: Arc<dyn Files>) -> Self {
        Self {
            files,
            state: Arc::default(),
        }
    }

    /// The names of files that were written anew.
    pub(crate) fn rewritten(&self) -> Vec<String> {
        let state = lock(&self.state);
        let is_new = |file: &Arc<OverlayFile>| file.base.is_none();
        let names = state.names.iter();
        let new = names.filter(|(_, file)| file.as_ref().is_some_and(is_new));
        new.map(|(name, _)| name.clone()).collect()
    }

    fn add(&self, name: &str, base: Option<Arc<dyn File>>) -> io::Result<Arc<OverlayFile>> {
        let bytes = base.as_ref().map_or(Ok(0), |base| base.bytes())?;
        let file = Arc::new(OverlayFile {
            base,
            changes: Mutex::new(Changes {
                bytes,
                base_bytes: bytes,
                pieces: BTreeMap::new(),
            }),
            state: self.state.clone(),
        });
        let mut state = lock(&self.state);
        state.names.insert(name.to_owned(), Some(file.clone()));
        Ok(file)
    }

    fn find(&self, name: &str) -> io::Result<Arc<OverlayFile>> {
        let known = lock(&self.state).names.get(name).cloned();
        match known {
            Some(Some(file)) => Ok(file),
            Some(None) => Err(io::ErrorKind::NotFound.into()),
            None => self.add(name, Some(self.files.open(name)?)),
        }
    }
}

impl Files for OverlayFiles {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = self.files.list()?;
        let state = lock(&self.state);
        names.retain(|name| !state.names.contains_key(name));
        let changed = state.names.iter().filter(|(_, file)| file.is_some());
        names.extend(changed.map(|(name, _)| name.clone()));
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.find(name)?)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.add(name, None)?)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let file = self.find(from)?;
        let mut state = lock(&self.state);
        state.names.insert(from.to_owned(), None);
        state.names.insert(to.to_owned(), Some(file));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.find(name)?;
        lock(&self.state).names.insert(name.to_owned(), None);
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self) -> io::Result<()> {
        self.files.lock()
    }

    /// Changes take memory, not the disk.
    fn free_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}

impl File for OverlayFile {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let changes = lock(&self.changes);
        let end = changes.bytes.min(at.saturating_add(buffer.len() as u64));
        let length = end.saturating_sub(at) as usize;
        let buffer = &mut buffer[..length];
        buffer.fill(0);
        let shown = changes.base_bytes.saturating_sub(at).min(length as u64) as usize;
        if let Some(base) = &self.base {
            base.read_at(&mut buffer[..shown], at)?;
        }
        for (&from, piece) in changes.pieces.range(..end) {
            let to = from + piece.len() as u64;
            if to > at {
                let (start, stop) = (from.max(at), to.min(end));
                let target = &mut buffer[(start - at) as usize..(stop - at) as usize];
                target.copy_from_slice(&piece[(start - from) as usize..(stop - from) as usize]);
            }
        }
        Ok(length)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        // Recovery writes what is not proven over itself, which is nothing to keep.
        let mut there = vec![0; bytes.len()];
        if self.read_at(&mut there, at)? == bytes.len() && there == bytes {
            return Ok(());
        }
        let mut state = lock(&self.state);
        if state.bytes + bytes.len() > MAX_OVERLAY_BYTES {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.bytes += bytes.len();
        drop(state);
        lock(&self.changes).write(bytes, at);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(lock(&self.changes).bytes)
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        let mut changes = lock(&self.changes);
        changes.base_bytes = changes.base_bytes.min(bytes);
        changes.cut(bytes, u64::MAX);
        changes.bytes = bytes;
        Ok(())
    }
}

impl Changes {
    fn write(&mut self, bytes: &[u8], at: u64) {
        let end = at + bytes.len() as u64;
        self.cut(at, end);
        self.pieces.insert(at, bytes.to_vec());
        self.bytes = self.bytes.max(end);
    }

    /// Forgets what was written from `from` to `to`.
    fn cut(&mut self, from: u64, to: u64) {
        let touched: Vec<u64> = self
            .pieces
            .range(..to)
            .filter(|(start, piece)| *start + piece.len() as u64 > from)
            .map(|(start, _)| *start)
            .collect();
        for start in touched {
            let Some(piece) = self.pieces.remove(&start) else {
                continue;
            };
            let end = start + piece.len() as u64;
            if start < from {
                let kept = piece[..(from - start) as usize].to_vec();
                self.pieces.insert(start, kept);
            }
            if end > to {
                let kept = piece[(to - start) as usize..].to_vec();
                self.pieces.insert(to, kept);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.guard()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::fault::FaultFiles;
    use proptest::prelude::*;

    proptest! {
        /// The same changes give the same content as on a folder that takes them, and the folder below stays as it is.
        #[test]
        fn changes_show_and_the_folder_stays(
            before: Vec<u8>,
            steps in prop::collection::vec((any::<bool>(), 0..300u64, prop::collection::vec(any::<u8>(), 0..80)), 0..20),
            read_from in 0..400u64, read_bytes in 0..400usize,
        ) {
            let disk = Arc::new(FaultFiles::new());
            disk.create("one").unwrap().write_at(&before, 0).unwrap();
            let model = disk.copy();
            let overlay = OverlayFiles::new(disk.clone());
            for (cut, at, bytes) in steps {
                for files in [&model as &dyn Files, &overlay] {
                    let file = files.open("one").unwrap();
                    if cut {
                        file.truncate(at).unwrap();
                    } else if !bytes.is_empty() {
                        file.write_at(&bytes, at).unwrap();
                    }
                }
                let [expected, found] = [&model as &dyn Files, &overlay].map(|files| {
                    let file = files.open("one").unwrap();
                    let mut buffer = vec![7; read_bytes];
                    let read = file.read_at(&mut buffer, read_from).unwrap();
                    buffer.truncate(read);
                    (file.bytes().unwrap(), buffer)
                });
                prop_assert_eq!(expected, found);
            }
            prop_assert_eq!(disk.bytes_of("one").unwrap(), before);
        }
    }

    #[test]
    fn names_change_in_memory_only() {
        let disk = Arc::new(FaultFiles::new());
        for name in ["a", "b", "c"] {
            disk.create(name)
                .unwrap()
                .write_at(name.as_bytes(), 0)
                .unwrap();
        }
        let overlay = OverlayFiles::new(disk.clone());
        overlay.rename("a", "b").unwrap();
        overlay.remove("c").unwrap();
        overlay.create("d").unwrap();
        let mut names = overlay.list().unwrap();
        names.sort();
        assert_eq!(names, ["b", "d"]);
        let mut read = [0];
        overlay.open("b").unwrap().read_at(&mut read, 0).unwrap();
        assert_eq!(&read, b"a");
        assert!(overlay.open("c").is_err());
        assert_eq!(disk.list().unwrap(), ["a", "b", "c"]);
        assert_eq!(disk.bytes_of("b").unwrap(), b"b");
    }
}
