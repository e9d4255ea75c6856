//! Parts of indexes kept in memory, up to a limit. What was not used since the clock hand passed it goes first.

use prombus_store::LockExt;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

/// A part of an index: segment, generation, section, and the block of the section or [`WHOLE`].
pub(crate) type SectionKey = (u64, u32, u8, u32);

/// Stands for a section as a whole.
pub(crate) const WHOLE: u32 = u32::MAX;

/// The cache that all sealed segments share.
pub(crate) struct SectionCache {
    limit_bytes: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    parts: HashMap<SectionKey, Part>,
    /// Every key once, in the order in which the hand passes them, and those of parts that were forgotten.
    hand: VecDeque<SectionKey>,
    bytes: usize,
}

struct Part {
    bytes: Arc<Vec<u8>>,
    was_used: bool,
}

impl SectionCache {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            state: Mutex::default(),
        }
    }

    pub(crate) fn get(&self, key: SectionKey) -> Option<Arc<Vec<u8>>> {
        let mut state = self.state.guard();
        let part = state.parts.get_mut(&key)?;
        part.was_used = true;
        Some(part.bytes.clone())
    }

    pub(crate) fn put(&self, key: SectionKey, bytes: &Arc<Vec<u8>>) {
        let mut state = self.state.guard();
        let part = Part {
            bytes: bytes.clone(),
            was_used: false,
        };
        state.bytes += bytes.len();
        match state.parts.insert(key, part) {
            Some(old) => state.bytes -= old.bytes.len(),
            None => state.hand.push_back(key),
        }
        while state.bytes > self.limit_bytes && state.parts.len() > 1 {
            state.pass_one(key);
        }
    }

    /// Forgets a segment that was rewritten or removed.
    pub(crate) fn forget(&self, segment: u64) {
        let mut state = self.state.guard();
        let State { parts, hand, bytes } = &mut *state;
        parts.retain(|key, part| {
            let keep = key.0 != segment;
            if !keep {
                *bytes -= part.bytes.len();
            }
            keep
        });
        hand.retain(|key| key.0 != segment);
    }
}

impl State {
    /// Moves the hand past one part, which goes unless it was used or is the one that was just put in.
    fn pass_one(&mut self, newest: SectionKey) {
        let Some(key) = self.hand.pop_front() else {
            return;
        };
        if let Some(part) = self.parts.get_mut(&key)
            && (std::mem::take(&mut part.was_used) || key == newest)
        {
            self.hand.push_back(key);
            return;
        }
        if let Some(part) = self.parts.remove(&key) {
            self.bytes -= part.bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(cache: &SectionCache, block: u32) {
        cache.put((1, 0, 0, block), &Arc::new(vec![0; 10]));
    }

    fn holds(cache: &SectionCache, block: u32) -> bool {
        let state = cache.state.lock().unwrap();
        state.parts.contains_key(&(1, 0, 0, block))
    }

    #[test]
    fn what_is_used_stays_and_the_limit_holds() {
        let cache = SectionCache::new(40);
        put(&cache, 0);
        for block in 1..1000 {
            assert!(cache.get((1, 0, 0, 0)).is_some(), "before {block}");
            put(&cache, block);
            assert!(holds(&cache, block));
            let state = cache.state.lock().unwrap();
            assert!(state.bytes <= 40 && state.hand.len() == state.parts.len());
        }
        cache.forget(1);
        assert!(!holds(&cache, 0));
        assert_eq!(cache.state.lock().unwrap().bytes, 0);
    }

    #[test]
    fn a_part_larger_than_the_limit_is_kept_alone() {
        let cache = SectionCache::new(5);
        put(&cache, 0);
        put(&cache, 1);
        assert!(holds(&cache, 1) && !holds(&cache, 0));
    }
}
