//! Committing what was emitted together with the position, as one atomic batch.

use super::{Left, Place, Runner};
use crate::projector::Projector;
use crate::projector::emitter::Emitter;
use crate::projector::record::ProjectorRecord;
use prombus_store::{Change, CommitError, EventOutcome, Expect, Placed, Receipt};
use std::sync::Arc;

impl<P: Projector> Runner<P> {
    /// Commits until it is done or cannot be. The state has gone ahead of what is committed meanwhile, so nothing else
    /// happens until then; where it cannot be, the place is left, and its state with it.
    pub(super) async fn commit(
        &self,
        place: &mut Place<P::State>,
        mut record: ProjectorRecord,
        emit: Emitter,
    ) -> Result<(), Left> {
        record.emitted += emit.emitted;
        record.refused += emit.refused;
        let mut batch = emit.batch;
        batch.change(Change::Put {
            key: self.key.clone(),
            value: record.to_bytes(),
            expect: place.version.map_or(Expect::Absent, Expect::Version),
        });
        let mut failures = 0;
        let receipt = loop {
            let error = match self.core.store.commit(batch.clone()).await {
                Ok(receipt) => break receipt,
                Err(error) => error,
            };
            match error {
                CommitError::Closed => return Err(Left::Closed),
                CommitError::UnknownTopic(unknown) => {
                    self.core.topics.forget(&unknown.topic);
                    return Err(Left::Lost);
                }
                // A commit that failed may have been written all the same.
                CommitError::VersionMismatch(_) if failures > 0 => return Err(Left::Lost),
                CommitError::VersionMismatch(_) => return Err(Left::TakenOver),
                other => {
                    failures += 1;
                    let cause: Arc<str> = other.to_string().into();
                    self.told.change(|status| status.last_error = Some(cause));
                    self.rest(failures).await;
                }
            }
        };
        place.version = receipt.versions.last().copied();
        record.output_tail = output_tail(&receipt).unwrap_or(record.output_tail);
        place.record = record;
        place.moved = true;
        if emit.last_refusal.is_some() {
            self.told
                .change(|status| status.last_refusal = emit.last_refusal);
        }
        self.tell(&place.record);
        Ok(())
    }
}

/// Where the last of the emitted events lies.
fn output_tail(receipt: &Receipt) -> Option<u64> {
    match receipt.events.last()? {
        EventOutcome::Stored(Placed { seq, .. }) => Some(*seq),
        _ => None,
    }
}
