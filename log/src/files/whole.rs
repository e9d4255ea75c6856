//! Files that are read and replaced as a whole.

use super::{File, Files};
use crate::pace::PIECE_BYTES;
use std::io;

pub(crate) fn read_whole(files: &dyn Files, name: &str) -> io::Result<Vec<u8>> {
    let file = files.open(name)?;
    let mut bytes = vec![0; file.bytes()? as usize];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Writes a file so that it is there whole or not at all. It is synced in pieces, so that a publisher's fdatasync does
/// not queue behind a large index.
pub(crate) fn write_whole(files: &dyn Files, name: &str, bytes: &[u8]) -> io::Result<()> {
    let unfinished = crate::segment::unfinished(name);
    let file = files.create(&unfinished)?;
    if let Err(error) = write_in_pieces(&*file, bytes) {
        // On a full disk its space would be missing elsewhere.
        let _ = files.remove(&unfinished);
        return Err(error);
    }
    files.rename(&unfinished, name)?;
    files.sync_names()
}

fn write_in_pieces(file: &dyn File, bytes: &[u8]) -> io::Result<()> {
    let mut at = 0;
    for piece in bytes.chunks(PIECE_BYTES) {
        file.write_at(piece, at)?;
        at += piece.len() as u64;
        if at < bytes.len() as u64 {
            file.sync()?;
        }
    }
    file.sync()
}
