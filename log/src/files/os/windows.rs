//! What Windows has of its own. Files get the rights of their folder, and names are durable with the journal of NTFS.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Without it a folder cannot be opened.
const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;

/// A file that is made gets the rights of its folder.
pub(super) fn make_private(_: &mut OpenOptions) {}

pub(super) fn create_private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

/// The file's own position moves, which is not used.
pub(super) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    file.seek_read(buffer, at)
}

pub(super) fn write_all_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_write(bytes, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                bytes = &bytes[written..];
                at += written as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(super) fn open_folder(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(FILE_FLAG_BACKUP_SEMANTICS);
    options.open(path)
}

/// A folder cannot be flushed; NTFS writes changes of names to its journal in their order.
pub(super) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

pub(super) fn is_same_file(one: &Metadata, other: &Metadata) -> bool {
    one.creation_time() == other.creation_time()
}

/// No file is shrunk, and a lock would keep others from writing.
pub(super) fn mark_as_read(_: &File) -> io::Result<()> {
    Ok(())
}

/// It cannot be told, so that files are closed as they are.
pub(super) fn is_nameless(_: &Metadata) -> bool {
    false
}

pub(super) fn free_bytes(folder: &Path) -> io::Result<u64> {
    fs4::available_space(folder)
}
