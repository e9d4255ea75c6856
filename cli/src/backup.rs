//! Copies of a log, made while a server uses it.
//!
//! A log changes in three ways only: records are appended to its last segment; sealed segments, indexes and state runs
//! are replaced by renaming a new file over the old one; and files are removed. So a set of files that was opened while
//! no name changed is the log as it was at one moment, whatever happens to the names afterwards: a removed or replaced
//! file stays readable through its descriptor, and of the last segment everything up to its end at that moment is
//! final. Opening a copy is the same as opening the log after a crash at that moment.

mod copy;
mod snapshot;

pub(crate) use copy::{Copied, check_same_log, copy_into};
pub(crate) use snapshot::Snapshot;

use anyhow::Context;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A folder that is filled and then takes the place of another.
pub(crate) struct NewFolder {
    path: PathBuf,
    is_kept: bool,
}

impl NewFolder {
    /// An empty folder beside `target`, where renaming it is atomic.
    pub(crate) fn beside(target: &Path) -> anyhow::Result<Self> {
        let path = sibling(target, "new")?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)
                .with_context(|| format!("cannot create {}", parent.display()))?;
        }
        if path.exists() {
            // Of a run that was killed.
            fs::remove_dir_all(&path)
                .with_context(|| format!("cannot remove {}", path.display()))?;
        }
        fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        let is_kept = false;
        Ok(Self { path, is_kept })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves what is at `target` out of the way, to where the result says, and takes its place.
    pub(crate) fn replace(mut self, target: &Path) -> anyhow::Result<Option<PathBuf>> {
        sync_folder(&self.path)?;
        let mut moved = None;
        if target.exists() {
            let old = sibling(target, "old")?;
            if old.exists() {
                fs::remove_dir_all(&old)
                    .with_context(|| format!("cannot remove {}", old.display()))?;
            }
            fs::rename(target, &old)
                .with_context(|| format!("cannot move {} aside", target.display()))?;
            moved = Some(old);
        }
        fs::rename(&self.path, target)
            .with_context(|| format!("cannot create {}", target.display()))?;
        self.is_kept = true;
        if let Some(parent) = target.parent() {
            sync_folder(parent)?;
        }
        Ok(moved)
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if !self.is_kept {
            // What cannot be removed is removed by the next run.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// `folder` as `folder.suffix`.
fn sibling(folder: &Path, suffix: &str) -> anyhow::Result<PathBuf> {
    let mut name = folder
        .file_name()
        .with_context(|| format!("{} has no name of its own", folder.display()))?
        .to_owned();
    name.push(format!(".{suffix}"));
    Ok(folder.with_file_name(name))
}

/// Makes the names in a folder durable.
fn sync_folder(folder: &Path) -> anyhow::Result<()> {
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    if cfg!(unix) {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.with_context(|| format!("cannot sync {}", folder.display()))?;
    }
    Ok(())
}
