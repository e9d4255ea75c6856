//! Files of the operating system. What differs between systems is in `unix` and `windows`.

#[cfg_attr(unix, path = "os/unix.rs")]
#[cfg_attr(windows, path = "os/windows.rs")]
mod system;

use super::{File, Files};
use prombus_store::LockExt;
use std::fs::{self, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The file that versions lock which do not lock the folder itself; it is never listed.
const LOCK_NAME: &str = "LOCK";

/// A folder of the operating system.
#[derive(Debug)]
pub struct OsFiles {
    folder: PathBuf,
    access: Access,
    /// What is locked; the lock ends when it is closed.
    lock: Mutex<Option<[fs::File; 2]>>,
}

/// What may be done in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    ReadWrite,
    /// Nothing is changed, so any number of readers may hold the lock together.
    ReadOnly,
}

impl OsFiles {
    /// The folder at `path`, made durably with its parents when it is not there.
    pub fn open(path: &Path) -> io::Result<Self> {
        create_folder(path)?;
        Self::open_existing(path)
    }

    /// The folder at `path`, which must be there: nothing on disk changes. Only [`Files::lock`] and the writing
    /// methods make files in it.
    pub fn open_existing(path: &Path) -> io::Result<Self> {
        Self::with_access(path, Access::ReadWrite)
    }

    /// The same for those who only read: nothing is ever changed, so it may be on a read-only file system. The lock is
    /// shared with other readers.
    pub fn open_read_only(path: &Path) -> io::Result<Self> {
        Self::with_access(path, Access::ReadOnly)
    }

    fn with_access(path: &Path, access: Access) -> io::Result<Self> {
        if !fs::metadata(path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self {
            // A later change of the working directory must not move the log.
            folder: std::path::absolute(path)?,
            access,
            lock: Mutex::new(None),
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn check_writable(&self) -> io::Result<()> {
        match self.access {
            Access::ReadWrite => Ok(()),
            Access::ReadOnly => Err(io::ErrorKind::ReadOnlyFilesystem.into()),
        }
    }

    /// Locks the folder itself, which cannot be replaced while it is in use as a file in it can.
    fn lock_folder(&self) -> io::Result<fs::File> {
        let folder = system::open_folder(&self.folder)?;
        match self.try_lock(&folder) {
            // Some file systems cannot lock a folder; there the file has to do.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {}
            locked => locked?,
        }
        Ok(folder)
    }

    /// Locks the file in the folder, for versions that know no other lock. Where nothing may be written and there is no
    /// such file, no such version has the folder open; the folder stands in for it.
    fn lock_file(&self) -> io::Result<fs::File> {
        let path = self.path(LOCK_NAME);
        let mut options = OpenOptions::new();
        options.read(true);
        if self.access == Access::ReadWrite {
            // The file stays when the lock ends: removing it would let two others each hold a file of that name.
            options.write(true).create(true).truncate(false);
            system::make_private(&mut options);
        }
        let file = match options.open(&path) {
            Err(error)
                if self.access == Access::ReadOnly && error.kind() == io::ErrorKind::NotFound =>
            {
                return system::open_folder(&self.folder);
            }
            opened => opened?,
        };
        self.try_lock(&file)?;
        // Someone may have replaced the file between the two steps, and hold a lock on the new one.
        let (held, named) = (file.metadata()?, fs::metadata(&path)?);
        if !system::is_same_file(&held, &named) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(file)
    }

    fn try_lock(&self, file: &fs::File) -> io::Result<()> {
        let locked = match self.access {
            Access::ReadWrite => file.try_lock(),
            Access::ReadOnly => file.try_lock_shared(),
        };
        locked.map_err(|error| match error {
            TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
            TryLockError::Error(error) => error,
        })
    }
}

impl Files for OsFiles {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            // A name that is not text is shown too, so that a folder of foreign files does not look empty.
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != LOCK_NAME && entry.file_type()?.is_file() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut options = OpenOptions::new();
        options.read(true).write(self.access == Access::ReadWrite);
        let file = options.open(self.path(name))?;
        system::mark_as_read(&file)?;
        Ok(Arc::new(OsFile(file)))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.check_writable()?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        system::make_private(&mut options);
        Ok(Arc::new(OsFile(options.open(self.path(name))?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.check_writable()?;
        fs::rename(self.path(from), self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.check_writable()?;
        fs::remove_file(self.path(name))
    }

    fn sync_names(&self) -> io::Result<()> {
        system::sync_folder(&self.folder)
    }

    fn lock(&self) -> io::Result<()> {
        let mut held = self.lock.guard();
        if held.is_none() {
            *held = Some([self.lock_folder()?, self.lock_file()?]);
        }
        Ok(())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        system::free_bytes(&self.folder)
    }
}

struct OsFile(fs::File);

impl File for OsFile {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match system::read_at(&self.0, &mut buffer[filled..], at + filled as u64) {
                Ok(0) => break,
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    #[cfg(unix)]
    fn read_block(&self, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
        system::read_block(&self.0, at, bytes)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        system::write_all_at(&self.0, bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    fn shrink_removed(&self, bytes: u64) -> io::Result<bool> {
        let metadata = self.0.metadata()?;
        let is_unused = system::is_nameless(&metadata) && self.0.try_lock().is_ok();
        if is_unused && metadata.len() > bytes {
            self.0.set_len(bytes)?;
        }
        Ok(is_unused)
    }

    #[cfg(target_os = "linux")]
    fn preallocate(&self, from: u64, to: u64) -> io::Result<()> {
        let flags = rustix::fs::FallocateFlags::empty();
        Ok(rustix::fs::fallocate(&self.0, flags, from, to - from)?)
    }
}

/// Makes the folder and those above it that are missing. Each one's own entry is synced, or a crash could lose the
/// folder with everything that was synced inside it.
fn create_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if parent != path {
        create_folder(parent)?;
    }
    match system::create_private_folder(path) {
        // Someone else made it in between; a file of that name shows up as soon as the folder is opened.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        other => other?,
    }
    system::sync_folder(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_reads_cuts_and_renames() {
        let root = tempfile::tempdir().unwrap();
        let files = OsFiles::open(&root.path().join("a/b/c")).unwrap();
        let file = files.create("one").unwrap();
        file.write_at(b"hello world", 0).unwrap();
        file.sync().unwrap();
        files.rename("one", "two").unwrap();
        files.sync_names().unwrap();

        let mut buffer = [0; 8];
        let again = files.open("two").unwrap();
        assert_eq!(again.read_at(&mut buffer, 6).unwrap(), 5);
        assert_eq!(&buffer[..5], b"world");
        assert_eq!(again.read_at(&mut buffer, 100).unwrap(), 0);
        assert_eq!(again.read_block(6, 3).unwrap(), b"wor");
        assert_eq!(again.read_block(6, 100).unwrap(), b"world");
        assert_eq!(again.read_block(11, 9).unwrap(), b"");
        again.preallocate(11, 20).unwrap();
        assert_eq!(file.bytes().unwrap(), 20);
        assert_eq!(again.read_at(&mut buffer, 9).unwrap(), 8);
        assert_eq!(&buffer, b"ld\0\0\0\0\0\0");
        again.truncate(5).unwrap();
        assert_eq!(file.bytes().unwrap(), 5);

        let missing = files.open("one").err().unwrap();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        files.remove("two").unwrap();
        assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 5);
        assert!(files.list().unwrap().is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn a_removed_file_is_shrunk_once_nobody_else_reads_it() {
        let root = tempfile::tempdir().unwrap();
        let files = OsFiles::open(root.path()).unwrap();
        files.create("a").unwrap().write_at(b"content", 0).unwrap();
        let file = files.open("a").unwrap();
        assert!(!file.shrink_removed(3).unwrap(), "it has a name");
        // As in another process.
        let others = OsFiles::open_read_only(root.path()).unwrap();
        let reader = others.open("a").unwrap();
        files.remove("a").unwrap();
        assert!(!file.shrink_removed(3).unwrap(), "it is read");
        assert_eq!(reader.read_block(0, 9).unwrap(), b"content");
        drop(reader);
        assert!(file.shrink_removed(3).unwrap());
        assert_eq!(file.bytes().unwrap(), 3);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_lost_its_name_while_it_was_opened_is_not_found() {
        let file = tempfile::tempfile().unwrap();
        let error = system::mark_as_read(&file).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn create_empties_what_is_there() {
        let root = tempfile::tempdir().unwrap();
        let files = OsFiles::open(root.path()).unwrap();
        files.create("a").unwrap().write_at(b"old", 0).unwrap();
        assert_eq!(files.create("a").unwrap().bytes().unwrap(), 0);
    }

    #[test]
    fn the_lock_has_one_holder_and_is_not_listed() {
        let root = tempfile::tempdir().unwrap();
        let first = OsFiles::open(root.path()).unwrap();
        first.lock().unwrap();
        first.lock().unwrap();
        let second = OsFiles::open(root.path()).unwrap();
        assert_eq!(second.lock().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(first);
        second.lock().unwrap();
        fs::create_dir(root.path().join("folder")).unwrap();
        assert!(second.list().unwrap().is_empty());
    }

    #[test]
    fn a_lock_file_that_is_deleted_lets_no_second_holder_in() {
        let root = tempfile::tempdir().unwrap();
        let first = OsFiles::open(root.path()).unwrap();
        first.lock().unwrap();
        fs::remove_file(root.path().join(LOCK_NAME)).unwrap();
        let second = OsFiles::open(root.path()).unwrap();
        assert_eq!(second.lock().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(first);
        second.lock().unwrap();
    }

    /// A version that locks the file only keeps others out too.
    #[test]
    fn a_held_lock_file_keeps_others_out() {
        let root = tempfile::tempdir().unwrap();
        let file = fs::File::create(root.path().join(LOCK_NAME)).unwrap();
        file.lock().unwrap();
        for files in [
            OsFiles::open(root.path()),
            OsFiles::open_read_only(root.path()),
        ] {
            let refused = files.unwrap().lock().unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        }
    }

    #[test]
    fn readers_share_the_lock_and_change_nothing() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), b"text").unwrap();
        let readers = [(); 2].map(|()| OsFiles::open_read_only(root.path()).unwrap());
        for reader in &readers {
            reader.lock().unwrap();
            assert!(reader.open("a").unwrap().write_at(b"x", 0).is_err());
            assert!(reader.create("b").is_err() && reader.remove("a").is_err());
            assert!(reader.rename("a", "b").is_err());
        }
        let writer = OsFiles::open(root.path()).unwrap();
        assert_eq!(writer.lock().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
        drop(readers);
        writer.lock().unwrap();
        let reader = OsFiles::open_read_only(root.path()).unwrap();
        assert_eq!(reader.lock().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[cfg(unix)]
    #[test]
    fn files_and_folders_are_for_their_owner_only() {
        use std::os::unix::fs::MetadataExt;
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("log");
        let files = OsFiles::open(&folder).unwrap();
        files.lock().unwrap();
        files.create("a").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&folder), system::FOLDER_MODE);
        for name in ["a", LOCK_NAME] {
            assert_eq!(mode(&folder.join(name)), system::FILE_MODE);
        }
    }

    #[test]
    fn open_existing_creates_nothing() {
        let root = tempfile::tempdir().unwrap();
        let missing = root.path().join("missing");
        let error = OsFiles::open_existing(&missing).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(!missing.exists());

        fs::write(root.path().join("file"), b"").unwrap();
        assert!(OsFiles::open_existing(&root.path().join("file")).is_err());
        assert!(OsFiles::open(&root.path().join("file")).is_err());

        OsFiles::open_existing(root.path()).unwrap().list().unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }
}
