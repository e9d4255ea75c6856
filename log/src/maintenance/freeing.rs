//! Giving the space of removed files back to the disk, at the pace of other background work.

use crate::files::{FREED_BYTES, free_in_pieces};
use crate::maintainer::Maintainer;
use crate::pace::YieldTo;

/// With less room than this on the disk, files are freed as fast as it can be done.
const SCARCE_BYTES: u64 = 1 << 30;

impl Maintainer {
    /// What the freeing thread does until the log is closed.
    pub(crate) fn run_freeing_thread(&self) {
        while let Some(file) = self.removed_files.next() {
            // What fails here is done when the file is closed.
            let _ = free_in_pieces(&*file, || self.pace_freeing());
        }
    }

    /// Pauses after a piece was freed, where the disk has room enough. False if the log is being closed.
    fn pace_freeing(&self) -> bool {
        let pacer = &self.background.pacer;
        let is_scarce = |free| free < SCARCE_BYTES;
        if !self.files.free_bytes().is_ok_and(is_scarce) {
            let rate = self.committer.options.rewrite_bytes_per_second;
            pacer.pause_rewriting(FREED_BYTES, rate, YieldTo::Nobody);
        }
        !pacer.is_interrupted()
    }
}
