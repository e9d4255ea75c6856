//! Wakers that record for one task which of its many subscriptions has events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

/// The waker of one subscription.
#[derive(Debug)]
pub(super) struct SubscriptionWaker {
    woken: AtomicBool,
    task: Waker,
}

impl SubscriptionWaker {
    /// Wakes this task. It starts as woken, so that the subscription is polled a first time.
    pub(super) fn new(task: Waker) -> Arc<Self> {
        Arc::new(Self {
            woken: AtomicBool::new(true),
            task,
        })
    }

    /// Whether it was woken since the last call.
    pub(super) fn take_woken(&self) -> bool {
        // It mostly was not, and a load is cheaper than a swap.
        self.woken.load(Ordering::Relaxed) && self.woken.swap(false, Ordering::Acquire)
    }
}

impl Wake for SubscriptionWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}
