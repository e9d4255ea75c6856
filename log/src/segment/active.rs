//! A segment that is not sealed yet: its records are in commit order, and what is needed to find them is in memory.

use crate::files::File;
use crate::hashing::GivenMap;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A segment that is being written, or waits to be sealed.
pub(crate) struct ActiveSegment {
    pub(crate) number: u64,
    pub(crate) file: Arc<dyn File>,
    /// By topic number.
    pub(crate) runs: GivenMap<u32, ActiveRun>,
    /// Whether its checkpoint and its name are synced. Until then a crash may leave nothing of it, so the segment
    /// before it is not sealed.
    pub(crate) is_durable: bool,
}

/// The events of one topic in such a segment.
#[derive(Default)]
pub(crate) struct ActiveRun {
    /// The newest position of the topic that readers see.
    pub(crate) tail: Arc<AtomicU64>,
    /// In the order of positions.
    pub(crate) entries: Vec<ActiveEntry>,
    /// Apart, because there may be very many runs without any of it.
    given: Option<Box<GivenByPublishers>>,
    pub(crate) bytes: u64,
    pub(crate) min_ts: u64,
    pub(crate) max_ts: u64,
    /// Whether ts never falls from one event to the next.
    pub(crate) ordered: bool,
    /// Whether a publisher chose the id of one of the events.
    pub(crate) has_client_ids: bool,
}

/// Keys and times of a run's events.
#[derive(Default)]
struct GivenByPublishers {
    /// The latest position of each key.
    keys: HashMap<Box<str>, u64>,
    /// When events were stored whose publisher gave the ts, by position.
    client_ts_stored: Vec<(u64, u64)>,
}

/// Where one event is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActiveEntry {
    pub(crate) seq: u64,
    pub(crate) ts: u64,
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

impl ActiveEntry {
    /// The bytes of the segment that it has.
    pub(crate) fn range(&self) -> Range<u64> {
        let start = u64::from(self.offset);
        start..start + u64::from(self.bytes)
    }
}

/// How many of the first places are read together: those between which there are at most `gap_bytes`, up to `most_bytes`
/// in all, and one at least.
pub(crate) fn near<T>(
    places: &[T],
    range_of: impl Fn(&T) -> Range<u64>,
    gap_bytes: u64,
    most_bytes: u64,
) -> usize {
    let start = places.first().map_or(0, |first| range_of(first).start);
    let is_near = |pair: &&[T]| {
        let (before, next) = (range_of(&pair[0]), range_of(&pair[1]));
        let gap = next.start.checked_sub(before.end);
        gap.is_some_and(|gap| gap <= gap_bytes) && next.end - start <= most_bytes
    };
    1 + places.windows(2).take_while(is_near).count()
}

/// Memory that the entries of sealed segments had, for runs that become as large. An allocator to which large memory is
/// given back keeps it for what is small, and takes more from the system for the next run.
#[derive(Default)]
pub(crate) struct SpareEntries(Vec<Vec<ActiveEntry>>);

/// A run with fewer entries grows as it likes.
const MANY_ENTRIES: usize = 8_192;
/// What is kept at most: two of these, which are 12 MiB.
const MAX_SPARES: usize = 2;
const MAX_SPARE_ENTRIES: usize = 262_144;

impl SpareEntries {
    /// Takes the memory that is worth keeping from a segment that is sealed. The rest may be much, and is let go of by
    /// the caller when no lock is held.
    pub(crate) fn keep(&mut self, segment: &mut ActiveSegment) {
        let is_wanted = |entries: &Vec<ActiveEntry>| {
            (MANY_ENTRIES + 1..=MAX_SPARE_ENTRIES).contains(&entries.capacity())
        };
        let runs = segment.runs.values_mut().map(|run| &mut run.entries);
        let room = MAX_SPARES - self.0.len();
        let kept = runs.filter(|entries| is_wanted(entries)).take(room);
        self.0.extend(kept.map(std::mem::take));
    }

    /// Empty memory for more than `count` entries.
    fn take(&mut self, count: usize) -> Option<Vec<ActiveEntry>> {
        let place = self.0.iter().position(|spare| spare.capacity() > count)?;
        let mut spare = self.0.swap_remove(place);
        spare.clear();
        Some(spare)
    }
}

impl ActiveSegment {
    /// One that is on the disk.
    pub(crate) fn new(number: u64, file: Arc<dyn File>) -> Self {
        Self {
            number,
            file,
            runs: GivenMap::default(),
            is_durable: true,
        }
    }

    /// One that was just made and of which nothing is synced.
    pub(crate) fn unsynced(number: u64, file: Arc<dyn File>) -> Self {
        Self {
            is_durable: false,
            ..Self::new(number, file)
        }
    }
}

impl ActiveRun {
    /// An empty one of the topic with this tail.
    pub(crate) fn new(tail: Arc<AtomicU64>) -> Self {
        Self {
            tail,
            ..Self::default()
        }
    }

    /// Moves a run that has become large to spare memory, before it needs more.
    pub(crate) fn preallocate(&mut self, spares: &mut SpareEntries) {
        let count = self.entries.len();
        if count >= MANY_ENTRIES
            && count == self.entries.capacity()
            && let Some(mut room) = spares.take(count)
        {
            room.append(&mut self.entries);
            self.entries = room;
        }
    }

    /// Takes in the next event of the topic.
    pub(crate) fn push(&mut self, entry: ActiveEntry, key: Option<&str>) {
        if self.entries.is_empty() {
            (self.min_ts, self.max_ts, self.ordered) = (entry.ts, entry.ts, true);
        }
        self.ordered &= entry.ts >= self.max_ts;
        self.min_ts = self.min_ts.min(entry.ts);
        self.max_ts = self.max_ts.max(entry.ts);
        self.bytes += u64::from(entry.bytes);
        if self.entries.is_empty() {
            // Of very many topics most have one event in a segment, and room for four would be three too many.
            self.entries.reserve_exact(1);
        }
        self.entries.push(entry);
        let Some(key) = key else {
            return;
        };
        let keys = &mut self.given.get_or_insert_default().keys;
        match keys.get_mut(key) {
            Some(latest) => *latest = entry.seq,
            None => {
                keys.insert(key.into(), entry.seq);
            }
        }
    }

    /// The latest position of a key.
    pub(crate) fn latest_of_key(&self, key: &str) -> Option<u64> {
        self.given.as_ref()?.keys.get(key).copied()
    }

    /// The latest position of each key, in no order.
    pub(crate) fn latest_of_keys(&self) -> impl Iterator<Item = (&str, u64)> {
        let keys = self.given.iter().flat_map(|given| given.keys.iter());
        keys.map(|(key, seq)| (&**key, *seq))
    }

    /// Notes when the event was stored that was pushed last, if its publisher gave the ts.
    pub(crate) fn note_stored(&mut self, seq: u64, stored_ms: Option<u64>) {
        if let Some(stored_ms) = stored_ms {
            let stored = &mut self.given.get_or_insert_default().client_ts_stored;
            stored.push((seq, stored_ms));
        }
    }

    /// When the event of an entry was stored.
    pub(crate) fn stored_ms(&self, entry: &ActiveEntry) -> u64 {
        let Some(stored) = self.given.as_ref().map(|given| &given.client_ts_stored) else {
            return entry.ts;
        };
        let found = stored.binary_search_by_key(&entry.seq, |(seq, _)| *seq);
        found.map_or(entry.ts, |at| stored[at].1)
    }

    /// Whether its memory is worth keeping for another run.
    pub(crate) fn is_large(&self) -> bool {
        self.entries.capacity() > MANY_ENTRIES
    }

    /// Whether the entries say everything that an index has to say.
    pub(crate) fn is_nameless(&self) -> bool {
        self.given.is_none() && !self.has_client_ids
    }

    /// The entries from `seq` on.
    pub(crate) fn entries_from(&self, seq: u64) -> &[ActiveEntry] {
        let start = self.entries.partition_point(|entry| entry.seq < seq);
        &self.entries[start..]
    }

    /// The first entry at or after `ts`, in the order of positions, from `seq` on.
    pub(crate) fn first_at_ts(&self, ts: u64, seq: u64) -> Option<u64> {
        let entries = self.entries_from(seq);
        let found = if self.ordered {
            entries.get(entries.partition_point(|entry| entry.ts < ts))
        } else {
            entries.iter().find(|entry| entry.ts >= ts)
        };
        found.map(|entry| entry.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{Files, OsFiles};

    fn filled(run: &mut ActiveRun, spares: &mut SpareEntries, count: usize) {
        for seq in 1..=count as u64 {
            run.preallocate(spares);
            let (ts, offset, bytes) = (seq, seq as u32, 1);
            let entry = ActiveEntry {
                seq,
                ts,
                offset,
                bytes,
            };
            run.push(entry, None);
        }
    }

    fn sealed(run: ActiveRun) -> ActiveSegment {
        let folder = tempfile::tempdir().unwrap();
        let file = OsFiles::open(folder.path()).unwrap().create("one").unwrap();
        let mut segment = ActiveSegment::new(1, file);
        segment.runs.insert(1, run);
        segment
    }

    #[test]
    fn a_large_run_goes_on_in_the_memory_of_a_sealed_one() {
        let mut spares = SpareEntries::default();
        let mut first = ActiveRun::default();
        filled(&mut first, &mut spares, 3 * MANY_ENTRIES);
        let room = first.entries.capacity();
        spares.keep(&mut sealed(first));
        assert_eq!(spares.0.len(), 1);

        let mut second = ActiveRun::default();
        filled(&mut second, &mut spares, MANY_ENTRIES + 1);
        assert_eq!(second.entries.capacity(), room);
        assert!(spares.0.is_empty());
        let seqs = second.entries.iter().map(|entry| entry.seq);
        assert!(seqs.eq(1..=MANY_ENTRIES as u64 + 1));
    }

    #[test]
    fn what_is_small_or_huge_or_too_many_is_not_kept() {
        let mut spares = SpareEntries::default();
        for room in [10, MAX_SPARE_ENTRIES + 1, 20_000, 20_000, 20_000] {
            let run = ActiveRun {
                entries: Vec::with_capacity(room),
                ..ActiveRun::default()
            };
            spares.keep(&mut sealed(run));
        }
        assert_eq!(spares.0.len(), MAX_SPARES);
        let kept = spares.0.iter().map(Vec::capacity);
        assert!(kept.eq([20_000, 20_000]));
    }
}
