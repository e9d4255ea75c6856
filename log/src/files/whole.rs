//! Small files that are read and replaced as a whole.

use super::Files;
use std::io;

pub(crate) fn read_whole(files: &dyn Files, name: &str) -> io::Result<Vec<u8>> {
    let file = files.open(name)?;
    let mut bytes = vec![0; file.bytes()? as usize];
    let read = file.read_at(&mut bytes, 0)?;
    bytes.truncate(read);
    Ok(bytes)
}

/// Writes a small file so that it is there whole or not at all.
pub(crate) fn write_whole(files: &dyn Files, name: &str, bytes: &[u8]) -> io::Result<()> {
    let unfinished = crate::segment::unfinished(name);
    let file = files.create(&unfinished)?;
    file.write_at(bytes, 0)?;
    file.sync()?;
    files.rename(&unfinished, name)?;
    files.sync_names()
}
