//! A log that copies another one: it applies runs of batches in the order that the other log has decided, and knows up to
//! which position it has.
//!
//! The position is a keyed record under a reserved key, and the last record of its run. A run is one unit for recovery,
//! like an atomic batch, so after a crash the position and what belongs to it are there together or not at all. Nothing
//! waits for an fsync, except for runs with deletions or trims: what they let go is freed on the disk, and the batches
//! that decided with it must not have to be applied again.

use crate::completion::Commit;
use crate::log::Log;
use crate::write_buffer::{Held, Known};
use prombus_store::{Batch, CommitError, Receipt, StoreFailed};
use std::sync::Arc;

/// The key of the record that holds the position. Keys of the bus are printable.
pub(crate) const POSITION_KEY: &str = "\0position";

/// What became of a run of batches.
#[derive(Debug)]
pub struct Applied {
    /// What became of each batch, in their order. A batch that is refused leaves nothing behind.
    pub outcomes: Vec<Result<Receipt, CommitError>>,
    /// Resolves when the run is visible to readers.
    pub commit: Commit,
}

impl Log {
    /// Applies batches at the time `now_ms` as one run that ends at `position`: all of them or, if the log fails or
    /// crashes, none. Only for a log that was opened as a [`crate::Role::Copy`].
    ///
    /// What becomes of the batches depends on nothing but the runs so far, so that copies that apply the same runs hold
    /// the same. Await [`Applied::commit`] before the next call: whether an id is known is asked of what readers see.
    ///
    /// An error means that nothing was applied and that the log takes nothing more.
    pub fn append_all(
        &self,
        batches: &[Batch],
        now_ms: u64,
        position: u64,
    ) -> Result<Applied, CommitError> {
        let committer = &self.committer;
        let value: Arc<[u8]> = position.to_le_bytes().into();
        loop {
            let epoch = committer.buffer().unsealed_ids.epoch;
            let held: Result<Vec<Vec<Option<Held>>>, _> = batches
                .iter()
                .map(|batch| {
                    self.reader
                        .look_up_on_disk(batch, self.reader.look_up_in_memory(batch))
                })
                .collect();
            let held = held.map_err(|error| StoreFailed {
                cause: error.to_string().into(),
            })?;
            let keys = committer.watch_keys(batches, &|work: &mut dyn FnMut()| work())?;
            let mut buffer = committer.buffer();
            // A segment that was sealed meanwhile may have been missed by the look-ups.
            if buffer.unsealed_ids.epoch != epoch || !keys.is_current(&buffer) {
                continue;
            }
            let known = held.iter().enumerate().map(|(at, held)| Known {
                held,
                keys: keys.seen(at),
            });
            let known: Vec<Known<'_>> = known.collect();
            let run = buffer.admit_run(batches, &known, now_ms, &value)?;
            if run.wants_sync {
                committer.want_sync(&mut buffer);
            }
            drop(buffer);
            if !run.wants_sync && committer.options.threads {
                committer.write_if_idle();
            }
            return Ok(Applied {
                outcomes: run.outcomes,
                commit: Commit::waiting_for(Receipt::default(), run.completion),
            });
        }
    }

    /// The position of the last run that was applied; `None` before the first.
    pub fn position(&self) -> Option<u64> {
        let buffer = self.committer.buffer();
        let keyed = buffer.keyed.latest().get(POSITION_KEY)?;
        let bytes: [u8; 8] = keyed.value[..].try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    /// The trims that the topics' retention asks for at the time `now_ms`. A copy does not apply them by itself: whoever
    /// maintains the log that it copies commits them there.
    pub fn due_trims(&self, now_ms: u64) -> Vec<prombus_store::Change> {
        self.maintainer.due_trims(now_ms)
    }
}
