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

/// What a run ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PositionRecord {
    pub(crate) position: u64,
    /// The highest version of a record that was deleted. Records that are made again go on behind it, on a copy that was
    /// opened anew as on one that was not.
    pub(crate) deleted_version: u64,
}

impl PositionRecord {
    pub(crate) fn encode(self) -> Arc<[u8]> {
        let bytes = [self.position, self.deleted_version].map(u64::to_le_bytes);
        bytes.as_flattened().into()
    }

    /// Reads what [`Self::encode`] wrote.
    pub(crate) fn decode(value: &[u8]) -> Option<Self> {
        let number = |at: usize| Some(u64::from_le_bytes(value.get(at..at + 8)?.try_into().ok()?));
        Some(Self {
            position: number(0)?,
            deleted_version: number(8)?,
        })
    }
}

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
            let run = buffer.admit_run(batches, &known, now_ms, position)?;
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
        Some(PositionRecord::decode(&keyed.value)?.position)
    }

    /// Seals what is full and compacts, as of the clock's time. What compaction takes is gone also for ids that come again,
    /// so copies have to do it at the same position: everything before that is synced first, and whoever calls this
    /// applies the position afterwards, so that after a crash in between it is done again.
    pub fn compact_copy(&self) -> Result<(), CommitError> {
        let failed = |error: std::io::Error| StoreFailed {
            cause: format!("compaction failed: {error}").into(),
        };
        self.committer.show_all()?;
        let _no_pauses = self.committer.background.pacer.hurry();
        self.maintainer.seal_full_segments().map_err(failed)?;
        self.maintainer.compact_topics().map_err(failed)?;
        Ok(())
    }

    /// The trims that the topics' retention asks for at the time `now_ms`. A copy does not apply them by itself: whoever
    /// maintains the log that it copies commits them there.
    pub fn due_trims(&self, now_ms: u64) -> Vec<prombus_store::Change> {
        self.maintainer.due_trims(now_ms)
    }
}
