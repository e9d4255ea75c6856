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
    /// Kept for what owners are reading.
    reserved: usize,
    /// The owners that wait, first come first served.
    queue: VecDeque<Weak<Inbox>>,
}

impl Credit {
    pub(crate) fn new(limit: usize) -> Self {
        let state = CreditState {
            limit,
            in_flight: 0,
            reserved: 0,
            queue: VecDeque::new(),
        };
        Self {
            state: Mutex::new(state),
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.lock().limit
    }

    /// How many more events may be in flight, those that are being read included.
    pub(crate) fn room(&self) -> usize {
        self.lock().room()
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
        let taken = state.grant(wanted, inbox);
        state.in_flight += taken;
        if taken < wanted {
            state.queue_up(inbox);
        }
        taken
    }

    /// Keeps up to `wanted` for what the owner behind `inbox` is about to read, so that others do not read for the same
    /// room. An owner that gets nothing waits in the queue.
    pub(crate) fn reserve(&self, wanted: usize, inbox: &Arc<Inbox>) -> usize {
        let mut state = self.lock();
        let reserved = state.grant(wanted, inbox);
        state.reserved += reserved;
        if reserved == 0 {
            state.queue_up(inbox);
        }
        reserved
    }

    /// Takes up to `count` of what was reserved.
    pub(crate) fn take_reserved(&self, count: usize) -> usize {
        let mut state = self.lock();
        let taken = count.min(state.room());
        state.reserved = state.reserved.saturating_sub(taken);
        state.in_flight += taken;
        taken
    }

    /// Gives back what was reserved and is not needed.
    pub(crate) fn give_reserved(&self, count: usize, inbox: &Arc<Inbox>) {
        let mut state = self.lock();
        state.reserved = state.reserved.saturating_sub(count);
        wake_first(&state.queue, inbox);
    }

    /// Queues for credit, to be woken when it is this owner's turn.
    pub(crate) fn queue(&self, inbox: &Arc<Inbox>) {
        let mut state = self.lock();
        state.queue_up(inbox);
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
    fn room(&self) -> usize {
        self.limit.saturating_sub(self.in_flight)
    }

    /// What nobody has reserved of it.
    fn free(&self) -> usize {
        self.room().saturating_sub(self.reserved)
    }

    /// How much of `wanted` an owner may have, if it is its turn.
    fn grant(&mut self, wanted: usize, inbox: &Arc<Inbox>) -> usize {
        while let Some(first) = self.queue.front()
            && first.strong_count() == 0
        {
            self.queue.pop_front();
        }
        let is_first = self.queue.front().is_none_or(|first| is_same(first, inbox));
        let free = self.free();
        let granted = if is_first { wanted.min(free) } else { 0 };
        if granted > 0 {
            // If anyone waits, it is this owner.
            self.queue.pop_front();
        }
        if granted < free {
            wake_first(&self.queue, inbox);
        }
        granted
    }

    fn queue_up(&mut self, inbox: &Arc<Inbox>) {
        if !self.queue.iter().any(|waiting| is_same(waiting, inbox)) {
            self.queue.push_back(Arc::downgrade(inbox));
        }
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
        assert_eq!(credit.room(), 0);
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
    fn what_is_reserved_is_nobody_elses() {
        let credit = Credit::new(5);
        let [first, second] = [Arc::new(Inbox::new()), Arc::new(Inbox::new())];
        assert_eq!(credit.reserve(3, &first), 3);
        assert_eq!(credit.room(), 5, "nothing is in flight");
        assert_eq!(credit.reserve(9, &second), 2);
        assert_eq!(credit.reserve(1, &second), 0);
        assert_eq!(credit.take_reserved(2), 2);
        assert_eq!(credit.room(), 3);
        credit.give_reserved(1, &first);
        assert_eq!(credit.take(5, &first), 0, "second waits");
        assert_eq!(credit.take(5, &second), 1);
    }

    #[test]
    fn what_was_reserved_obeys_a_lower_limit() {
        let credit = Credit::new(5);
        let owner = Arc::new(Inbox::new());
        assert_eq!(credit.reserve(5, &owner), 5);
        credit.set_free(2);
        assert_eq!(credit.take_reserved(5), 2);
        credit.give_reserved(3, &owner);
        assert_eq!(credit.take(1, &owner), 0);
        credit.give(2, &owner);
        assert_eq!(credit.take(9, &owner), 2);
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
