//! A memory store that outlives the buses on it, and that dies for good at a commit that is chosen beforehand: the
//! commit is lost, or it happens and its answer is lost, as when a process is killed.

use prombus::error::{CommitError, StoreFailed};
use prombus::{Clock, Store};
use prombus_store::memory::MemoryStore;
use prombus_store::{Answer, Batch, Receipt, Wrapper};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::time::Instant;

/// Epoch milliseconds when a test begins.
pub(crate) const START_MS: u64 = 1_700_000_000_000;

/// A clock that follows tokio's, which the tests have paused.
pub(crate) struct VirtualClock(Instant);

/// A process's view of a store that survives it.
pub(crate) struct LossyStore {
    inner: Arc<MemoryStore>,
    /// How many commits are still to succeed.
    left: AtomicU64,
    /// Whether the commit at which it dies happens.
    last_happens: bool,
}

impl VirtualClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Instant::now()))
    }
}

impl Clock for VirtualClock {
    fn now_ms(&self) -> u64 {
        START_MS + self.0.elapsed().as_millis() as u64
    }
}

impl LossyStore {
    /// One that dies after so many commits.
    pub(crate) fn dying(inner: &Arc<MemoryStore>, after: u64, last_happens: bool) -> Arc<Self> {
        Arc::new(Self {
            inner: inner.clone(),
            left: AtomicU64::new(after),
            last_happens,
        })
    }

    /// One that lives as long as the test.
    pub(crate) fn healthy(inner: &Arc<MemoryStore>) -> Arc<Self> {
        Self::dying(inner, u64::MAX, false)
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }
}

impl Wrapper for LossyStore {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn commit(&self, batch: Batch) -> Answer<Receipt, CommitError> {
        let dead = || {
            let cause = "the process is dead".into();
            Box::pin(async { Err(StoreFailed { cause }.into()) })
        };
        let take_one = |left: u64| left.checked_sub(1);
        let before = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, take_one);
        match before {
            Err(_) => dead(),
            Ok(1) => {
                if self.last_happens {
                    drop(self.inner.commit(batch));
                }
                dead()
            }
            Ok(_) => self.inner.commit(batch),
        }
    }

    /// Stays open, so that another bus can be opened on it.
    fn close(&self) -> Answer<(), CommitError> {
        Box::pin(async { Ok(()) })
    }
}
