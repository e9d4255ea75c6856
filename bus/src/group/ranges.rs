//! Positions settled above the cursor, as ranges. Only what was loaded with a group and not yet read past lives
//! here; what a running group has settled is the complement of what it has not.

use std::collections::VecDeque;

/// Ascending ranges of positions, both ends included, that neither touch nor overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ranges(VecDeque<(u64, u64)>);

impl Ranges {
    /// Orders and joins whatever is given; ranges that end before they begin are left out.
    pub(crate) fn new(mut ranges: Vec<(u64, u64)>) -> Self {
        ranges.retain(|&(first, last)| first <= last);
        ranges.sort_unstable();
        let mut joined = Self::default();
        ranges
            .into_iter()
            .for_each(|(first, last)| joined.add(first, last));
        joined
    }

    /// Adds a range that begins no earlier than the last one.
    pub(crate) fn add(&mut self, first: u64, last: u64) {
        match self.0.back_mut() {
            Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
            _ => self.0.push_back((first, last)),
        }
    }

    /// Adds one position wherever it belongs.
    pub(crate) fn insert(&mut self, seq: u64) {
        let after = self.0.partition_point(|&(first, _)| first <= seq);
        let touches_before = after > 0 && self.0[after - 1].1.saturating_add(1) >= seq;
        let touches_after = self.0.get(after).is_some_and(|next| next.0 == seq + 1);
        match (touches_before, touches_after) {
            (true, true) => {
                let last = self.0[after].1;
                self.0[after - 1].1 = last;
                self.0.remove(after);
            }
            (true, false) => self.0[after - 1].1 = self.0[after - 1].1.max(seq),
            (false, true) => self.0[after].0 = seq,
            (false, false) => self.0.insert(after, (seq, seq)),
        }
    }

    /// How many ranges there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn contains(&self, seq: u64) -> bool {
        let after = self.0.partition_point(|&(first, _)| first <= seq);
        after > 0 && self.0[after - 1].1 >= seq
    }

    /// How many positions of `first..=last` are settled.
    pub(crate) fn count_within(&self, first: u64, last: u64) -> u64 {
        let clipped = self
            .0
            .iter()
            .map(|&(from, to)| (from.max(first), to.min(last)));
        clipped
            .map(|(from, to)| (to + 1).saturating_sub(from))
            .sum()
    }

    /// How many positions of `first..=last` are in both.
    pub(crate) fn count_common(&self, other: &Self, first: u64, last: u64) -> u64 {
        let (mut ours, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut common = 0;
        while let (Some(&&one), Some(&&another)) = (ours.peek(), theirs.peek()) {
            let from = one.0.max(another.0).max(first);
            let to = one.1.min(another.1).min(last);
            common += (to + 1).saturating_sub(from);
            if one.1 <= another.1 {
                ours.next()
            } else {
                theirs.next()
            };
        }
        common
    }

    /// Drops what is at or before `head`, and returns how far head may go because everything up to there is
    /// settled.
    pub(crate) fn absorb(&mut self, head: u64) -> u64 {
        let mut head = head;
        while let Some(&(first, last)) = self.0.front() {
            if first > head.saturating_add(1) {
                break;
            }
            head = head.max(last);
            self.0.pop_front();
        }
        head
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().copied()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_like_a_set(given in prop::collection::vec((0u64..60, 0u64..60), 0..12), at in 0u64..70, to in 0u64..70) {
            let model: BTreeSet<u64> = given.iter().flat_map(|&(first, last)| first..=last).collect();
            let mut one_by_one = Ranges::default();
            for (first, last) in given.iter().rev() {
                (*first..=*last).for_each(|seq| one_by_one.insert(seq));
            }
            let mut ranges = Ranges::new(given);
            prop_assert_eq!(&one_by_one, &ranges);
            prop_assert_eq!(ranges.count_within(0, 99), model.len() as u64);
            prop_assert_eq!(ranges.contains(at), model.contains(&at));
            let within = model.iter().filter(|&&seq| (at..=to).contains(&seq)).count();
            prop_assert_eq!(ranges.count_within(at, to), within as u64);
            let gaps = ranges.iter().zip(ranges.iter().skip(1)).all(|(low, high)| low.1 + 1 < high.0);
            prop_assert!(gaps);

            let expected = (at + 1..).find(|seq| !model.contains(seq)).unwrap_or(0) - 1;
            let other: BTreeSet<u64> = (at..=to).chain(50..=55).collect();
            let common = other.intersection(&model).filter(|&seq| (3..=58).contains(seq)).count();
            let other = Ranges::new(vec![(50, 55), (at, to)]);
            prop_assert_eq!(ranges.count_common(&other, 3, 58), common as u64);
            prop_assert_eq!(other.count_common(&ranges, 3, 58), common as u64);

            prop_assert_eq!(ranges.absorb(at), expected);
            prop_assert_eq!(ranges.count_within(0, 99), model.iter().filter(|&&seq| seq > expected).count() as u64);
        }
    }
}
