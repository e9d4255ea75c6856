//! The record of segments, the file `SEGMENTS`: to which log the folder belongs, up to which number segments are known
//! to have existed, and which of those were removed on purpose. It makes a segment that is missing noticeable.
//!
//! It is written before a segment is removed and before one is sealed, so it never says less than is true.

use crate::files::{Files, read_whole, write_whole};
use std::io;
use std::ops::RangeInclusive;
use xxhash_rust::xxh3::xxh3_64;

pub(crate) const SEGMENTS_NAME: &str = "SEGMENTS";
const MAGIC: &[u8; 8] = b"PROMSEG\n";

/// Which segments a log has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentSet {
    pub(crate) log_id: u64,
    /// A segment of this number is known to have existed; 0 for none.
    pub(crate) highest: u64,
    /// Numbers that were removed, merged or given up, in order, with space between them.
    removed: Vec<RangeInclusive<u64>>,
}

impl SegmentSet {
    pub(crate) fn new(log_id: u64) -> Self {
        Self {
            log_id,
            highest: 0,
            removed: Vec::new(),
        }
    }

    /// Reads the record; `None` where there is none or it makes no sense.
    pub(crate) fn read(files: &dyn Files) -> Option<Self> {
        Self::decode(&read_whole(files, SEGMENTS_NAME).ok()?)
    }

    pub(crate) fn write(&self, files: &dyn Files) -> io::Result<()> {
        write_whole(files, SEGMENTS_NAME, &self.encode())
    }

    /// Whether the segment was removed on purpose.
    pub(crate) fn is_removed(&self, number: u64) -> bool {
        let behind = self.removed.partition_point(|range| *range.end() < number);
        let range = self.removed.get(behind);
        range.is_some_and(|range| range.contains(&number))
    }

    /// Takes in that segments are gone for good.
    pub(crate) fn remove(&mut self, numbers: RangeInclusive<u64>) {
        if numbers.is_empty() {
            return;
        }
        let (mut first, mut last) = numbers.into_inner();
        // Neighbours become one range, so that the record stays short.
        let touches = |range: &RangeInclusive<u64>| {
            *range.start() <= last.saturating_add(1) && first <= range.end().saturating_add(1)
        };
        let (touching, apart): (Vec<_>, Vec<_>) = self.removed.drain(..).partition(touches);
        for range in touching {
            first = first.min(*range.start());
            last = last.max(*range.end());
        }
        self.removed = apart;
        let at = self.removed.partition_point(|range| *range.end() < first);
        self.removed.insert(at, first..=last);
    }

    /// The numbers from 1 to `to` that are neither `present`, which are ranges in order, nor removed.
    pub(crate) fn missing(
        &self,
        present: &[RangeInclusive<u64>],
        to: u64,
    ) -> Vec<RangeInclusive<u64>> {
        let mut explained: Vec<_> = present.iter().chain(&self.removed).cloned().collect();
        explained.sort_unstable_by_key(|range| *range.start());
        let mut missing = Vec::new();
        let mut next = 1;
        for range in explained {
            if *range.start() > next && next <= to {
                missing.push(next..=(range.start() - 1).min(to));
            }
            next = next.max(range.end().saturating_add(1));
        }
        if next <= to {
            missing.push(next..=to);
        }
        missing
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&self.log_id.to_le_bytes());
        out.extend_from_slice(&self.highest.to_le_bytes());
        for range in &self.removed {
            out.extend_from_slice(&range.start().to_le_bytes());
            out.extend_from_slice(&range.end().to_le_bytes());
        }
        out.extend_from_slice(&xxh3_64(&out).to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (content, checksum) = bytes.split_at_checked(bytes.len().checked_sub(8)?)?;
        if !content.starts_with(MAGIC) || checksum != xxh3_64(content).to_le_bytes() {
            return None;
        }
        let u64_of = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?));
        let ranges = content.get(24..)?.chunks_exact(16);
        let removed = ranges.map(|range| Some(u64_of(range)?..=u64_of(&range[8..])?));
        Some(Self {
            log_id: u64_of(&content[8..])?,
            highest: u64_of(&content[16..])?,
            removed: removed.collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn records_round_trip_notice_flips_and_know_what_was_removed(
            log_id: u64, highest: u64,
            removals in proptest::collection::vec((1..60u64, 0..6u64), 0..12),
            flip: proptest::sample::Index,
        ) {
            let mut set = SegmentSet { highest, ..SegmentSet::new(log_id) };
            for (first, more) in &removals {
                set.remove(*first..=first + more);
            }
            let is_removed = |number: u64| {
                removals.iter().any(|(first, more)| (*first..=first + more).contains(&number))
            };
            for number in 0..70 {
                prop_assert_eq!(set.is_removed(number), is_removed(number));
            }
            for pair in set.removed.windows(2) {
                prop_assert!(pair[0].end() + 1 < *pair[1].start());
            }
            let missing: Vec<u64> = set.missing(&[5..=9, 20..=20], 40).into_iter().flatten().collect();
            let is_present = |number: &u64| (5..=9).contains(number) || *number == 20;
            let expected: Vec<u64> = (1..=40).filter(|n| !is_removed(*n) && !is_present(n)).collect();
            prop_assert_eq!(missing, expected);
            let mut bytes = set.encode();
            prop_assert_eq!(SegmentSet::decode(&bytes), Some(set));
            let bit = flip.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(SegmentSet::decode(&bytes), None);
        }
    }
}
