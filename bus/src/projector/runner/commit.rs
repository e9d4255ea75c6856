//! Committing what was emitted together with the position, as one atomic batch.

use super::{Checkpoint, Exit, Runner};
use crate::projector::Projector;
use crate::projector::emitter::Emitter;
use crate::projector::record::ProjectorRecord;
use prombus_store::{Change, CommitError, EventOutcome, EventRef, Expect, Receipt};
use std::sync::Arc;

impl<P: Projector> Runner<P> {
    /// Commits until it is done or cannot be. The state has gone ahead of what is committed meanwhile, so nothing else
    /// happens until then; where it cannot be, the place is left, and its state with it.
    pub(super) async fn commit(
        &self,
        checkpoint: &mut Checkpoint<P::State>,
        mut record: ProjectorRecord,
        emit: Emitter,
    ) -> Result<(), Exit> {
        record.emitted += emit.emitted;
        record.rejected += emit.rejected;
        let mut batch = emit.batch;
        batch.change(Change::Put {
            key: self.key.clone(),
            value: record.to_bytes(),
            expect: checkpoint.version.map_or(Expect::Absent, Expect::Version),
        });
        let mut failures = 0;
        let receipt = loop {
            let error = match self.core.store.commit(batch.clone()).await {
                Ok(receipt) => break receipt,
                Err(error) => error,
            };
            match error {
                CommitError::Closed => return Err(Exit::Closed),
                CommitError::UnknownTopic(unknown) => {
                    self.core.topics.forget(&unknown.topic);
                    return Err(Exit::Lost);
                }
                // A commit that failed may have been written all the same.
                CommitError::VersionMismatch(_) if failures > 0 => return Err(Exit::Lost),
                CommitError::VersionMismatch(_) => return Err(Exit::TakenOver),
                other => {
                    failures += 1;
                    let cause: Arc<str> = other.to_string().into();
                    self.shared_status
                        .change(|status| status.last_error = Some(cause));
                    self.back_off(failures).await;
                }
            }
        };
        checkpoint.version = receipt.versions.last().copied();
        record.output_tail = output_tail(&receipt).unwrap_or(record.output_tail);
        checkpoint.record = record;
        checkpoint.moved = true;
        if emit.last_rejection.is_some() {
            self.shared_status
                .change(|status| status.last_rejection = emit.last_rejection);
        }
        self.share_status(&checkpoint.record);
        Ok(())
    }
}

/// The position of the last emitted event.
fn output_tail(receipt: &Receipt) -> Option<u64> {
    match receipt.events.last()? {
        EventOutcome::Stored(EventRef { seq, .. }) => Some(*seq),
        _ => None,
    }
}
