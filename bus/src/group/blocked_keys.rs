//! Events that wait behind others of their key and are not kept in the group's window: of each such key only the first
//! position is remembered, and its events are read again when the key is free. So a key whose first event keeps failing
//! does not stop the others, however many events wait behind it. The same goes for partitions whose member has no room.
//!
//! A position is parked when its key is here, it is no lower than the key's first parked position, and the group has
//! read it. Which positions these are is not remembered: the events say it.

use super::lanes::Lane;
use super::ranges::Ranges;
use super::record::BlockedKeyRecord;
use std::collections::{BTreeMap, BTreeSet};

/// The most keys that are parked; beyond it waiting events take room in the window.
const MAX_BLOCKED_KEYS: usize = 4_096;

/// The keys whose events are parked.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockedKeys {
    keys: BTreeMap<Lane, BlockedKey>,
    /// Keys that were parked when the group was stored: their events look settled and are not.
    loaded: BTreeMap<Lane, Vec<Loaded>>,
}

#[derive(Debug, Clone)]
struct BlockedKey {
    key: String,
    /// Where it is a partition: one of so many.
    partitions: Option<u32>,
    from_seq: u64,
    to_seq: u64,
    events: u64,
    /// Positions of a partition from `from_seq` on that were settled before the group was loaded.
    settled: Ranges,
}

#[derive(Debug, Clone)]
struct Loaded {
    record: BlockedKeyRecord,
    settled: Ranges,
}

impl Loaded {
    fn holds(&self, seq: u64) -> bool {
        let record = &self.record;
        (record.from_seq..=record.to_seq).contains(&seq) && !self.settled.contains(seq)
    }
}

/// What events wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockedBy<'a> {
    Key(&'a str),
    Partition { number: u32, of: u32 },
}

/// A partition that is parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ParkedPartition {
    pub(crate) number: u32,
    pub(crate) of: u32,
    pub(crate) from_seq: u64,
    pub(crate) to_seq: u64,
}

impl ParkedPartition {
    pub(crate) fn lane(&self) -> Lane {
        Lane::of_partition(self.number, self.of)
    }
}

impl BlockedKeys {
    /// The keys as a record has them.
    pub(crate) fn load(&mut self, blocked: &[BlockedKeyRecord]) {
        for one in blocked {
            let lane = match one.partitions {
                None => Lane::of(&one.key),
                Some(of) => Lane::of_partition(one.key.parse().unwrap_or(0), of),
            };
            let loaded = Loaded {
                record: one.clone(),
                settled: Ranges::new(one.settled.clone()),
            };
            self.loaded.entry(lane).or_default().push(loaded);
        }
    }

    /// How many partitions there were where some were parked when the group was stored.
    pub(crate) fn loaded_partition_counts(&self) -> BTreeSet<u32> {
        let loaded = self.loaded.values().flatten();
        loaded.filter_map(|one| one.record.partitions).collect()
    }

    /// The partitions that are parked.
    pub(crate) fn partitions(&self) -> impl Iterator<Item = ParkedPartition> {
        self.keys.values().filter_map(|blocked| {
            Some(ParkedPartition {
                of: blocked.partitions?,
                number: blocked.key.parse().ok()?,
                from_seq: blocked.from_seq,
                to_seq: blocked.to_seq,
            })
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether the record that the group was loaded from has this position parked. It is asked once for each position.
    pub(crate) fn unload(&mut self, lane: Option<Lane>, seq: u64) -> bool {
        let mut loaded = lane.and_then(|lane| self.loaded.get_mut(&lane));
        let mut loaded = loaded.iter_mut().flat_map(|all| all.iter_mut());
        let Some(loaded) = loaded.find(|one| one.holds(seq)) else {
            return false;
        };
        loaded.record.events = loaded.record.events.saturating_sub(1);
        true
    }

    /// Whether any key was parked when the group was stored.
    pub(crate) fn has_loaded(&self) -> bool {
        !self.loaded.is_empty()
    }

    /// Forgets the loaded keys whose positions have all been read again.
    pub(crate) fn passed(&mut self, head: u64) {
        if !self.loaded.is_empty() {
            self.loaded.retain(|_, loaded| {
                loaded.retain(|one| one.record.to_seq > head);
                !loaded.is_empty()
            });
        }
    }

    /// Parks an event, where its key is parked already or `may_begin` and there is room for one more key.
    pub(crate) fn block(
        &mut self,
        lane: Lane,
        by: BlockedBy<'_>,
        seq: u64,
        may_begin: bool,
    ) -> bool {
        if let Some(blocked) = self.keys.get_mut(&lane) {
            blocked.to_seq = seq;
            blocked.events += 1;
            return true;
        }
        if !may_begin || self.keys.len() >= MAX_BLOCKED_KEYS {
            return false;
        }
        let (key, partitions) = match by {
            BlockedBy::Key(key) => (key.to_owned(), None),
            BlockedBy::Partition { number, of } => (number.to_string(), Some(of)),
        };
        let blocked = BlockedKey {
            key,
            partitions,
            from_seq: seq,
            to_seq: seq,
            events: 1,
            settled: Ranges::default(),
        };
        self.keys.insert(lane, blocked);
        true
    }

    /// Takes note of a position that was settled before the group was loaded, where its partition is parked by now.
    pub(crate) fn note_settled(&mut self, lane: Lane, seq: u64) {
        if let Some(blocked) = self.keys.get_mut(&lane) {
            blocked.settled.add(seq, seq);
        }
    }

    /// Whether a position of a parked partition is settled.
    pub(crate) fn is_settled(&self, lane: Lane, seq: u64) -> bool {
        let blocked = self.keys.get(&lane);
        blocked.is_some_and(|blocked| blocked.settled.contains(seq))
    }

    pub(crate) fn is_blocked(&self, lane: Lane) -> bool {
        self.keys.contains_key(&lane)
    }

    /// From where on the events of a key have to be read again.
    pub(crate) fn first_seq(&self, lane: Lane) -> Option<u64> {
        self.keys.get(&lane).map(|blocked| blocked.from_seq)
    }

    /// Up to where a key has parked events.
    pub(crate) fn to_seq(&self, lane: Lane) -> Option<u64> {
        self.keys.get(&lane).map(|blocked| blocked.to_seq)
    }

    /// Everything of a key before `next_seq` was taken out, `taken` events; returns how many are known to be gone, once
    /// none is left.
    pub(crate) fn taken(&mut self, lane: Lane, next_seq: u64, taken: u64) -> u64 {
        let Some(blocked) = self.keys.get_mut(&lane) else {
            return 0;
        };
        blocked.events = blocked.events.saturating_sub(taken);
        blocked.from_seq = next_seq;
        if next_seq <= blocked.to_seq {
            return 0;
        }
        let gone = blocked.events;
        self.keys.remove(&lane);
        gone
    }

    /// The lowest parked position, or one before it.
    pub(crate) fn first(&self) -> Option<u64> {
        let live = self.keys.values().map(|blocked| blocked.from_seq);
        live.min()
    }

    /// How many events are parked behind one key.
    pub(crate) fn waiting(&self, lane: Lane) -> u64 {
        self.keys.get(&lane).map_or(0, |blocked| blocked.events)
    }

    /// How many events are parked with their partition, those not counted that were when the group was stored.
    pub(crate) fn partition_events(&self) -> u64 {
        let parked = self.keys.values().filter(|one| one.partitions.is_some());
        parked.map(|blocked| blocked.events).sum()
    }

    /// How many events are parked.
    pub(crate) fn events(&self) -> u64 {
        let live: u64 = self.keys.values().map(|blocked| blocked.events).sum();
        let loaded = self.loaded.values().flatten();
        live + loaded.map(|one| one.record.events).sum::<u64>()
    }

    /// The keys as they are stored, those that were loaded and not read again, behind `head`, included.
    pub(crate) fn to_record(&self, head: u64) -> Vec<BlockedKeyRecord> {
        let live = self.keys.values().map(|blocked| BlockedKeyRecord {
            key: blocked.key.clone(),
            partitions: blocked.partitions,
            from_seq: blocked.from_seq,
            to_seq: blocked.to_seq,
            events: blocked.events,
            settled: blocked.settled.iter().collect(),
        });
        let loaded = self.loaded.values().flatten();
        let loaded = loaded.map(|one| BlockedKeyRecord {
            from_seq: one.record.from_seq.max(head + 1),
            ..one.record.clone()
        });
        live.chain(loaded).collect()
    }

    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.loaded.clear();
    }
}
