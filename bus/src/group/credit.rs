//! How many events a subscription may have in flight and how many bytes of them may wait for it in memory, shared by
//! all groups that serve it. An owner that finds none left queues for it, and the first in the queue is served first,
//! so that one busy topic cannot starve the others.

mod hold;

pub(crate) use hold::ByteHold;

use super::inbox::Inbox;
use crate::memory::ByteBudget;
use prombus_store::LockExt;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// The in-flight budget of one subscription.
#[derive(Debug)]
pub(crate) struct Credit {
    state: Mutex<CreditState>,
    /// What waits in its mailbox or is being read for it.
    bytes: ByteBudget,
    /// What waits in all mailboxes of the bus.
    memory: Arc<ByteBudget>,
    /// An owner found no bytes left; the next release wakes the first in the queue.
    has_byte_waiters: AtomicBool,
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
    pub(crate) fn new(limit: usize, limit_bytes: usize, memory: Arc<ByteBudget>) -> Self {
        let state = CreditState {
            limit,
            in_flight: 0,
            reserved: 0,
            queue: VecDeque::new(),
        };
        Self {
            state: Mutex::new(state),
            bytes: ByteBudget::new(limit_bytes),
            memory,
            has_byte_waiters: AtomicBool::new(false),
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.lock().limit
    }

    /// How many are in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.lock().in_flight
    }

    /// Sets the limit. The caller wakes the owners.
    pub(crate) fn set_limit(&self, limit: usize) {
        self.lock().limit = limit;
    }

    /// Counts what is in flight since before, whether or not there is room for it.
    pub(crate) fn adopt(&self, count: usize) {
        self.lock().in_flight += count;
    }

    /// How many more events may be in flight, those that are being read included.
    pub(crate) fn room(&self) -> usize {
        self.lock().room()
    }

    /// Sets the limit so that `count` are left. The caller wakes the owners.
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
            state.enqueue(inbox);
        }
        taken
    }

    /// Keeps up to `wanted` for what the owner behind `inbox` is about to read, and up to `wanted_bytes` for its bytes,
    /// so that others do not read for the same room. An owner that gets nothing waits in the queue.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        wanted: usize,
        wanted_bytes: usize,
        inbox: &Arc<Inbox>,
    ) -> Option<(usize, ByteHold)> {
        let mut state = self.lock();
        let bytes = self.byte_room(inbox).min(wanted_bytes);
        let reserved = if bytes > 0 {
            state.grant(wanted, inbox)
        } else {
            0
        };
        if reserved == 0 {
            state.enqueue(inbox);
            return None;
        }
        state.reserved += reserved;
        Some((reserved, ByteHold::new(self, inbox, bytes)))
    }

    /// Whether the owner behind `inbox` could hand over an event now.
    pub(crate) fn has_room(&self, inbox: &Inbox) -> bool {
        self.lock().free() > 0 && self.byte_room(inbox) > 0
    }

    /// How many more bytes the owner behind `inbox` may put into the mailbox. Where nothing is in it, that is at least
    /// one, which is one event, so that no subscription starves while others have used up what they share.
    pub(crate) fn byte_room(&self, inbox: &Inbox) -> usize {
        match self.bytes_left(inbox) {
            0 => {
                self.has_byte_waiters.store(true, SeqCst);
                // Some may have come back since.
                self.bytes_left(inbox)
            }
            left => left,
        }
    }

    fn bytes_left(&self, inbox: &Inbox) -> usize {
        let own = self.bytes.free_bytes();
        let left = own
            .min(inbox.bytes.free_bytes())
            .min(self.memory.free_bytes());
        let is_first = self.bytes.used_bytes() == 0;
        left.max(usize::from(is_first))
    }

    /// Called after bytes were given back: wakes the first that waits for some, if there are enough to be worth it.
    fn bytes_returned(&self, inbox: &Inbox) {
        if !self.has_byte_waiters.load(SeqCst) {
            return;
        }
        let is_worth_it = self.bytes.used_bytes() <= self.bytes.limit_bytes() / 2;
        if is_worth_it && self.bytes_left(inbox) > 0 {
            self.has_byte_waiters.store(false, SeqCst);
            if let Some(first) = self.lock().queue.front().and_then(Weak::upgrade) {
                first.wake();
            }
        }
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
    pub(crate) fn release_reserved(&self, count: usize, inbox: &Arc<Inbox>) {
        let mut state = self.lock();
        state.reserved = state.reserved.saturating_sub(count);
        wake_first(&state.queue, inbox);
    }

    /// Queues for credit, to be woken when it is this owner's turn.
    pub(crate) fn enqueue(&self, inbox: &Arc<Inbox>) {
        let mut state = self.lock();
        state.enqueue(inbox);
        // Some may have come back since the owner looked.
        if state.free() > 0
            && self.byte_room(inbox) > 0
            && state
                .queue
                .front()
                .is_some_and(|first| is_same(first, inbox))
        {
            inbox.wake();
        }
    }

    /// Whether it is the turn of who waits behind `inbox` and something is free. Where it is not, it waits in the queue;
    /// where it is, it has left the queue without taking anything.
    pub(crate) fn takes_turn(&self, inbox: &Arc<Inbox>) -> bool {
        let mut state = self.lock();
        state.drop_gone();
        let is_first = state
            .queue
            .front()
            .is_none_or(|first| is_same(first, inbox));
        if !is_first || state.free() == 0 || self.byte_room(inbox) == 0 {
            state.enqueue(inbox);
            return false;
        }
        state.queue.pop_front();
        wake_first(&state.queue, inbox);
        true
    }

    /// Gives back what was taken.
    pub(crate) fn release(&self, count: usize, inbox: &Arc<Inbox>) {
        let mut state = self.lock();
        state.in_flight = state.in_flight.saturating_sub(count);
        wake_first(&state.queue, inbox);
    }

    /// Leaves the queue: the owner has nothing to hand out, or is gone.
    pub(crate) fn dequeue(&self, inbox: &Arc<Inbox>) {
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
        self.state.guard()
    }
}

impl CreditState {
    fn room(&self) -> usize {
        self.limit.saturating_sub(self.in_flight)
    }

    /// The room that is not reserved.
    fn free(&self) -> usize {
        self.room().saturating_sub(self.reserved)
    }

    /// How much of `wanted` an owner may have, if it is its turn.
    fn grant(&mut self, wanted: usize, inbox: &Arc<Inbox>) -> usize {
        self.drop_gone();
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

    /// Takes owners out of the front of the queue that are gone.
    fn drop_gone(&mut self) {
        while let Some(first) = self.queue.front()
            && first.strong_count() == 0
        {
            self.queue.pop_front();
        }
    }

    fn enqueue(&mut self, inbox: &Arc<Inbox>) {
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
mod tests;
