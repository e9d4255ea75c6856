//! Writes of the group of which it is not known whether they happened: the store failed before it answered. It opens
//! itself anew, and one that had reached the disk is then there, so that the next write finds a version that it does
//! not expect. That is no other owner, and the group goes on behind it.

use super::{Existence, Owner};
use crate::group::record::record_key;
use prombus_store::{Batch, Change};
use std::sync::Arc;

/// How many are remembered; while the store takes nothing every further one is refused, and cannot have happened.
const MAX_DOUBTFUL: usize = 16;

/// Writes in doubt since the last that was answered.
#[derive(Debug, Default)]
pub(super) struct Doubt(Vec<DoubtfulWrite>);

/// A write whose answer was a failure of the store.
#[derive(Debug)]
struct DoubtfulWrite {
    value: Arc<[u8]>,
    /// The events that it settled beside those that the group's state has as settled.
    settling: Vec<u64>,
}

impl Doubt {
    /// Remembers a write of the group's record that was answered with a failure of the store.
    pub(super) fn add(&mut self, value: Arc<[u8]>, settling: Vec<u64>) {
        if self.0.len() == MAX_DOUBTFUL {
            // The first one failed under way; of those behind it, the newest may have as well.
            self.0.remove(1);
        }
        self.0.push(DoubtfulWrite { value, settling });
    }

    /// A write was answered, so all before it are known not to have happened.
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
    pub(super) async fn resolve_doubt(&mut self, now_ms: u64) -> bool {
        if self.flushing.doubt.0.is_empty() {
            return false;
        }
        let key = record_key(&self.name.topic, &self.name.group);
        let Ok(Some(found)) = self.core.store.get(&key).await else {
            return false;
        };
        let doubtful = std::mem::take(&mut self.flushing.doubt.0);
        let mut doubtful = doubtful.into_iter();
        let Some(happened) = doubtful.find(|write| write.value == found.value) else {
            return false;
        };
        self.existence = Existence::Stored {
            version: found.version,
        };
        self.state.found_settled(&happened.settling, now_ms);
        true
    }
}
