//! A folder over another one that is never changed: what is written, renamed or removed here happens in memory only.
//! Checking a log opens it on such a folder, so that the check does exactly what a start does.

use super::{File, Files};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a check may rebuild in memory: indexes, and segments without their bad bytes.
pub(crate) const MAX_OVERLAY_BYTES: u64 = 2 << 30;

/// Another folder, and what would be different in it.
pub(crate) struct OverlayFiles {
    below: Arc<dyn Files>,
    /// Names that are not as in the folder below; `None` for those that are gone.
    changed: Mutex<BTreeMap<String, Option<Arc<OverlayFile>>>>,
    used_bytes: Arc<Mutex<u64>>,
}

impl OverlayFiles {
    pub(crate) fn new(below: Arc<dyn Files>) -> Self {
        Self {
            below,
            changed: Mutex::default(),
            used_bytes: Arc::default(),
        }
    }

    /// The names of files with content that differs from the folder below.
    pub(crate) fn rewritten(&self) -> Vec<String> {
        let changed = self.changed();
        let is_here = |file: &Arc<OverlayFile>| matches!(*lock(&file.content), Content::Here(_));
        let here = changed
            .iter()
            .filter(|(_, file)| file.as_ref().is_some_and(is_here));
        here.map(|(name, _)| name.clone()).collect()
    }

    fn changed(&self) -> MutexGuard<'_, BTreeMap<String, Option<Arc<OverlayFile>>>> {
        lock(&self.changed)
    }

    fn find(&self, name: &str) -> io::Result<Arc<OverlayFile>> {
        if let Some(changed) = self.changed().get(name) {
            return changed
                .clone()
                .ok_or_else(|| io::ErrorKind::NotFound.into());
        }
        let file = self.below.open(name)?;
        let bytes = file.bytes()?;
        Ok(self.file(Content::Below { file, bytes }))
    }

    fn file(&self, content: Content) -> Arc<OverlayFile> {
        Arc::new(OverlayFile {
            content: Mutex::new(content),
            used_bytes: self.used_bytes.clone(),
        })
    }
}

impl Files for OverlayFiles {
    fn list(&self) -> io::Result<Vec<String>> {
        let changed = self.changed();
        let mut names = self.below.list()?;
        names.retain(|name| !changed.contains_key(name));
        let here = changed.iter().filter(|(_, file)| file.is_some());
        names.extend(here.map(|(name, _)| name.clone()));
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = self.find(name)?;
        // A write through this handle has to be seen by the next one.
        self.changed().insert(name.to_owned(), Some(file.clone()));
        Ok(file)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let file = self.file(Content::Here(Vec::new()));
        self.changed().insert(name.to_owned(), Some(file.clone()));
        Ok(file)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let file = self.find(from)?;
        let mut changed = self.changed();
        changed.insert(from.to_owned(), None);
        changed.insert(to.to_owned(), Some(file));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.find(name)?;
        self.changed().insert(name.to_owned(), None);
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self) -> io::Result<()> {
        self.below.lock()
    }
}

struct OverlayFile {
    content: Mutex<Content>,
    used_bytes: Arc<Mutex<u64>>,
}

enum Content {
    /// The first `bytes` of a file of the folder below.
    Below {
        file: Arc<dyn File>,
        bytes: u64,
    },
    Here(Vec<u8>),
}

impl Content {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        match self {
            Self::Below { file, bytes } => {
                let left = bytes.saturating_sub(at).min(buffer.len() as u64);
                file.read_at(&mut buffer[..left as usize], at)
            }
            Self::Here(content) => {
                let rest = content.get(at as usize..).unwrap_or_default();
                let read = rest.len().min(buffer.len());
                buffer[..read].copy_from_slice(&rest[..read]);
                Ok(read)
            }
        }
    }
}

impl OverlayFile {
    /// The content as bytes in memory that end at `end` at least.
    fn own<'a>(&self, content: &'a mut Content, end: u64) -> io::Result<&'a mut Vec<u8>> {
        let have = match content {
            Content::Here(bytes) => bytes.len() as u64,
            Content::Below { .. } => 0,
        };
        if let Content::Below { file, bytes } = content {
            let end = end.max(*bytes);
            self.take(end)?;
            let mut copy = vec![0; *bytes as usize];
            file.read_at(&mut copy, 0)?;
            *content = Content::Here(copy);
        } else {
            self.take(end.saturating_sub(have))?;
        }
        match content {
            Content::Here(bytes) => {
                let length = bytes.len().max(end as usize);
                bytes.resize(length, 0);
                Ok(bytes)
            }
            Content::Below { .. } => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn take(&self, bytes: u64) -> io::Result<()> {
        let mut used = lock(&self.used_bytes);
        *used += bytes;
        if *used > MAX_OVERLAY_BYTES {
            let cause = "more is damaged than a check rebuilds in memory; open a copy instead";
            return Err(io::Error::new(io::ErrorKind::OutOfMemory, cause));
        }
        Ok(())
    }
}

impl Drop for OverlayFile {
    fn drop(&mut self) {
        let content = self
            .content
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Content::Here(bytes) = content {
            let mut used = lock(&self.used_bytes);
            *used = used.saturating_sub(bytes.len() as u64);
        }
    }
}

impl File for OverlayFile {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        lock(&self.content).read_at(buffer, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut content = lock(&self.content);
        // What is written over itself, as a start does with what it cannot believe to be synced, needs no memory.
        let mut there = vec![0; bytes.len()];
        if content.read_at(&mut there, at)? == bytes.len() && there == bytes {
            return Ok(());
        }
        let end = at + bytes.len() as u64;
        let here = self.own(&mut content, end)?;
        here[at as usize..end as usize].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(match &*lock(&self.content) {
            Content::Below { bytes, .. } => *bytes,
            Content::Here(bytes) => bytes.len() as u64,
        })
    }

    fn truncate(&self, to: u64) -> io::Result<()> {
        let mut content = lock(&self.content);
        match &mut *content {
            Content::Below { bytes, .. } if to <= *bytes => *bytes = to,
            Content::Here(bytes) if to <= bytes.len() as u64 => bytes.truncate(to as usize),
            _ => drop(self.own(&mut content, to)?),
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::fault::FaultFiles;

    fn text(files: &dyn Files, name: &str) -> String {
        String::from_utf8(crate::files::read_whole(files, name).unwrap()).unwrap()
    }

    #[test]
    fn changes_are_seen_above_and_leave_the_folder_below_alone() {
        let below = Arc::new(FaultFiles::new());
        for (name, content) in [("a", "first"), ("b", "second"), ("c", "third")] {
            below
                .create(name)
                .unwrap()
                .write_at(content.as_bytes(), 0)
                .unwrap();
        }
        let writes = below.writes();
        let above = OverlayFiles::new(below.clone());
        let file = above.open("a").unwrap();
        file.write_at(b"fir", 0).unwrap();
        file.write_at(b"X", 7).unwrap();
        assert_eq!(text(&above, "a"), "first\0\0X");
        file.truncate(2).unwrap();
        file.truncate(3).unwrap();
        assert_eq!(text(&above, "a"), "fi\0");
        above.open("c").unwrap().truncate(2).unwrap();
        assert_eq!(text(&above, "c"), "th");
        above.rename("b", "d").unwrap();
        assert!(above.open("b").is_err() && above.remove("b").is_err());
        above.remove("c").unwrap();
        above.create("e").unwrap();
        let mut names = above.list().unwrap();
        names.sort();
        assert_eq!(names, ["a", "d", "e"]);
        assert_eq!(text(&above, "d"), "second");
        assert_eq!(below.writes(), writes);
        assert_eq!(
            (text(&*below, "a"), text(&*below, "b")),
            ("first".into(), "second".into())
        );
    }
}
