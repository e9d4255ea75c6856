//! The directory of an index: one entry for each topic that has events in the segment, in the order of topic numbers.
//!
//! ```text
//! 0 entries u32 | 4 bytes of an entry u32 | entries | for each entry u8 and its topic's name
//! entry: checksum u32 of what is behind it | topic u32 | first seq, last seq, events, bytes, lowest ts, highest ts,
//!        superseded, tombstones, first and last stored u64 each | data, points, order as two u32 each | 1 if ts never falls, else 0 u32
//!        | the first 24 bytes of the highest client id, filled up with zeros
//! ```
//! Entries are of one width and check themselves, so that one can be read without the others. Version 1 has no head, and
//! entries that begin with topic u32, u8 and name, u8 whether ts never falls, and then the numbers as above.

use std::ops::Range;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes before the first entry.
pub(super) const HEAD_BYTES: usize = 8;
/// Bytes of an entry.
pub(super) const ENTRY_BYTES: usize = 140;
const CHECKSUM_BYTES: usize = 4;

/// The beginning of a client id, filled up with zeros. An id whose beginning is higher is a higher id.
pub(crate) type IdPrefix = [u8; 24];

/// The beginning of an id.
pub(crate) fn prefix_of(id: &[u8]) -> IdPrefix {
    let mut prefix = IdPrefix::default();
    let length = id.len().min(prefix.len());
    prefix[..length].copy_from_slice(&id[..length]);
    prefix
}

/// The events of one topic in a sealed segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunInfo {
    pub(crate) topic: u32,
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    pub(crate) events: u64,
    pub(crate) bytes: u64,
    pub(crate) min_ts: u64,
    pub(crate) max_ts: u64,
    /// Whether ts never falls from one event to the next; if it does, `order` lists the events by time.
    pub(crate) ordered: bool,
    /// Where its records are in the data.
    pub(crate) data: Range<u32>,
    /// Its points, counted in points.
    pub(crate) points: Range<u32>,
    /// Its part of the order, counted in events.
    pub(crate) order: Range<u32>,
    /// Events for whose key the segment itself has a newer one.
    pub(crate) superseded: u64,
    /// Tombstones among the latest events of their keys.
    pub(crate) tombstones: u64,
    /// When the first and the last of its events were stored; 0 and all ones where that is not known.
    pub(crate) min_stored_ms: u64,
    pub(crate) max_stored_ms: u64,
    /// The beginning of its highest client id: all zeros if it has none, all ones where that is not known.
    pub(crate) highest_id: IdPrefix,
}

/// Encodes a directory.
pub(super) fn write_all<'a>(
    runs: impl ExactSizeIterator<Item = (&'a RunInfo, &'a str)>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD_BYTES + runs.len() * (ENTRY_BYTES + 16));
    out.extend_from_slice(&(runs.len() as u32).to_le_bytes());
    out.extend_from_slice(&(ENTRY_BYTES as u32).to_le_bytes());
    let mut names = Vec::new();
    for (run, name) in runs {
        run.write(&mut out);
        names.push(name.len() as u8);
        names.extend_from_slice(name.as_bytes());
    }
    out.extend_from_slice(&names);
    out
}

/// All runs of a directory of this version; `None` where it makes no sense.
pub(super) fn read_all(bytes: &[u8], version: u16) -> Option<Vec<RunInfo>> {
    if version == 1 {
        let named = read_version_1(bytes)?;
        return Some(named.into_iter().map(|(run, _)| run).collect());
    }
    let (entries, _) = split(bytes)?;
    entries
        .chunks_exact(ENTRY_BYTES)
        .map(RunInfo::read)
        .collect()
}

/// The names of the topics of all runs.
pub(super) fn read_names(bytes: &[u8], version: u16) -> Option<Vec<Arc<str>>> {
    if version == 1 {
        let named = read_version_1(bytes)?;
        return Some(named.into_iter().map(|(_, name)| name).collect());
    }
    let (entries, mut rest) = split(bytes)?;
    let count = entries.len() / ENTRY_BYTES;
    (0..count).map(|_| read_name(&mut rest)).collect()
}

/// The entries and what is behind them.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = bytes;
    let count = read_u32(&mut rest)? as usize;
    let width = read_u32(&mut rest)? as usize;
    (width == ENTRY_BYTES).then(|| rest.split_at_checked(count.checked_mul(ENTRY_BYTES)?))?
}

impl RunInfo {
    fn numbers(&self) -> [u64; 10] {
        [
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
        ]
    }

    fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; CHECKSUM_BYTES]);
        out.extend_from_slice(&self.topic.to_le_bytes());
        for number in self.numbers() {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for range in [&self.data, &self.points, &self.order] {
            out.extend_from_slice(&range.start.to_le_bytes());
            out.extend_from_slice(&range.end.to_le_bytes());
        }
        out.extend_from_slice(&u32::from(self.ordered).to_le_bytes());
        out.extend_from_slice(&self.highest_id);
        let checksum = xxh3_64(&out[start + CHECKSUM_BYTES..]) as u32;
        out[start..start + CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
    }

    /// One entry; `None` if it is damaged.
    pub(super) fn read(entry: &[u8]) -> Option<Self> {
        let mut rest = entry;
        if read_u32(&mut rest)? != xxh3_64(rest) as u32 {
            return None;
        }
        let topic = read_u32(&mut rest)?;
        let mut run = Self::read_numbers(topic, &mut rest, 2)?;
        run.ordered = read_u32(&mut rest)? != 0;
        run.highest_id = take(&mut rest, size_of::<IdPrefix>())?.try_into().ok()?;
        Some(run)
    }

    /// What both versions have in the same form. Whether ts falls is told elsewhere; version 1 tells neither when its
    /// events were stored nor the highest id.
    fn read_numbers(topic: u32, rest: &mut &[u8], version: u16) -> Option<Self> {
        let mut numbers = [0; 10];
        let count = if version == 1 { 8 } else { 10 };
        numbers[9] = u64::MAX;
        for number in &mut numbers[..count] {
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
            first_seq,
            last_seq,
            events,
            bytes,
            min_ts,
            max_ts,
            ordered: true,
            data: range()?,
            points: range()?,
            order: range()?,
            superseded,
            tombstones,
            min_stored_ms,
            max_stored_ms,
            highest_id: [u8::MAX; 24],
        })
    }
}

fn read_version_1(mut rest: &[u8]) -> Option<Vec<(RunInfo, Arc<str>)>> {
    let mut runs = Vec::new();
    while !rest.is_empty() {
        let topic = read_u32(&mut rest)?;
        let name = read_name(&mut rest)?;
        let ordered = take(&mut rest, 1)?[0] != 0;
        let run = RunInfo::read_numbers(topic, &mut rest, 1)?;
        runs.push((RunInfo { ordered, ..run }, name));
    }
    Some(runs)
}

fn read_name(rest: &mut &[u8]) -> Option<Arc<str>> {
    let length = take(rest, 1)?[0];
    let name = std::str::from_utf8(take(rest, usize::from(length))?).ok()?;
    Some(name.into())
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

    fn runs() -> impl Strategy<Value = Vec<(RunInfo, String)>> {
        let run = (
            "[a-z.]{1,30}",
            any::<[u64; 10]>(),
            any::<[u32; 7]>(),
            any::<bool>(),
        );
        let run = run.prop_map(|(name, wide, narrow, ordered)| {
            let info = RunInfo {
                topic: narrow[6],
                first_seq: wide[0],
                last_seq: wide[1],
                events: wide[2],
                bytes: wide[3],
                min_ts: wide[4],
                max_ts: wide[5],
                superseded: wide[6],
                tombstones: wide[7],
                min_stored_ms: wide[8],
                max_stored_ms: wide[9],
                highest_id: prefix_of(name.as_bytes()),
                ordered,
                data: narrow[0]..narrow[1],
                points: narrow[2]..narrow[3],
                order: narrow[4]..narrow[5],
            };
            (info, name)
        });
        prop::collection::vec(run, 0..5)
    }

    /// A directory as version 1 wrote it.
    fn version_1(runs: &[(RunInfo, String)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (run, name) in runs {
            out.extend_from_slice(&run.topic.to_le_bytes());
            out.push(name.len() as u8);
            out.extend_from_slice(name.as_bytes());
            out.push(u8::from(run.ordered));
            let mut entry = Vec::new();
            run.write(&mut entry);
            let numbers = 8..8 + 8 * 8;
            let ranges = numbers.end + 16..ENTRY_BYTES - 4 - 24;
            out.extend_from_slice(&entry[numbers]);
            out.extend_from_slice(&entry[ranges]);
        }
        out
    }

    proptest! {
        #[test]
        fn directories_round_trip_in_both_versions(named in runs()) {
            let (runs, names): (Vec<RunInfo>, Vec<Arc<str>>) =
                named.iter().map(|(run, name)| (run.clone(), Arc::from(&**name))).unzip();
            let both = named.iter().map(|(run, name)| (run, &**name));
            let unknown = runs.iter().map(|run| RunInfo {
                highest_id: [u8::MAX; 24], min_stored_ms: 0, max_stored_ms: u64::MAX, ..run.clone()
            });
            let old_runs: Vec<RunInfo> = unknown.collect();
            let (new, old) = (write_all(both), version_1(&named));
            for (bytes, version, runs) in [(new, 2, runs.clone()), (old, 1, old_runs)] {
                prop_assert_eq!(read_all(&bytes, version), Some(runs));
                prop_assert_eq!(read_names(&bytes, version), Some(names.clone()));
            }
        }

        #[test]
        fn a_higher_beginning_means_a_higher_id(one: Vec<u8>, other: Vec<u8>) {
            if prefix_of(&one) > prefix_of(&other) {
                prop_assert!(one > other);
            }
        }

        #[test]
        fn a_flipped_bit_of_an_entry_is_noticed(named in runs(), at: prop::sample::Index, bit in 0..8u8) {
            prop_assume!(!named.is_empty());
            let mut entry = Vec::new();
            named[0].0.write(&mut entry);
            entry[at.index(ENTRY_BYTES)] ^= 1 << bit;
            prop_assert_eq!(RunInfo::read(&entry), None);
        }

        #[test]
        fn garbage_is_refused_without_panic(bytes: Vec<u8>) {
            for version in [1, 2] {
                let _ = read_all(&bytes, version);
                let _ = read_names(&bytes, version);
            }
            let _ = RunInfo::read(&bytes);
        }
    }
}
