//! Taking in a run of batches that another log has put in order: one unit, ended by the record of its position.

use super::WriteBuffer;
use super::admit::{Known, Unit};
use crate::completion::Completion;
use crate::copy::{POSITION_KEY, PositionRecord};
use crate::record::{LAST_OF_BATCH, StateRecord};
use prombus_store::{Batch, Change, CommitError, Receipt};
use std::sync::Arc;

/// A run that was taken in.
pub(crate) struct AdmittedRun {
    pub(crate) outcomes: Vec<Result<Receipt, CommitError>>,
    pub(crate) completion: Arc<Completion>,
    /// It is complete only after a sync.
    pub(crate) wants_sync: bool,
}

impl WriteBuffer {
    /// Takes in a run with the record of its position. `known` has for each batch what [`WriteBuffer::admit`] wants to know.
    pub(crate) fn admit_run(
        &mut self,
        batches: &[Batch],
        known: &[Known<'_>],
        now_ms: u64,
        position: u64,
    ) -> Result<AdmittedRun, CommitError> {
        self.check_takes(batches.iter().any(|batch| batch.events().len() > 0))?;
        let expects_keys = batches.iter().any(Batch::has_expected_key_positions);
        if expects_keys {
            self.watched_keys.begin_batch();
        }
        let outcomes = batches.iter().zip(known).map(|(batch, known)| {
            batch.check_record_sizes()?;
            let (receipt, _) = self.take_in(batch, *known, now_ms, Unit::Run)?;
            Ok(receipt)
        });
        let outcomes: Vec<Result<Receipt, CommitError>> = outcomes.collect();
        if expects_keys {
            self.watched_keys.end_batch();
        }
        let ended = PositionRecord {
            position,
            deleted_version: self.keyed.deleted_version(),
        };
        let value = ended.encode();
        let (version, change) = self.keyed.put(&POSITION_KEY.into(), &value);
        self.pending.keyed.push(change);
        let record = StateRecord::KeyedPut {
            key: POSITION_KEY.into(),
            version,
            value,
        };
        record.write(&mut self.pending.bytes, LAST_OF_BATCH);
        let mut taken = batches.iter().zip(&outcomes);
        let wants_sync = taken.any(|(batch, outcome)| outcome.is_ok() && lets_go(batch));
        self.pending.awaited = true;
        self.sync_wanted |= wants_sync;
        self.pending.batches_to_sync += usize::from(wants_sync);
        self.pending.acknowledged_on_write = true;
        let completion = if wants_sync {
            self.pending.synced.clone()
        } else {
            self.pending.written.clone()
        };
        Ok(AdmittedRun {
            outcomes,
            completion,
            wants_sync,
        })
    }
}

/// Whether space is freed because of a batch.
fn lets_go(batch: &Batch) -> bool {
    let mut changes = batch.changes().iter();
    changes.any(|change| matches!(change, Change::DeleteTopic { .. } | Change::Trim { .. }))
}
