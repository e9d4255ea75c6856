//! A node's own copy of what the shared log says.

pub(crate) mod folder;
pub(crate) mod log;

use crate::trims::Trim;
use prombus_log::Files;
use prombus_log::image::Image;
use prombus_store::memory::MemoryStore;
use prombus_store::{Answer, Batch, CommitError, ManualClock, Receipt, Store, StoreFailed};
use std::future::ready;
use std::io;
use std::sync::Arc;

/// What came of each batch of a message.
pub type Outcomes = Vec<Result<Receipt, CommitError>>;

/// What a node applies messages to and reads from.
///
/// Obligations: what comes of a batch follows from the batches before it, their times and the log's number alone. The
/// batches of one call are there together after a crash, or none of them, and none is there without those before it. What
/// a crash takes at the end is applied again, because the shared log or a snapshot has it.
pub trait LocalCopy: Send + Sync + 'static {
    /// What reads go to.
    fn store(&self) -> &Arc<dyn Store>;

    /// Commits batches in their order, at this time, as the message at `position`. They come one call at a time.
    fn apply(
        &self,
        batches: Vec<Batch>,
        now_ms: u64,
        position: u64,
    ) -> Answer<Outcomes, StoreFailed>;

    /// Compacts as of this time. The position at which it is done is applied afterwards.
    fn compact(&self, now_ms: u64) -> Answer<(), StoreFailed>;

    /// What retention asks for at this time; nothing where compaction does that too.
    fn due_trims(&self, now_ms: u64) -> Answer<Vec<Trim>, StoreFailed>;

    /// Whether it gives images and can be made anew from them.
    fn can_snapshot(&self) -> bool {
        false
    }

    /// Everything as it is now, for a snapshot; `None` where the copy cannot give that.
    fn image(&self) -> Answer<Option<Image>, StoreFailed> {
        Box::pin(ready(Ok(None)))
    }

    /// Begins another copy beside this one; `None` where it cannot be made anew while it is used.
    fn stage(&self) -> io::Result<Option<Box<dyn StagedCopy>>> {
        Ok(None)
    }
}

/// A copy that is made beside the one that is used. Dropped, it is of no effect.
pub trait StagedCopy: Send + 'static {
    /// Where the files of an image belong; empty at first, and then a copy without anything.
    fn files(&self) -> &Arc<dyn Files>;

    /// Takes the place of the copy that is used, if it is whole and at this position; 0 where nothing was applied to it.
    /// It blocks on the disk.
    fn adopt(self: Box<Self>, position: u64) -> Result<(), StoreFailed>;
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

    fn apply(&self, batches: Vec<Batch>, now_ms: u64, _: u64) -> Answer<Outcomes, StoreFailed> {
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

    fn compact(&self, now_ms: u64) -> Answer<(), StoreFailed> {
        self.clock.set(now_ms);
        let maintained = self.store.maintain();
        Box::pin(async move {
            maintained.await.map_err(|error| StoreFailed {
                cause: error.to_string().into(),
            })
        })
    }

    fn due_trims(&self, _: u64) -> Answer<Vec<Trim>, StoreFailed> {
        Box::pin(ready(Ok(Vec::new())))
    }
}
