//! What Unix has of its own: modes, positioned reads and writes, folders that can be opened and synced.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Only the server reads these files.
pub(super) const FILE_MODE: u32 = 0o600;
pub(super) const FOLDER_MODE: u32 = 0o700;

/// A file that is made is for its owner only.
pub(super) fn make_private(options: &mut OpenOptions) {
    options.mode(FILE_MODE);
}

pub(super) fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER_MODE).create(path)
}

pub(super) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    file.read_at(buffer, at)
}

/// Reads into memory that was not written before.
pub(super) fn read_block(file: &File, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
    let mut block = Vec::with_capacity(bytes);
    while block.len() < bytes {
        let from = at + block.len() as u64;
        match rustix::io::pread(file, rustix::buffer::spare_capacity(&mut block), from) {
            Ok(0) => break,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The memory may be larger than what was asked for.
    block.truncate(bytes);
    Ok(block)
}

pub(super) fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    file.write_all_at(bytes, at)
}

pub(super) fn open_folder(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    open_folder(path)?.sync_all()
}

pub(super) fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Takes the shared lock that keeps a file that is read from being shrunk once it is removed, here or in another process: a
/// backup goes on reading what a server removes. Where the file lost its name before that, it may have been shrunk already.
pub(super) fn mark_as_read(file: &File) -> io::Result<()> {
    // Where files cannot be locked none is shrunk either, for which it has to be locked too.
    let _ = file.try_lock_shared();
    if is_nameless(&file.metadata()?) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(())
}

/// Whether a file that is open has no name any more.
pub(super) fn is_nameless(file: &Metadata) -> bool {
    file.nlink() == 0
}

pub(super) fn free_bytes(folder: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}
