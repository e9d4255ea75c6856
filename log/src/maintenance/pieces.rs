//! A file that background work writes in pieces. Each piece is synced before the next one is written, so that few
//! dirty pages and short journal commits are in the way of a publisher's fdatasync.

use crate::files::File;
use crate::pace::{HURRIED_SYNC_BYTES, PIECE_BYTES};
use std::io;
use std::sync::Arc;

/// Is called after each piece with its size, and may pause. False if the work has to be fast.
pub(crate) type Pace<'a> = dyn Fn(u64) -> io::Result<bool> + 'a;

/// Writes one file from its start to its end.
pub(crate) struct PacedFile<'a> {
    pub(crate) file: Arc<dyn File>,
    /// Written so far.
    pub(crate) bytes: u64,
    unsynced_bytes: u64,
    pace: &'a Pace<'a>,
    is_paced: bool,
}

impl<'a> PacedFile<'a> {
    pub(crate) fn new(file: Arc<dyn File>, pace: &'a Pace<'a>) -> Self {
        Self {
            file,
            bytes: 0,
            unsynced_bytes: 0,
            pace,
            is_paced: true,
        }
    }

    /// Writes all of `bytes` at the end of the file.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        bytes
            .chunks(PIECE_BYTES)
            .try_for_each(|piece| self.write_piece(piece))
    }

    /// Syncs what is not synced yet.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn write_piece(&mut self, piece: &[u8]) -> io::Result<()> {
        let bytes = piece.len() as u64;
        self.file.write_at(piece, self.bytes)?;
        self.bytes += bytes;
        self.unsynced_bytes += bytes;
        let is_full = self.unsynced_bytes >= PIECE_BYTES as u64;
        if is_full && (self.is_paced || self.unsynced_bytes >= HURRIED_SYNC_BYTES) {
            self.file.sync()?;
            self.unsynced_bytes = 0;
        }
        self.is_paced = (self.pace)(bytes)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Files;
    use crate::files::fault::FaultFiles;
    use std::cell::RefCell;

    fn written(is_paced: bool) -> (u64, Vec<u64>) {
        let disk = FaultFiles::new();
        let pieces = RefCell::new(Vec::new());
        let pace = |bytes| {
            pieces.borrow_mut().push(bytes);
            Ok(is_paced)
        };
        let mut file = PacedFile::new(disk.create("data").unwrap(), &pace);
        let content: Vec<u8> = (0..4 * PIECE_BYTES + 100).map(|at| at as u8).collect();
        file.write(&content).unwrap();
        file.finish().unwrap();
        assert_eq!(file.bytes, content.len() as u64);
        assert!(disk.bytes_of("data").unwrap() == content);
        (disk.syncs(), pieces.take())
    }

    #[test]
    fn every_piece_is_synced_and_paced_unless_there_is_hurry() {
        let piece = PIECE_BYTES as u64;
        let pieces = vec![piece, piece, piece, piece, 100];
        assert_eq!(written(true), (5, pieces.clone()));
        // Whether there is hurry is known after the first piece.
        assert_eq!(written(false), (2, pieces));
    }
}
