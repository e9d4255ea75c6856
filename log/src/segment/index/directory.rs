//! The directory of an index: one entry for each topic that has events in the segment.

use std::ops::Range;
use std::sync::Arc;

/// The events of one topic in a sealed segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunInfo {
    pub(crate) topic: u32,
    pub(crate) name: Arc<str>,
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    pub(crate) events: u64,
    pub(crate) bytes: u64,
    pub(crate) min_ts: u64,
    pub(crate) max_ts: u64,
    /// Whether ts never falls from one event to the next; if it does, `order` lists the events by time.
    pub(crate) ordered: bool,
    /// Where its records lie in the data.
    pub(crate) data: Range<u32>,
    /// Its points, counted in points.
    pub(crate) points: Range<u32>,
    /// Its part of the order, counted in events.
    pub(crate) order: Range<u32>,
    /// Events for whose key the segment itself has a newer one.
    pub(crate) superseded: u64,
    /// Tombstones among the latest events of their keys.
    pub(crate) tombstones: u64,
    /// When the first and the last of its events were stored.
    pub(crate) min_stored_ms: u64,
    pub(crate) max_stored_ms: u64,
}

impl RunInfo {
    /// About how many of its events are at or behind `first_seq`: exact unless compaction left gaps.
    pub(crate) fn kept_from(&self, first_seq: u64) -> u64 {
        let positions = self.last_seq - self.first_seq + 1;
        let kept = (self.last_seq + 1).saturating_sub(first_seq).min(positions);
        match kept {
            _ if kept == positions => self.events,
            _ => (self.events * kept).div_ceil(positions),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.topic.to_le_bytes());
        out.push(self.name.len() as u8);
        out.extend_from_slice(self.name.as_bytes());
        out.push(u8::from(self.ordered));
        for number in [
            self.first_seq,
            self.last_seq,
            self.events,
            self.bytes,
            self.min_ts,
            self.max_ts,
            self.superseded,
            self.tombstones,
            self.min_stored_ms,
            self.max_stored_ms,
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for range in [&self.data, &self.points, &self.order] {
            out.extend_from_slice(&range.start.to_le_bytes());
            out.extend_from_slice(&range.end.to_le_bytes());
        }
    }

    /// Reads a whole directory; `None` where it makes no sense.
    pub(crate) fn read_all(mut rest: &[u8]) -> Option<Vec<Self>> {
        let mut runs = Vec::new();
        while !rest.is_empty() {
            runs.push(Self::read(&mut rest)?);
        }
        Some(runs)
    }

    fn read(rest: &mut &[u8]) -> Option<Self> {
        let topic = read_u32(rest)?;
        let length = take(rest, 1)?[0];
        let name = std::str::from_utf8(take(rest, usize::from(length))?).ok()?;
        let ordered = take(rest, 1)?[0] != 0;
        let mut numbers = [0; 10];
        for number in &mut numbers {
            *number = u64::from_le_bytes(take(rest, 8)?.try_into().ok()?);
        }
        let mut range = || Some(read_u32(rest)?..read_u32(rest)?);
        let [
            first_seq,
            last_seq,
            events,
            bytes,
            min_ts,
            max_ts,
            superseded,
            tombstones,
            min_stored_ms,
            max_stored_ms,
        ] = numbers;
        Some(Self {
            topic,
            name: name.into(),
            first_seq,
            last_seq,
            events,
            bytes,
            min_ts,
            max_ts,
            ordered,
            data: range()?,
            points: range()?,
            order: range()?,
            superseded,
            tombstones,
            min_stored_ms,
            max_stored_ms,
        })
    }
}

fn take<'a>(rest: &mut &'a [u8], bytes: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(bytes)?;
    *rest = left;
    Some(taken)
}

fn read_u32(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(take(rest, 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn directories_round_trip(runs in proptest::collection::vec(
            ("[a-z.]{1,30}", any::<[u64; 10]>(), any::<[u32; 7]>(), any::<bool>()), 0..5,
        )) {
            let runs: Vec<RunInfo> = runs.into_iter().map(|(name, wide, narrow, ordered)| RunInfo {
                topic: narrow[6],
                name: name.into(),
                first_seq: wide[0], last_seq: wide[1], events: wide[2], bytes: wide[3],
                min_ts: wide[4], max_ts: wide[5], superseded: wide[6], tombstones: wide[7],
                min_stored_ms: wide[8], max_stored_ms: wide[9],
                ordered,
                data: narrow[0]..narrow[1], points: narrow[2]..narrow[3], order: narrow[4]..narrow[5],
            }).collect();
            let mut out = Vec::new();
            runs.iter().for_each(|run| run.write(&mut out));
            prop_assert_eq!(RunInfo::read_all(&out), Some(runs));
        }

        #[test]
        fn garbage_is_refused_without_panic(bytes: Vec<u8>) {
            let _ = RunInfo::read_all(&bytes);
        }
    }
}
