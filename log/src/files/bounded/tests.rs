//! A bounded folder: idle files are closed, and handles go on reading what was renamed or removed.

use super::*;
use crate::files::OsFiles;
use std::sync::atomic::AtomicUsize;

/// A folder that counts its open files.
struct Counting {
    files: OsFiles,
    open: Arc<AtomicUsize>,
}

struct Counted {
    file: Arc<dyn File>,
    open: Arc<AtomicUsize>,
}

impl Counting {
    fn count(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        self.open.fetch_add(1, Ordering::SeqCst);
        let open = self.open.clone();
        Arc::new(Counted { file, open })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Files for Counting {
    fn list(&self) -> io::Result<Vec<String>> {
        self.files.list()
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.count(self.files.open(name)?))
    }
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.count(self.files.create(name)?))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.files.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.remove(name)
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

impl File for Counted {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.file.read_at(buffer, at)
    }
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
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

const LIMIT: usize = 4;

/// A folder with a limit, and the number of its open files.
fn bounded() -> (tempfile::TempDir, BoundedFiles, Arc<AtomicUsize>) {
    let root = tempfile::tempdir().unwrap();
    let open = Arc::new(AtomicUsize::new(0));
    let files = Counting {
        files: OsFiles::open(root.path()).unwrap(),
        open: open.clone(),
    };
    (
        root,
        BoundedFiles::new(Arc::new(files), LIMIT, Arc::default()),
        open,
    )
}

fn written(files: &BoundedFiles, name: &str) -> Arc<dyn File> {
    let file = files.create(name).unwrap();
    file.write_at(name.as_bytes(), 0).unwrap();
    file.sync().unwrap();
    file
}

fn content(file: &Arc<dyn File>) -> String {
    let mut bytes = vec![0; 32];
    let read = file.read_at(&mut bytes, 0).unwrap();
    String::from_utf8(bytes[..read].to_vec()).unwrap()
}

#[test]
fn many_handles_read_with_few_open_files() {
    let (_root, files, open) = bounded();
    let handles: Vec<_> = (0..40).map(|n| written(&files, &n.to_string())).collect();
    for round in 0..3 {
        for (n, handle) in handles.iter().enumerate() {
            assert_eq!(content(handle), n.to_string(), "round {round}");
            assert!(open.load(Ordering::SeqCst) <= LIMIT + 1);
        }
    }
    drop(handles);
    files.open("1").unwrap();
    assert!(open.load(Ordering::SeqCst) <= LIMIT);
}

#[test]
fn a_handle_goes_on_reading_what_was_removed_or_replaced_while_it_was_closed() {
    let (_root, files, open) = bounded();
    let names = ["removed", "replaced", "moved"];
    let [removed, replaced, moved] = names.map(|name| written(&files, name));
    let others: Vec<_> = (0..9).map(|n| written(&files, &n.to_string())).collect();
    others.iter().for_each(|other| drop(content(other)));
    files.remove("removed").unwrap();
    files.rename("moved", "replaced").unwrap();
    others.iter().for_each(|other| drop(content(other)));
    assert_eq!(content(&removed), "removed");
    assert_eq!(content(&replaced), "replaced");
    assert_eq!(content(&moved), "moved");
    assert_eq!(content(&files.open("replaced").unwrap()), "moved");
    assert!(open.load(Ordering::SeqCst) <= LIMIT + 3);
    drop((removed, replaced));
    others.iter().for_each(|other| drop(content(other)));
    assert!(open.load(Ordering::SeqCst) <= LIMIT + 1);
}

#[test]
fn unsynced_writes_keep_a_file_open() {
    let (_root, files, open) = bounded();
    let unsynced: Vec<_> = (0..9)
        .map(|n| {
            let file = files.create(&n.to_string()).unwrap();
            file.write_at(b"x", 0).unwrap();
            file
        })
        .collect();
    assert_eq!(open.load(Ordering::SeqCst), 9);
    unsynced.iter().for_each(|file| file.sync().unwrap());
    files.create("last").unwrap();
    assert!(open.load(Ordering::SeqCst) <= LIMIT);
}

#[test]
fn a_name_that_stays_can_be_closed_again_after_a_failed_rename() {
    let (_root, files, open) = bounded();
    let kept = written(&files, "kept");
    assert!(files.rename("missing", "kept").is_err());
    let others: Vec<_> = (0..9).map(|n| written(&files, &n.to_string())).collect();
    others.iter().for_each(|other| drop(content(other)));
    assert!(open.load(Ordering::SeqCst) <= LIMIT + 1);
    assert_eq!(content(&kept), "kept");
}
