//! A file of which only the space counts. When the disk is full it is given up, so that topics can still be deleted,
//! retention can trim and groups can be written down; events are refused until there is room to take it back.

use crate::committer::Committer;
use crate::files::Files;
use prombus_store::StoreFailed;
use std::io;

/// The file whose space is held back.
pub(crate) const RESERVE_NAME: &str = "reserve";

/// Whether the log has its reserve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reserve {
    Held,
    /// It was given up, and this is why events are refused.
    Spent(StoreFailed),
}

impl Reserve {
    /// Looks whether there is room for events, and takes the reserve or gives it up accordingly.
    pub(crate) fn look(files: &dyn Files, bytes: u64) -> Self {
        if bytes == 0 {
            return Self::Held;
        }
        let held_bytes = files.open(RESERVE_NAME).and_then(|file| file.bytes());
        let is_held = held_bytes.is_ok_and(|held| held == bytes);
        // Beside the reserve there has to be room for as much again, or it would be given up at the next write.
        let wanted = if is_held { bytes } else { 2 * bytes };
        let free_bytes = files.free_bytes().unwrap_or(u64::MAX);
        let taken = if free_bytes < wanted {
            Err(io::ErrorKind::StorageFull.into())
        } else if is_held {
            Ok(())
        } else {
            take(files, bytes)
        };
        match taken {
            Err(error) if is_full(&error) => {
                give_up(files);
                let cause = format!("the disk is full: {free_bytes} bytes are free");
                let cause = cause.into();
                Self::Spent(StoreFailed { cause })
            }
            // Without a reserve the log is as safe; a write will report what is wrong with the disk.
            _ => Self::Held,
        }
    }
}

/// Gives the space up. It is no harm if there is none.
pub(crate) fn give_up(files: &dyn Files) -> bool {
    files.remove(RESERVE_NAME).is_ok()
}

/// Whether an error says that there is no space.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

fn take(files: &dyn Files, bytes: u64) -> io::Result<()> {
    let file = files.create(RESERVE_NAME)?;
    let taken = file.preallocate(0, bytes);
    if taken.is_err() {
        give_up(files);
    }
    taken
}

impl Committer {
    /// Takes events again if there is room for them and for the reserve.
    pub(crate) fn regain_reserve(&self) {
        if self.buffer().full.is_none() {
            return;
        }
        if Reserve::look(&*self.files, self.options.reserve_bytes) == Reserve::Held {
            self.buffer().full = None;
        }
    }

    /// Whether there is room to rewrite segments of which so much is wanted. What is written down in a rewrite that
    /// fails for want of space would be missing for everything else.
    pub(crate) fn has_room_for(&self, bytes: u64) -> bool {
        let free_bytes = self.files.free_bytes().unwrap_or(u64::MAX);
        free_bytes >= bytes.saturating_add(self.options.reserve_bytes)
    }
}
