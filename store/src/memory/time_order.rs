//! A topic's events in the order of (ts, seq). Nearly all events come in that order already, so they only need a
//! queue; those whose own ts is older than what came before are kept aside, sorted.

use std::collections::{BTreeSet, VecDeque};

/// The place of an event in time: its ts, then its seq.
pub(super) type Moment = (u64, u64);

/// The moments of all events a topic holds.
#[derive(Debug, Default)]
pub(super) struct TimeOrder {
    /// Moments that rise in the order they were added, and with them their seq.
    rising: VecDeque<Moment>,
    /// Moments that were earlier than the last rising one when they were added.
    strays: BTreeSet<Moment>,
}

impl TimeOrder {
    /// Adds an event; each has a higher seq than the one before.
    pub(super) fn push(&mut self, moment: Moment) {
        if self.rising.back().is_none_or(|&last| last < moment) {
            self.rising.push_back(moment);
        } else {
            self.strays.insert(moment);
        }
    }

    /// Removes the event with the lowest seq.
    pub(super) fn remove_oldest(&mut self, moment: Moment) {
        if self.rising.front() == Some(&moment) {
            self.rising.pop_front();
        } else {
            self.strays.remove(&moment);
        }
    }

    /// The lowest seq whose ts is `ts` or later.
    pub(super) fn first_seq_since(&self, ts: u64) -> Option<u64> {
        let rising = self.rising_from((ts, 0)).map(|(_, seq)| seq).next();
        let stray = self.strays.range((ts, 0)..).map(|&(_, seq)| seq).min();
        rising.into_iter().chain(stray).min()
    }

    /// All moments from `start` on, in order.
    pub(super) fn since(&self, start: Moment) -> impl Iterator<Item = Moment> + '_ {
        let mut rising = self.rising_from(start).peekable();
        let mut strays = self.strays.range(start..).copied().peekable();
        std::iter::from_fn(move || match (rising.peek(), strays.peek()) {
            (Some(next), Some(stray)) if stray < next => strays.next(),
            (Some(_), _) => rising.next(),
            (None, _) => strays.next(),
        })
    }

    fn rising_from(&self, start: Moment) -> impl Iterator<Item = Moment> + '_ {
        let at = self.rising.partition_point(|&moment| moment < start);
        self.rising.range(at..).copied()
    }
}

impl FromIterator<Moment> for TimeOrder {
    fn from_iter<I: IntoIterator<Item = Moment>>(moments: I) -> Self {
        let mut order = Self::default();
        for moment in moments {
            order.push(moment);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_what_sorting_gives(
            times in proptest::collection::vec(0u64..20, 0..60),
            removed in 0usize..60,
            ts in 0u64..21,
            seq in 0u64..60,
        ) {
            let moments: Vec<Moment> = times.into_iter().zip(1..).collect();
            let mut order: TimeOrder = moments.iter().copied().collect();
            let (gone, kept) = moments.split_at(removed.min(moments.len()));
            gone.iter().for_each(|&moment| order.remove_oldest(moment));

            let mut sorted: Vec<Moment> = kept.iter().copied().filter(|&moment| moment >= (ts, seq)).collect();
            sorted.sort_unstable();
            prop_assert_eq!(order.since((ts, seq)).collect::<Vec<_>>(), sorted);
            let first = kept.iter().find(|&&(at, _)| at >= ts).map(|&(_, seq)| seq);
            prop_assert_eq!(order.first_seq_since(ts), first);
        }
    }
}
