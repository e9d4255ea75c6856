//! How many events a subscription may have in flight, shared by all groups that serve it. Whoever finds none left
//! queues for it, and the first in the queue is served first, so that one busy topic cannot starve the others.

use super::inbox::Inbox;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The in-flight budget of one subscription.
#[derive(Debug)]
pub(crate) struct Credit {
    state: Mutex<CreditState>,
}

#[derive(Debug)]
struct CreditState {
    limit: usize,
    in_flight: usize,
    /// The owners that wait, first come first served.
    queue: VecDeque<Weak<Inbox>>,
}

impl Credit {
    pub(crate) fn new(limit: usize) -> Self {
        let state = CreditState {
            limit,
            in_flight: 0,
            queue: VecDeque::new(),
        };
        Self {
            state: Mutex::new(state),
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.lock().limit
    }

    /// How much is left.
    pub(crate) fn free(&self) -> usize {
        self.lock().free()
    }

    /// Sets the limit so that `count` are left. Whoever calls this wakes the owners.
    pub(crate) fn set_free(&self, count: usize) {
        let mut state = self.lock();
        state.limit = state.in_flight.saturating_add(count);
    }

    /// Takes up to `wanted` for the owner behind `inbox`. An owner that gets less waits in the queue and is woken
    /// when it is its turn.
    pub(crate) fn take(&self, wanted: usize, inbox: &Arc<Inbox>) -> usize {
        let mut state = self.lock();
        state.queue.retain(|waiting| waiting.strong_count() > 0);
        let is_first = state
            .queue
            .front()
            .is_none_or(|first| is_same(first, inbox));
        let free = state.free();
        let taken = if is_first { wanted.min(free) } else { 0 };
        state.in_flight += taken;
        if taken > 0 {
            state.queue.retain(|waiting| !is_same(waiting, inbox));
        }
        if taken < wanted && !state.queue.iter().any(|waiting| is_same(waiting, inbox)) {
            state.queue.push_back(Arc::downgrade(inbox));
        }
        if taken < free {
            wake_first(&state.queue, inbox);
        }
        taken
    }

    /// Queues for credit, to be woken when it is this owner's turn.
    pub(crate) fn queue(&self, inbox: &Arc<Inbox>) {
        let mut state = self.lock();
        if !state.queue.iter().any(|waiting| is_same(waiting, inbox)) {
            state.queue.push_back(Arc::downgrade(inbox));
        }
        // Some may have come back since the owner looked.
        if state.free() > 0
            && state
                .queue
                .front()
                .is_some_and(|first| is_same(first, inbox))
        {
            inbox.wake();
        }
    }

    /// Gives back what was taken.
    pub(crate) fn give(&self, count: usize, inbox: &Arc<Inbox>) {
        let mut state = self.lock();
        state.in_flight = state.in_flight.saturating_sub(count);
        wake_first(&state.queue, inbox);
    }

    /// Leaves the queue: the owner has nothing to hand out, or is gone.
    pub(crate) fn leave(&self, inbox: &Arc<Inbox>) {
        let mut state = self.lock();
        if state.queue.is_empty() {
            return;
        }
        state.queue.retain(|waiting| !is_same(waiting, inbox));
        if state.free() > 0 {
            wake_first(&state.queue, inbox);
        }
    }

    fn lock(&self) -> MutexGuard<'_, CreditState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CreditState {
    fn free(&self) -> usize {
        self.limit.saturating_sub(self.in_flight)
    }
}

fn is_same(waiting: &Weak<Inbox>, inbox: &Arc<Inbox>) -> bool {
    std::ptr::eq(waiting.as_ptr(), Arc::as_ptr(inbox))
}

/// Wakes the first in the queue, unless it is the one who asks.
fn wake_first(queue: &VecDeque<Weak<Inbox>>, asking: &Arc<Inbox>) {
    if let Some(first) = queue.front().filter(|first| !is_same(first, asking))
        && let Some(inbox) = first.upgrade()
    {
        inbox.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_in_the_queue_is_served_first() {
        let credit = Credit::new(3);
        let [busy, quiet] = [Arc::new(Inbox::new()), Arc::new(Inbox::new())];
        assert_eq!(credit.take(5, &busy), 3);
        assert_eq!(credit.take(1, &quiet), 0);

        credit.give(3, &busy);
        assert_eq!(credit.take(1, &quiet), 0, "busy queued first");
        assert_eq!(credit.take(1, &busy), 1);
        assert_eq!(credit.take(2, &busy), 0, "now it is quiet's turn");
        assert_eq!(credit.take(1, &quiet), 1);
        assert_eq!(credit.take(2, &busy), 1);
        assert_eq!(credit.free(), 0);
    }

    #[test]
    fn what_is_left_can_be_set() {
        let credit = Credit::new(1);
        let owner = Arc::new(Inbox::new());
        assert_eq!(credit.take(5, &owner), 1);
        credit.set_free(3);
        assert_eq!(credit.take(5, &owner), 3);
        credit.set_free(0);
        assert_eq!(credit.take(1, &owner), 0);
        assert_eq!(credit.limit(), 4);
    }

    #[test]
    fn whoever_leaves_the_queue_holds_nobody_up() {
        let credit = Credit::new(1);
        let [first, second] = [Arc::new(Inbox::new()), Arc::new(Inbox::new())];
        assert_eq!(credit.take(2, &first), 1);
        assert_eq!(credit.take(1, &second), 0);
        credit.leave(&first);
        credit.give(1, &first);
        assert_eq!(credit.take(1, &second), 1);
        credit.give(1, &second);
        drop(second);
        assert_eq!(credit.take(1, &first), 1);
    }
}
