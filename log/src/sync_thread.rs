//! The sync thread: it writes and syncs for everyone who waits for an fsync, writes what publishers hand over to it,
//! and is the one that waits when publishers are throttled.

use crate::committer::Committer;
use std::sync::PoisonError;
use std::time::Duration;

/// The sync thread syncs at least once in so many times that it only writes.
const WRITES_BETWEEN_SYNCS: u32 = 64;

impl Committer {
    /// What the sync thread does until the log is closed.
    pub(crate) fn run_sync_thread(&self) {
        let interval_ms = self.options.os_sync_interval_ms;
        let interval = Duration::from_millis(interval_ms);
        let mut synced_ms = self.options.clock.now_ms();
        let mut writes = 0;
        loop {
            let mut buffer = self.buffer();
            // The wish to stop wakes a sleeper, but a round that was under way may have taken it for one to sync.
            if !buffer.sync_wanted && !buffer.write_wanted && !self.background.signal().stopping {
                buffer.sync_thread_sleeps = true;
                let woken = self.sync_wake.wait_timeout(buffer, interval);
                buffer = woken.unwrap_or_else(PoisonError::into_inner).0;
                buffer.sync_thread_sleeps = false;
            }
            let is_for_writing = std::mem::take(&mut buffer.write_wanted) && !buffer.sync_wanted;
            drop(buffer);
            if self.background.signal().stopping {
                return;
            }
            self.wait_for_sealing();
            let now_ms = self.options.clock.now_ms();
            let is_due =
                now_ms.abs_diff(synced_ms) >= interval_ms || writes >= WRITES_BETWEEN_SYNCS;
            if is_for_writing && !is_due && !self.background.pacer.is_throttled() {
                self.write_if_idle();
                writes += 1;
            } else {
                self.commit_cycle();
                (synced_ms, writes) = (now_ms, 0);
            }
        }
    }

    /// Waits, without any lock, while publishers are throttled: each full segment costs memory until it is sealed, so
    /// nothing is written before as much was sealed.
    fn wait_for_sealing(&self) {
        // If sealing fails, say because the disk is full, publishers hear of it by their own writes.
        let is_failing = || {
            let failure = self.stats.seal_failure.lock();
            failure.unwrap_or_else(PoisonError::into_inner).is_some()
        };
        // The first full segment is sealed only once the one behind it is durable, which takes a commit cycle.
        let is_sealable = || {
            let view = self.reader.view();
            view.active_segments
                .get(1)
                .is_some_and(|next| next.is_durable)
        };
        while self.background.pacer.is_throttled()
            && !self.background.signal().stopping
            && !is_failing()
            && is_sealable()
        {
            if self.background.pacer.wait_for_credit() {
                return;
            }
            self.background.want_sealing();
        }
    }
}
