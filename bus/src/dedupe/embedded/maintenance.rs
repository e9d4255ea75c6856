//! Dropping marks that have run out, and knowing how many bytes all of them take.

use super::Inner;
use super::slot::{KEY_PREFIX, Slot};
use crate::error::DedupeError;
use prombus_store::LockExt;
use prombus_store::{Batch, Change, CommitError, Expect};
use std::sync::{Mutex, MutexGuard};

/// After so many marks the records are looked through.
const MARKS_BETWEEN: u64 = 4_096;
/// Where there is no room left, they are looked through this often at most.
const FULL_INTERVAL_MS: u64 = 10_000;
/// How many records are looked at before others get their turn, and how many are changed in one commit.
const RECORDS_AT_ONCE: usize = 64;

/// What is known of the records altogether.
#[derive(Debug, Default)]
pub(super) struct Maintenance(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// When they were last looked through.
    looked_ms: Option<u64>,
    /// Marks since then.
    marks: u64,
    held_bytes: u64,
    full: bool,
}

impl Maintenance {
    /// Whether it is time to look through the records; then it is the caller who does.
    pub(super) fn is_due(&self, now_ms: u64) -> bool {
        let mut known = self.lock();
        let due = match known.looked_ms {
            None => true,
            Some(looked_ms) => {
                let rested = now_ms.saturating_sub(looked_ms) >= FULL_INTERVAL_MS;
                known.marks >= MARKS_BETWEEN || known.full && rested
            }
        };
        if due {
            known.looked_ms = Some(now_ms);
            known.marks = 0;
            known.full = false;
        }
        due
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.lock().held_bytes
    }

    /// A mark was refused.
    pub(super) fn is_full(&self) {
        self.lock().full = true;
    }

    /// A mark was made, and its record has another size now.
    pub(super) fn changed(&self, old_bytes: u64, new_bytes: u64) {
        let mut known = self.lock();
        known.marks += 1;
        known.held_bytes = (known.held_bytes + new_bytes).saturating_sub(old_bytes);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.guard()
    }
}

impl Inner {
    /// Looks through all records and drops what has run out.
    pub(super) async fn prune(&self) -> Result<u64, DedupeError> {
        let now_ms = self.clock.now_ms();
        let records = self.store.list(KEY_PREFIX).await?;
        let (mut held_bytes, mut dropped) = (0, 0);
        for some in records.chunks(RECORDS_AT_ONCE) {
            let mut batch = Batch::new();
            let mut dropped_here = 0;
            for (key, record) in some {
                let bytes = (key.len() + record.value.len()) as u64;
                // One that cannot be read is left alone; looking up a mark in it reports the error.
                let Ok(mut slot) = Slot::from_bytes(&record.value) else {
                    held_bytes += bytes;
                    continue;
                };
                let run_out = slot.drop_run_out(now_ms);
                let expect = Expect::Version(record.version);
                let key = key.clone();
                if slot.len() == 0 && run_out == 0 {
                    // It was emptied the last time. Versions begin anew with a new record, so one that somebody may
                    // be about to mark in is not deleted at once: their mark would overwrite another's.
                    batch.change(Change::Delete { key, expect });
                } else if run_out as usize > slot.len() {
                    let value = slot.to_bytes();
                    held_bytes += (key.len() + value.len()) as u64;
                    batch.change(Change::Put { key, value, expect });
                    dropped_here += run_out;
                } else {
                    // Writing it again for a few marks is not worth it; the next mark in it drops them.
                    held_bytes += bytes;
                }
            }
            dropped += if batch.is_empty() {
                0
            } else {
                self.commit_dropping(batch, dropped_here).await?
            };
            tokio::task::yield_now().await;
        }
        self.maintenance.lock().held_bytes = held_bytes;
        Ok(dropped)
    }

    async fn commit_dropping(&self, batch: Batch, dropped: u64) -> Result<u64, DedupeError> {
        match self.store.commit(batch).await {
            Ok(_) => Ok(dropped),
            // One of them was marked concurrently; they are pruned next time.
            Err(CommitError::VersionMismatch(_)) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}
