//! Bytes of events that wait in memory to be delivered. One [`ByteBudget`] bounds the whole bus, others bound each
//! group and each subscription; waiting bytes are counted against all three until their hold is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// A number of bytes that may be in use.
///
/// Counting never fails, because what is in memory has to be counted even where it is more than was planned: a read
/// brings at least one event, however large. Callers look at [`Self::free_bytes`] before they take more.
#[derive(Debug)]
pub struct ByteBudget {
    limit: usize,
    used: AtomicUsize,
}

/// Bytes counted against a budget until this is dropped.
#[derive(Debug)]
pub struct BudgetHold {
    budget: Arc<ByteBudget>,
    bytes: usize,
}

impl ByteBudget {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            used: AtomicUsize::new(0),
        }
    }

    /// The limit.
    pub fn limit_bytes(&self) -> usize {
        self.limit
    }

    /// What is in use now.
    pub fn used_bytes(&self) -> usize {
        self.used.load(SeqCst)
    }

    /// What is left.
    pub fn free_bytes(&self) -> usize {
        self.limit.saturating_sub(self.used_bytes())
    }

    /// Counts bytes for as long as the hold lives.
    pub fn hold(self: &Arc<Self>, bytes: usize) -> BudgetHold {
        self.add(bytes);
        BudgetHold {
            budget: self.clone(),
            bytes,
        }
    }

    pub(crate) fn add(&self, bytes: usize) {
        self.used.fetch_add(bytes, SeqCst);
    }

    pub(crate) fn sub(&self, bytes: usize) {
        self.used.fetch_sub(bytes, SeqCst);
    }
}

impl BudgetHold {
    /// Changes how many bytes are counted.
    pub fn set(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.budget.add(bytes - self.bytes);
        } else if bytes < self.bytes {
            self.budget.sub(self.bytes - bytes);
        }
        self.bytes = bytes;
    }
}

impl Drop for BudgetHold {
    fn drop(&mut self) {
        self.budget.sub(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_is_counted_until_it_is_dropped() {
        let budget = Arc::new(ByteBudget::new(10));
        let mut hold = budget.hold(4);
        assert_eq!(budget.free_bytes(), 6);
        hold.set(25);
        assert_eq!((budget.used_bytes(), budget.free_bytes()), (25, 0));
        hold.set(1);
        assert_eq!(budget.used_bytes(), 1);
        drop(hold);
        assert_eq!(budget.used_bytes(), 0);
    }
}
