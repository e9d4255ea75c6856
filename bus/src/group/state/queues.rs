//! Unsettled events that wait for a member: those whose bytes are here, and those whose bytes have to be read again. A
//! partitioned group has one queue for each partition, any other has one.

use prombus_store::StoredEvent;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

/// All queues of a group.
#[derive(Debug, Clone)]
pub(super) struct Queues {
    all: Vec<Queue>,
    /// How many events are in them with their bytes.
    ready: usize,
    /// Whether each queue is a partition, whose events go out in their order.
    is_ordered: bool,
}

#[derive(Debug, Clone, Default)]
struct Queue {
    /// Ready for the first time here, in log order. May hold some that a late acknowledgement has settled since.
    fresh: VecDeque<StoredEvent>,
    /// Ready again.
    returning: BTreeMap<u64, StoredEvent>,
    /// Due, but their bytes have to be read again.
    missing: BTreeSet<u64>,
}

impl Queues {
    /// One queue for each of so many partitions, or one.
    pub(super) fn new(partitions: Option<u32>) -> Self {
        Self {
            all: vec![Queue::default(); partitions.unwrap_or(1).max(1) as usize],
            ready: 0,
            is_ordered: partitions.is_some(),
        }
    }

    pub(super) fn clear(&mut self) {
        self.all.fill(Queue::default());
        self.ready = 0;
    }

    /// How many events are ready to be leased, or a few less.
    pub(super) fn ready(&self) -> usize {
        self.ready
    }

    /// The same for one queue. Nothing of a partition is ready while an earlier event of it has to be read again.
    pub(super) fn ready_in(&self, at: u16) -> usize {
        let queue = &self.all[usize::from(at)];
        let is_behind = |missing: &u64| queue.first_ready().is_some_and(|first| *missing < first);
        if self.is_ordered && queue.missing.first().is_some_and(is_behind) {
            0
        } else {
            queue.fresh.len() + queue.returning.len()
        }
    }

    /// How many wait in a queue, with their bytes or without.
    pub(super) fn waiting_in(&self, at: u16) -> usize {
        let queue = &self.all[usize::from(at)];
        queue.fresh.len() + queue.returning.len() + queue.missing.len()
    }

    /// What is ready in a queue, in the order in which it is leased.
    pub(super) fn iter(&self, at: u16) -> impl Iterator<Item = &StoredEvent> {
        let queue = &self.all[usize::from(at)];
        queue.returning.values().chain(&queue.fresh)
    }

    /// Adds an event that is ready for the first time. Where the number of partitions has changed, what was parked before
    /// that may come behind later events of the queue, and takes its place among those that are ready again.
    pub(super) fn push_fresh(&mut self, at: u16, event: StoredEvent) {
        let queue = &mut self.all[usize::from(at)];
        let is_late = queue
            .fresh
            .back()
            .is_some_and(|last| last.seq() > event.seq());
        if self.is_ordered && is_late {
            return self.push_returning(at, event);
        }
        queue.fresh.push_back(event);
        self.ready += 1;
    }

    pub(super) fn push_returning(&mut self, at: u16, event: StoredEvent) {
        let replaced = self.all[usize::from(at)]
            .returning
            .insert(event.seq(), event);
        self.ready += usize::from(replaced.is_none());
    }

    /// The next event of a queue: of a partition the first in log order, else those that come back, then new ones.
    pub(super) fn pop(&mut self, at: u16) -> Option<StoredEvent> {
        if self.ready_in(at) == 0 {
            return None;
        }
        let queue = &mut self.all[usize::from(at)];
        let event = if self.is_ordered && queue.is_fresh_first() {
            queue.fresh.pop_front()?
        } else {
            let returning = queue.returning.pop_first().map(|(_, event)| event);
            returning.or_else(|| queue.fresh.pop_front())?
        };
        self.ready -= 1;
        Some(event)
    }

    /// Forgets an event that is settled or taken, wherever it waits. A fresh one is skipped when it comes up.
    pub(super) fn remove(&mut self, at: u16, seq: u64) {
        let queue = &mut self.all[usize::from(at)];
        queue.missing.remove(&seq);
        self.ready -= usize::from(queue.returning.remove(&seq).is_some());
    }

    /// Takes all events out that are ready.
    pub(super) fn take_ready(&mut self) -> Vec<StoredEvent> {
        let mut taken = Vec::with_capacity(self.ready);
        for queue in &mut self.all {
            taken.extend(std::mem::take(&mut queue.returning).into_values());
            taken.extend(std::mem::take(&mut queue.fresh));
        }
        self.ready = 0;
        taken
    }

    pub(super) fn add_missing(&mut self, at: u16, seq: u64) {
        self.all[usize::from(at)].missing.insert(seq);
    }

    /// `true` where it was missing.
    pub(super) fn remove_missing(&mut self, at: u16, seq: u64) -> bool {
        self.all[usize::from(at)].missing.remove(&seq)
    }

    pub(super) fn has_missing(&self) -> bool {
        self.all.iter().any(|queue| !queue.missing.is_empty())
    }

    /// All missing positions within a range, in no order.
    pub(super) fn missing_within(&self, range: Range<u64>) -> impl Iterator<Item = u64> {
        let queues = self.all.iter();
        queues.flat_map(move |queue| queue.missing.range(range.clone()).copied())
    }

    /// The lowest `count` missing positions of the queues that `is_wanted`, no further than `span` apart: the first and
    /// the last of them.
    pub(super) fn missing(
        &self,
        span: u64,
        count: usize,
        is_wanted: impl Fn(u16) -> bool,
    ) -> Option<(u64, u64)> {
        let wanted = |(at, queue): (usize, &'_ Queue)| {
            let first = queue.missing.first().copied()?;
            is_wanted(at as u16).then_some(first)
        };
        let first = self.all.iter().enumerate().filter_map(wanted).min()?;
        let to = first.saturating_add(span);
        let mut near: Vec<u64> = Vec::new();
        for (at, queue) in self.all.iter().enumerate() {
            if !queue.missing.is_empty() && is_wanted(at as u16) {
                near.extend(queue.missing.range(first..to).take(count));
            }
        }
        near.sort_unstable();
        let last = near.get(count.min(near.len()).checked_sub(1)?)?;
        Some((first, *last))
    }
}

impl Queue {
    /// The lowest position that is ready.
    fn first_ready(&self) -> Option<u64> {
        let returning = self.returning.keys().next().copied();
        let fresh = self.fresh.front().map(StoredEvent::seq);
        returning.into_iter().chain(fresh).min()
    }

    /// Whether the first in log order is one that is ready for the first time.
    fn is_fresh_first(&self) -> bool {
        let fresh = self.fresh.front().map(StoredEvent::seq);
        fresh.is_some() && fresh == self.first_ready()
    }
}
