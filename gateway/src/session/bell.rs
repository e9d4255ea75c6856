//! How one task hears which of its many subscriptions has something: each rings a bell of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

/// The bell of one subscription.
#[derive(Debug)]
pub(super) struct Bell {
    rung: AtomicBool,
    task: Waker,
}

impl Bell {
    /// A bell that wakes this task. It has rung, so that the subscription is looked at a first time.
    pub(super) fn new(task: Waker) -> Arc<Self> {
        Arc::new(Self {
            rung: AtomicBool::new(true),
            task,
        })
    }

    /// Whether it has rung since it was asked last.
    pub(super) fn has_rung(&self) -> bool {
        // Mostly it has not, and looking is cheaper than changing.
        self.rung.load(Ordering::Relaxed) && self.rung.swap(false, Ordering::Acquire)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}
