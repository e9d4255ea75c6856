//! The files of a log as they were at one moment, open for reading.

use anyhow::{Context, bail};
use prombus_log::image::{SEGMENTS_NAME as SEGMENTS, is_of_log};
use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::ErrorKind;
use std::path::Path;

/// How often files are opened anew when a name changed meanwhile. Names change when a segment is begun, sealed or
/// compacted, and opening a thousand files takes milliseconds.
const MAX_ATTEMPTS: usize = 100;

/// Open files by their names.
pub(crate) struct Snapshot {
    pub(crate) files: BTreeMap<String, File>,
}

/// What tells a file from one that took its name.
#[derive(Debug, PartialEq, Eq)]
struct Identity(u64, u64);

impl Snapshot {
    /// Opens the files of the log in `folder`.
    pub(crate) fn open(folder: &Path) -> anyhow::Result<Self> {
        if !folder.is_dir() {
            bail!(
                "{} is not a folder; pass the folder of the store",
                folder.display()
            );
        }
        let about = || format!("cannot read {}", folder.display());
        for _ in 0..MAX_ATTEMPTS {
            let before = names(folder).with_context(about)?;
            if !before.contains_key(SEGMENTS) {
                bail!("{} holds no log", folder.display());
            }
            let Some(files) = open_all(folder, &before).with_context(about)? else {
                continue;
            };
            if names(folder).with_context(about)? == before {
                return Ok(Self { files });
            }
        }
        bail!(
            "the files of {} change too quickly; try again",
            folder.display()
        )
    }
}

/// Opens the files, unless one of them is gone or was replaced.
fn open_all(
    folder: &Path,
    names: &BTreeMap<String, Identity>,
) -> std::io::Result<Option<BTreeMap<String, File>>> {
    let mut files = BTreeMap::new();
    for (name, expected) in names {
        let file = match File::open(folder.join(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if identity(&file.metadata()?) != *expected {
            return Ok(None);
        }
        files.insert(name.clone(), file);
    }
    Ok(Some(files))
}

/// The names that belong to the log, with the files behind them.
fn names(folder: &Path) -> std::io::Result<BTreeMap<String, Identity>> {
    let mut names = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if !is_of_log(&name) {
            continue;
        }
        match entry.metadata() {
            Ok(metadata) => drop(names.insert(name, identity(&metadata))),
            // Removed after it was listed; the next listing differs.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(names)
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    Identity(metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity(metadata: &Metadata) -> Identity {
    let created = metadata.created().ok();
    let created = created.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    Identity(0, created.map_or(0, |age| age.as_nanos() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_log_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Snapshot::open(folder.path()).is_err());
        assert!(Snapshot::open(&folder.path().join("none")).is_err());
    }

    #[test]
    fn a_file_that_is_replaced_later_is_read_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(SEGMENTS), "old").unwrap();
        let mut snapshot = Snapshot::open(folder.path()).unwrap();
        fs::write(folder.path().join("SEGMENTS.new"), "new").unwrap();
        fs::rename(
            folder.path().join("SEGMENTS.new"),
            folder.path().join(SEGMENTS),
        )
        .unwrap();
        let mut text = String::new();
        let mut file = snapshot.files.remove(SEGMENTS).unwrap();
        std::io::Read::read_to_string(&mut file, &mut text).unwrap();
        assert_eq!(text, "old");
    }
}
