//! A node's own copy of what the shared log says.

pub(crate) mod folder;

use prombus_store::memory::MemoryStore;
use prombus_store::{Answer, Batch, CommitError, ManualClock, Receipt, Store, StoreFailed};
use std::sync::Arc;

/// What came of each batch of a message.
pub type Outcomes = Vec<Result<Receipt, CommitError>>;

/// What a node applies messages to and reads from.
///
/// Obligations: what comes of a batch follows from the batches before it, their times and the log's number alone. The
/// batches of one call are there together after a crash, or none of them. Nothing has to be synced, because the shared
/// log has it; but nothing may be in the middle missing.
pub trait LocalCopy: Send + Sync + 'static {
    /// What reads go to.
    fn store(&self) -> &Arc<dyn Store>;

    /// Commits batches in their order, at this time. They come one call at a time.
    fn apply(&self, batches: Vec<Batch>, now_ms: u64) -> Answer<Outcomes, StoreFailed>;

    /// Applies retention and compaction as of this time.
    fn maintain(&self, now_ms: u64) -> Answer<(), StoreFailed>;
}

/// A copy in memory, which begins with the first message of the log at each start.
pub struct MemoryCopy {
    store: Arc<dyn Store>,
    clock: Arc<ManualClock>,
}

impl MemoryCopy {
    /// An empty copy of the log of this number.
    pub fn new(log_id: u64) -> Self {
        let clock = Arc::new(ManualClock::at(0));
        // How much it takes must not differ from node to node, so the limit is checked before a commit is sent.
        let store = MemoryStore::numbered(clock.clone(), u64::MAX, log_id);
        Self {
            store: Arc::new(store),
            clock,
        }
    }
}

impl LocalCopy for MemoryCopy {
    fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    fn apply(&self, batches: Vec<Batch>, now_ms: u64) -> Answer<Outcomes, StoreFailed> {
        self.clock.set(now_ms);
        let store = self.store.clone();
        Box::pin(async move {
            let mut outcomes = Vec::with_capacity(batches.len());
            for batch in batches {
                outcomes.push(store.commit(batch).await);
            }
            Ok(outcomes)
        })
    }

    fn maintain(&self, now_ms: u64) -> Answer<(), StoreFailed> {
        self.clock.set(now_ms);
        let maintained = self.store.maintain();
        Box::pin(async move {
            maintained.await.map_err(|error| StoreFailed {
                cause: error.to_string().into(),
            })
        })
    }
}
