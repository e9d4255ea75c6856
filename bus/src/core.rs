//! What all parts of one bus share.

use crate::options::BusOptions;
use crate::topics::Topics;
use prombus_store::{Clock, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The shared inside of a bus: no tasks, no groups, only what they all need.
pub(crate) struct Core {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) options: BusOptions,
    pub(crate) topics: Topics,
    /// Set once, by closing; nothing new is taken in after that.
    closed: AtomicBool,
    /// Numbers members and ephemeral groups.
    next_number: AtomicU64,
}

impl Core {
    pub(crate) fn new(store: Arc<dyn Store>, options: BusOptions, topics: Topics) -> Self {
        Self {
            store,
            options,
            topics,
            closed: AtomicBool::new(false),
            next_number: AtomicU64::new(1),
        }
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.options.clock
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.clock().now_ms()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Closes, and says whether it was open.
    pub(crate) fn close(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel)
    }

    /// A number that this bus has not given before.
    pub(crate) fn number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }
}
