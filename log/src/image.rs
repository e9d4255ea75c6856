//! The files of a log as they are at one moment, open for reading.
//!
//! A log changes in three ways only: records are appended to its last segment; sealed segments, indexes and state runs
//! are replaced by renaming a new file over the old one; and files are removed. So a set of files that was opened while
//! no name changed is the log as it was at one moment, whatever happens to the names afterwards: a removed or replaced
//! file stays readable through open handles, and of the last segment everything up to its end at that moment is
//! final. Opening such a set is the same as opening the log after a crash at that moment.

use crate::files::{File, Files, TrackedFiles};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// How often files are opened anew when a name changed meanwhile. Names change when a segment is begun, sealed or
/// compacted, and opening a thousand files takes milliseconds.
const MAX_ATTEMPTS: usize = 100;
/// The record of segments, which every log has.
pub const SEGMENTS_NAME: &str = "SEGMENTS";
/// Bytes that are looked at in one go for the end of what was written.
const LOOK_BYTES: u64 = 64 << 10;

/// Open files of a log, in the order of their names.
#[derive(Default)]
pub struct Image {
    /// The files.
    pub files: Vec<ImageFile>,
}

/// A file of an image.
#[derive(Clone)]
pub struct ImageFile {
    /// Its name.
    pub name: String,
    /// How many bytes of it are to be copied.
    pub bytes: u64,
    /// How long it is: what is behind those bytes are zeros.
    pub file_bytes: u64,
    /// The file itself, which may grow.
    pub file: Arc<dyn File>,
}

impl Image {
    /// Opens the files of a log to which nothing is appended meanwhile. Whatever else is done to it may go on.
    pub fn open(files: &TrackedFiles) -> io::Result<Self> {
        for _ in 0..MAX_ATTEMPTS {
            let Some(before) = files.changes() else {
                std::thread::yield_now();
                continue;
            };
            let Some(image) = Self::open_once(files)? else {
                continue;
            };
            if files.changes() == Some(before) {
                return Ok(image);
            }
        }
        Err(io::Error::other(
            "the log's files change too quickly to be copied",
        ))
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    fn open_once(files: &TrackedFiles) -> io::Result<Option<Self>> {
        let mut names = files.list()?;
        names.retain(|name| is_of_log(name));
        names.sort_unstable();
        let mut image = Self::default();
        for name in names {
            let file = match files.open(&name) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
            let file_bytes = file.bytes()?;
            image.files.push(ImageFile {
                name,
                bytes: written_bytes(&*file, file_bytes)?,
                file_bytes,
                file,
            });
        }
        Ok(Some(image))
    }
}

/// Whether a file belongs to a log: not those that only mean something to the process that uses it, or that are
/// unfinished.
pub fn is_of_log(name: &str) -> bool {
    let extension = Path::new(name).extension();
    name == SEGMENTS_NAME
        || extension.is_some_and(|found| {
            ["seg", "idx", "ids", "state"]
                .iter()
                .any(|one| found == *one)
        })
        || name.starts_with("damaged-") && extension.is_some_and(|found| found == "txt")
}

/// The file's length without the zeros at its end, most of which are room for what comes.
fn written_bytes(file: &dyn File, file_bytes: u64) -> io::Result<u64> {
    let mut end = file_bytes;
    let mut part = vec![0; LOOK_BYTES as usize];
    while end > 0 {
        let start = end.saturating_sub(LOOK_BYTES);
        let part = &mut part[..(end - start) as usize];
        let count = file.read_at(part, start)?;
        if let Some(last) = part[..count].iter().rposition(|byte| *byte != 0) {
            return Ok(start + last as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FaultFiles;

    #[test]
    fn only_files_of_the_log_are_taken() {
        for name in [
            "SEGMENTS",
            "0000000000000001.seg",
            "1-2.ids",
            "damaged-3.txt",
        ] {
            assert!(is_of_log(name), "{name}");
        }
        for name in [
            "LOCK",
            "CLOSED",
            "reserve",
            "ffffffffffffffff.seg.new",
            "cut-tail.bytes",
            "damaged-1.seg.kept",
        ] {
            assert!(!is_of_log(name), "{name}");
        }
    }

    #[test]
    fn an_image_stays_as_it_was() {
        let files = TrackedFiles::new(Arc::new(FaultFiles::new()));
        let segment = files.create("1.seg").unwrap();
        segment.write_at(b"written", 0).unwrap();
        segment.truncate(200_000).unwrap();
        files.create("LOCK").unwrap();
        let image = Image::open(&files).unwrap();
        segment.write_at(b" and more", 7).unwrap();
        let other = files.create("1.seg.new").unwrap();
        other.write_at(b"replaced", 0).unwrap();
        files.rename("1.seg.new", "1.seg").unwrap();
        let [file] = &image.files[..] else {
            panic!("{} files", image.files.len());
        };
        assert_eq!((file.name.as_str(), file.bytes), ("1.seg", 7));
        assert_eq!(file.file_bytes, 200_000);
        let mut bytes = [0; 7];
        file.file.read_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"written");
    }
}
