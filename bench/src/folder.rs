//! Where the data of a run goes, and that it goes away with the run.

use crate::Outcome;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const WARM_BLOCK_BYTES: usize = 1 << 20;

/// A folder of this run alone, removed with everything in it when it is dropped.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    made: u64,
}

impl Folder {
    /// Makes the folder inside `parent`, or beside the program, if `wanted_bytes` are free there.
    pub fn make(parent: Option<&Path>, wanted_bytes: u64) -> Outcome<Self> {
        let beside_program = std::env::current_exe()?;
        let parent = match parent {
            Some(parent) => parent,
            None => beside_program.parent().ok_or("the program has no folder")?,
        };
        let path = parent.join(format!("bench-data-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        let folder = Self { path, made: 0 };
        match free_bytes(&folder.path) {
            Some(free) if free < wanted_bytes => {
                let wanted = wanted_bytes >> 20;
                let path = folder.path.display();
                Err(format!("{path} has {} MiB left, {wanted} are needed", free >> 20).into())
            }
            _ => Ok(folder),
        }
    }

    /// Has the system find so much memory for files and lets it go again. On a virtual machine memory that was not in
    /// use for a while costs ten times as much as other memory, and which one a measurement gets is chance.
    pub fn warm(&mut self, bytes: u64) -> Outcome<()> {
        let path = self.fresh("warm");
        let mut file = File::create_new(&path)?;
        let block = vec![1; WARM_BLOCK_BYTES];
        for _ in 0..bytes.div_ceil(WARM_BLOCK_BYTES as u64) {
            file.write_all(&block)?;
        }
        drop(file);
        remove(&path)
    }

    /// A name that is not in use, for a file or a folder.
    pub fn fresh(&mut self, name: &str) -> PathBuf {
        self.made += 1;
        self.path.join(format!("{name}-{}", self.made))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What cannot be removed stays; the figures are still good.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes the data of one measurement, so that it is not written to disk during the next one.
pub fn remove(path: &Path) -> Outcome<()> {
    if path.is_dir() {
        fs::remove_dir_all(path)?
    } else {
        fs::remove_file(path)?
    }
    Ok(())
}

/// What `df` says; `None` where there is no such program.
fn free_bytes(path: &Path) -> Option<u64> {
    let output = Command::new("df").arg("-Pk").arg(path).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let available = text.lines().nth(1)?.split_whitespace().nth(3)?;
    Some(available.parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_goes_away_with_what_is_in_it() {
        let parent = tempfile::tempdir().unwrap();
        let mut folder = Folder::make(Some(parent.path()), 1).unwrap();
        let (one, other) = (folder.fresh("log"), folder.fresh("log"));
        assert_ne!(one, other);
        fs::create_dir(&one).unwrap();
        fs::write(one.join("file"), b"bytes").unwrap();
        drop(folder);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_disk_that_is_too_small_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        if free_bytes(parent.path()).is_some() {
            let refused = Folder::make(Some(parent.path()), u64::MAX).unwrap_err();
            assert!(refused.to_string().contains("are needed"), "{refused}");
        }
    }
}
