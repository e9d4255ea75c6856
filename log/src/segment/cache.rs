//! Parts of indexes kept in memory, up to a limit; the one used longest ago goes first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A part of an index: segment, generation, section.
pub(crate) type SectionKey = (u64, u32, u8);

/// The cache that all sealed segments share.
pub(crate) struct SectionCache {
    limit_bytes: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sections: HashMap<SectionKey, (Arc<Vec<u8>>, u64)>,
    bytes: usize,
    uses: u64,
}

impl SectionCache {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            state: Mutex::default(),
        }
    }

    pub(crate) fn get(&self, key: SectionKey) -> Option<Arc<Vec<u8>>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.uses += 1;
        let now = state.uses;
        let (section, used) = state.sections.get_mut(&key)?;
        *used = now;
        Some(section.clone())
    }

    pub(crate) fn put(&self, key: SectionKey, section: &Arc<Vec<u8>>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.uses += 1;
        let now = state.uses;
        if let Some((old, _)) = state.sections.insert(key, (section.clone(), now)) {
            state.bytes -= old.len();
        }
        state.bytes += section.len();
        while state.bytes > self.limit_bytes && state.sections.len() > 1 {
            let oldest = state.sections.iter().min_by_key(|(_, (_, used))| *used);
            let Some(key) = oldest.map(|(key, _)| *key) else {
                break;
            };
            if let Some((section, _)) = state.sections.remove(&key) {
                state.bytes -= section.len();
            }
        }
    }

    /// Forgets a segment that was rewritten or removed.
    pub(crate) fn forget(&self, segment: u64) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State {
            sections, bytes, ..
        } = &mut *state;
        sections.retain(|key, (section, _)| {
            let keep = key.0 != segment;
            if !keep {
                *bytes -= section.len();
            }
            keep
        });
    }
}
