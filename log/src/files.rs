//! The seam to the disk: everything the log asks of a folder of files, and nothing else, so that tests can put a lying
//! disk underneath. [`OsFiles`] is the real one; the feature `fault` has one that loses and tears writes.

use std::io;
use std::sync::Arc;

mod bounded;
#[cfg(any(test, feature = "fault"))]
pub mod fault;
mod fence;
mod os;
mod overlay;
mod removed;
mod strict;
mod tracked;
mod whole;

pub(crate) use bounded::BoundedFiles;
pub use fence::FencedFiles;
pub use os::OsFiles;
pub use overlay::OverlayFiles;
pub(crate) use removed::{FREED_BYTES, RemovedFiles, free_in_pieces};
pub(crate) use strict::StrictFiles;
pub use tracked::TrackedFiles;
pub(crate) use whole::{read_whole, write_whole};

/// A folder of files. Names are plain file names, without separators.
pub trait Files: Send + Sync + 'static {
    /// The names of the plain files directly in the folder, in any order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// An existing file, to read and write.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// A new file; one that is there already is emptied.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Renames a file, replacing `to` when it is there, so that at any moment `to` is the old file or the new one.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. The caller that has it open can go on reading it.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes creations, renames and removals durable. The content of files is [`File::sync`]'s.
    fn sync_names(&self) -> io::Result<()>;

    /// Takes the folder for this `Files` alone until it is dropped; [`io::ErrorKind::WouldBlock`] when another one,
    /// in this process or elsewhere, holds it.
    fn lock(&self) -> io::Result<()>;

    /// About how many bytes the disk has room for; a write may find out otherwise.
    fn free_bytes(&self) -> io::Result<u64>;
}

/// An open file. Positions are the caller's, so one handle serves any number of threads.
pub trait File: Send + Sync + 'static {
    /// Fills `buffer` from `at` on and returns how many bytes it got: fewer only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize>;

    /// The `bytes` bytes from `at` on: fewer only at the end of the file. For large blocks, which need not be filled with zeros
    /// before they are read into.
    fn read_block(&self, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut block = vec![0; bytes];
        let read = self.read_at(&mut block, at)?;
        block.truncate(read);
        Ok(block)
    }

    /// Writes all of `bytes` at `at`. After an error any part of them may have been written.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Makes the file's bytes and its length durable. After an error nothing is known of what was written since the
    /// last sync, and a later success says nothing about it either.
    fn sync(&self) -> io::Result<()>;

    /// The file's length.
    fn bytes(&self) -> io::Result<u64>;

    /// Cuts the file, or lengthens it with zeros, to `bytes`.
    fn truncate(&self, bytes: u64) -> io::Result<()>;

    /// Cuts a file that has no name any more, to free its space by and by. Does nothing and returns false where it may have
    /// one or somebody else may have it open: a hard link or a reader would lose its content.
    fn shrink_removed(&self, _bytes: u64) -> io::Result<bool> {
        Ok(false)
    }

    /// Lengthens the file with zeros from its end at `from` to `to`, and takes the space for them on the disk where the
    /// system can do that ahead. After an error the file may have become longer.
    fn preallocate(&self, _from: u64, to: u64) -> io::Result<()> {
        self.truncate(to)
    }
}
