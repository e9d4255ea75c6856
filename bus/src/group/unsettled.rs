//! The unsettled events of a group, by position. Most of them are close together, in a ring that costs a few
//! nanoseconds; what stays behind while thousands of later ones are settled moves to a tree, so memory follows the
//! number of unsettled events and not the distance between them.

use std::collections::{BTreeMap, VecDeque};

/// The most positions that the ring spans.
const RING_SPAN: usize = 4_096;

/// A map from positions to `T` that grows only at its upper end.
#[derive(Debug, Clone)]
pub(crate) struct Unsettled<T> {
    /// Those below the ring.
    stragglers: BTreeMap<u64, T>,
    /// The position of the ring's first place.
    base: u64,
    /// Never begins with an empty place.
    ring: VecDeque<Option<T>>,
    /// How many places of the ring are taken.
    in_ring: usize,
}

impl<T> Unsettled<T> {
    pub(crate) fn new() -> Self {
        Self {
            stragglers: BTreeMap::new(),
            base: 0,
            ring: VecDeque::new(),
            in_ring: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.stragglers.len() + self.in_ring
    }

    /// Adds a position above all that were ever added.
    pub(crate) fn push(&mut self, seq: u64, value: T) {
        let gap = seq.saturating_sub(self.base + self.ring.len() as u64);
        if gap as usize >= RING_SPAN {
            while !self.ring.is_empty() {
                self.retire_first();
            }
        }
        if self.ring.is_empty() {
            self.base = seq;
        } else {
            self.ring.extend((0..gap).map(|_| None));
        }
        self.ring.push_back(Some(value));
        self.in_ring += 1;
        while self.ring.len() > RING_SPAN {
            self.retire_first();
        }
    }

    /// Adds a position that may be below others.
    pub(crate) fn insert(&mut self, seq: u64, value: T) {
        match self.place(seq) {
            Some(place) if place < self.ring.len() => {
                let before = self.ring[place].replace(value);
                self.in_ring += usize::from(before.is_none());
            }
            Some(_) => self.push(seq, value),
            None => drop(self.stragglers.insert(seq, value)),
        }
    }

    pub(crate) fn get(&self, seq: u64) -> Option<&T> {
        match self.place(seq) {
            Some(place) => self.ring.get(place)?.as_ref(),
            None => self.stragglers.get(&seq),
        }
    }

    pub(crate) fn get_mut(&mut self, seq: u64) -> Option<&mut T> {
        match self.place(seq) {
            Some(place) => self.ring.get_mut(place)?.as_mut(),
            None => self.stragglers.get_mut(&seq),
        }
    }

    pub(crate) fn remove(&mut self, seq: u64) -> Option<T> {
        let Some(place) = self.place(seq) else {
            return self.stragglers.remove(&seq);
        };
        let removed = self.ring.get_mut(place)?.take()?;
        self.in_ring -= 1;
        self.drop_empty_front();
        Some(removed)
    }

    /// The lowest position.
    pub(crate) fn first(&self) -> Option<u64> {
        match self.stragglers.first_key_value() {
            Some((&seq, _)) => Some(seq),
            None => (!self.ring.is_empty()).then_some(self.base),
        }
    }

    /// All of them in the order of positions.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &T)> {
        let ring = self.ring.iter().zip(self.base..);
        let ring = ring.filter_map(|(place, seq)| Some((seq, place.as_ref()?)));
        self.stragglers
            .iter()
            .map(|(&seq, value)| (seq, value))
            .chain(ring)
    }

    /// The same, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u64, &mut T)> {
        let ring = self.ring.iter_mut().zip(self.base..);
        let ring = ring.filter_map(|(place, seq)| Some((seq, place.as_mut()?)));
        self.stragglers
            .iter_mut()
            .map(|(&seq, value)| (seq, value))
            .chain(ring)
    }

    fn place(&self, seq: u64) -> Option<usize> {
        seq.checked_sub(self.base).map(|place| place as usize)
    }

    /// Moves the ring's first event to the tree.
    fn retire_first(&mut self) {
        if let Some(Some(value)) = self.ring.pop_front() {
            self.stragglers.insert(self.base, value);
            self.in_ring -= 1;
        }
        self.base += 1;
        self.drop_empty_front();
    }

    fn drop_empty_front(&mut self) {
        while let Some(None) = self.ring.front() {
            self.ring.pop_front();
            self.base += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Op {
        Push { gap: u64 },
        Remove(prop::sample::Index),
        Miss(u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            6 => Just(Op::Push { gap: 0 }),
            2 => (0u64..3_000).prop_map(|gap| Op::Push { gap }),
            1 => (4_000u64..10_000).prop_map(|gap| Op::Push { gap }),
            6 => any::<prop::sample::Index>().prop_map(Op::Remove),
            1 => any::<u64>().prop_map(Op::Miss),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_a_tree(ops in prop::collection::vec(op(), 0..300)) {
            let mut model = BTreeMap::new();
            let mut unsettled = Unsettled::new();
            let mut next = 1;
            for op in ops {
                match op {
                    Op::Push { gap } => {
                        next += gap;
                        model.insert(next, next * 2);
                        unsettled.push(next, next * 2);
                        next += 1;
                    }
                    Op::Remove(index) if !model.is_empty() => {
                        let seq = *model.keys().nth(index.index(model.len())).expect("in range");
                        prop_assert_eq!(unsettled.remove(seq), model.remove(&seq));
                        prop_assert_eq!(unsettled.remove(seq), None);
                    }
                    Op::Remove(_) => {}
                    Op::Miss(seq) => {
                        prop_assert_eq!(unsettled.get(seq), model.get(&seq));
                        prop_assert_eq!(unsettled.get_mut(seq), model.get_mut(&seq));
                    }
                }
                prop_assert_eq!(unsettled.len(), model.len());
                prop_assert_eq!(unsettled.first(), model.keys().next().copied());
                prop_assert!(unsettled.ring.len() <= RING_SPAN);
            }
            let all: Vec<(u64, u64)> = unsettled.iter().map(|(seq, &value)| (seq, value)).collect();
            let expected: Vec<(u64, u64)> = model.into_iter().collect();
            prop_assert_eq!(all, expected);
        }
    }
}
