//! In-doubt writes of the group's record: the store failed before it replied. It reopens
//! itself, and a write that had reached the disk is then there, so that the next write finds an unexpected version.
//! That is no other owner, and this one continues from it.

use super::{Existence, Owner};
use crate::group::record::record_key;
use prombus_store::{Batch, Change};
use std::sync::Arc;

/// How many are kept; while the store rejects writes, every further one is known not to have happened.
const MAX_IN_DOUBT_WRITES: usize = 16;

/// In-doubt writes since the last one with a known outcome.
#[derive(Debug, Default)]
pub(super) struct InDoubtWrites(Vec<InDoubtWrite>);

/// A write that the store failed during.
#[derive(Debug)]
struct InDoubtWrite {
    value: Arc<[u8]>,
    /// The events that it settled beside those that the group's state has as settled.
    settling: Vec<u64>,
}

impl InDoubtWrites {
    /// Adds a write of the group's record that the store failed during.
    pub(super) fn add(&mut self, value: Arc<[u8]>, settling: Vec<u64>) {
        if self.0.len() == MAX_IN_DOUBT_WRITES {
            // The first one failed under way; of those behind it, the newest may have as well.
            self.0.remove(1);
        }
        self.0.push(InDoubtWrite { value, settling });
    }

    /// A later write succeeded, so all before it are known not to have happened.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The group's record as a batch writes it.
pub(super) fn record_value(batch: &Batch) -> Option<Arc<[u8]>> {
    batch.changes().iter().find_map(|change| match change {
        Change::Put { value, .. } => Some(value.clone()),
        _ => None,
    })
}

impl Owner {
    /// After a version that was not expected: whether it is that of a write in doubt, which is then known to have
    /// happened.
    pub(super) async fn resolve_in_doubt(&mut self, now_ms: u64) -> bool {
        if self.flush_schedule.in_doubt.0.is_empty() {
            return false;
        }
        let key = record_key(&self.name.topic, &self.name.group);
        // A store of several nodes may have it, and not here yet.
        if self.core.store.barrier().await.is_err() {
            return false;
        }
        let Ok(Some(found)) = self.core.store.get(&key).await else {
            return false;
        };
        let doubtful = std::mem::take(&mut self.flush_schedule.in_doubt.0);
        let mut doubtful = doubtful.into_iter();
        let Some(happened) = doubtful.find(|write| write.value == found.value) else {
            return false;
        };
        self.existence = Existence::Stored {
            version: found.version,
        };
        self.state.mark_settled(&happened.settling, now_ms);
        true
    }
}
