//! Events that wait behind others of their key and are not kept in the group's window: of each such key only the first
//! position is remembered, and its events are read again when the key is free. So a key whose first event keeps failing
//! does not stop the others, however many events wait behind it.
//!
//! A position is parked when its key is here, it is no lower than the key's first parked position, and the group has
//! read it. Which positions these are is not remembered: the events say it.

use super::lanes::Lane;
use super::record::BlockedKeyRecord;
use std::collections::BTreeMap;

/// The most keys that are parked; beyond it waiting events take room in the window.
const MAX_BLOCKED_KEYS: usize = 4_096;

/// The keys whose events are parked.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlockedKeys {
    keys: BTreeMap<Lane, BlockedKey>,
    /// Keys that were parked when the group was stored: their events look settled and are not.
    loaded: BTreeMap<Lane, BlockedKeyRecord>,
}

#[derive(Debug, Clone)]
struct BlockedKey {
    key: String,
    from_seq: u64,
    to_seq: u64,
    events: u64,
}

impl BlockedKeys {
    /// The keys as a record has them.
    pub(crate) fn load(&mut self, blocked: &[BlockedKeyRecord]) {
        for one in blocked {
            self.loaded.insert(Lane::of(&one.key), one.clone());
        }
    }

    /// Whether the record that the group was loaded from has this position parked. It is asked once for each position.
    pub(crate) fn unload(&mut self, lane: Option<Lane>, seq: u64) -> bool {
        let loaded = lane.and_then(|lane| self.loaded.get_mut(&lane));
        let Some(loaded) = loaded.filter(|one| (one.from_seq..=one.to_seq).contains(&seq)) else {
            return false;
        };
        loaded.events = loaded.events.saturating_sub(1);
        true
    }

    /// Whether any key was parked when the group was stored.
    pub(crate) fn has_loaded(&self) -> bool {
        !self.loaded.is_empty()
    }

    /// Forgets the loaded keys whose positions have all been read again.
    pub(crate) fn passed(&mut self, head: u64) {
        if !self.loaded.is_empty() {
            self.loaded.retain(|_, loaded| loaded.to_seq > head);
        }
    }

    /// Parks an event, where its key is parked already or `may_begin` and there is room for one more key.
    pub(crate) fn block(&mut self, lane: Lane, key: &str, seq: u64, may_begin: bool) -> bool {
        if let Some(blocked) = self.keys.get_mut(&lane) {
            blocked.to_seq = seq;
            blocked.events += 1;
            return true;
        }
        if !may_begin || self.keys.len() >= MAX_BLOCKED_KEYS {
            return false;
        }
        let blocked = BlockedKey {
            key: key.to_owned(),
            from_seq: seq,
            to_seq: seq,
            events: 1,
        };
        self.keys.insert(lane, blocked);
        true
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

    /// How many events are parked.
    pub(crate) fn events(&self) -> u64 {
        let live: u64 = self.keys.values().map(|blocked| blocked.events).sum();
        let loaded: u64 = self.loaded.values().map(|loaded| loaded.events).sum();
        live + loaded
    }

    /// The keys as they are stored, those that were loaded and not read again included.
    pub(crate) fn to_record(&self) -> Vec<BlockedKeyRecord> {
        let mut stored = self.loaded.clone();
        for (lane, blocked) in &self.keys {
            let loaded = stored.get(lane);
            let one = BlockedKeyRecord {
                key: blocked.key.clone(),
                from_seq: blocked.from_seq,
                to_seq: loaded.map_or(0, |one| one.to_seq).max(blocked.to_seq),
                events: loaded.map_or(0, |one| one.events) + blocked.events,
            };
            stored.insert(*lane, one);
        }
        stored.into_values().collect()
    }

    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.loaded.clear();
    }
}
