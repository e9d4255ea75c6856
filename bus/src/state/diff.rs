//! What changed between two times: the state of each key as of both, side by side.

use super::KeyState;
use super::latest::{KeyRange, page_with_tombstones};
use crate::bus::Bus;
use crate::error::{InvalidField, StateError};
use prombus_store::StoredEvent;
use std::collections::HashMap;
use std::sync::Arc;

/// How many keys are compared at a time: as many states of each time are in memory.
const STEP_KEYS: usize = 256;
/// About how many bytes of payloads one page has.
const MAX_PAGE_BYTES: usize = 8 << 20;

/// What became of a key between two times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyChange {
    /// It came.
    Added {
        /// Its state at the later time.
        to: KeyState,
    },
    /// It has another payload.
    Changed {
        /// Its state at the earlier time.
        from: KeyState,
        /// Its state at the later time.
        to: KeyState,
    },
    /// It went.
    Deleted {
        /// Its state at the earlier time.
        from: KeyState,
    },
}

/// What became of some keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiffPage {
    /// One for each key that changed, in the order of keys.
    pub changes: Vec<KeyChange>,
    /// The `after` of the next page; `None` where there is no more. A page may be short, or empty, and still have a
    /// next one.
    pub next: Option<String>,
}

impl Bus {
    /// The keys of a range that were added, changed or deleted between two times. Where compaction or retention took
    /// what would tell, it is [`HistoryGone`](crate::error::HistoryGone) rather than a guess.
    pub async fn diff(
        &self,
        topic: &str,
        (from_ts, to_ts): (u64, u64),
        range: &KeyRange,
    ) -> Result<DiffPage, StateError> {
        range.check()?;
        if from_ts > to_ts {
            return Err(InvalidField::new("to", "must not be before from").into());
        }
        let topic = self.state_topic(topic)?;
        self.check_deletions_known(&topic, from_ts)?;
        let page = page_with_tombstones(&**self.store(), &topic, range).await?;
        let mut diff = DiffPage::default();
        let mut bytes = 0;
        for events in page.events.chunks(STEP_KEYS) {
            let before = self.states_of(&topic, events, from_ts).await?;
            let after = self.states_of(&topic, events, to_ts).await?;
            for event in events {
                let Some(key) = event.key() else {
                    continue;
                };
                let states = (before.get(&*key), after.get(&*key));
                if let Some(change) = KeyChange::between(states.0, states.1) {
                    bytes += change.bytes();
                    diff.changes.push(change);
                }
                if bytes >= MAX_PAGE_BYTES {
                    diff.next = Some(key.into_owned());
                    return Ok(diff);
                }
            }
        }
        diff.next = page.next;
        Ok(diff)
    }

    /// The states as of a time of the keys whose latest events these are.
    async fn states_of(
        &self,
        topic: &Arc<str>,
        latest: &[StoredEvent],
        at_ts: u64,
    ) -> Result<HashMap<String, KeyState>, StateError> {
        let changed = latest.iter().filter(|event| event.ts() > at_ts);
        let changed = changed.filter_map(|event| Some(event.key()?.into_owned()));
        let mut states = self.states_at(topic, changed.collect(), at_ts).await?;
        let unchanged = latest.iter().filter(|event| event.ts() <= at_ts);
        let unchanged = unchanged.filter_map(KeyState::of);
        states.extend(unchanged.map(|state| (state.key.clone(), state)));
        Ok(states)
    }
}

impl KeyChange {
    /// What became of a key whose states these are; `None` where it has the same payload, or is in neither.
    fn between(from: Option<&KeyState>, to: Option<&KeyState>) -> Option<Self> {
        match (from.cloned(), to.cloned()) {
            (None, Some(to)) => Some(Self::Added { to }),
            (Some(from), None) => Some(Self::Deleted { from }),
            (Some(from), Some(to)) if from.payload != to.payload => {
                Some(Self::Changed { from, to })
            }
            _ => None,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Added { to: state } | Self::Deleted { from: state } => state.payload.len(),
            Self::Changed { from, to } => from.payload.len() + to.payload.len(),
        }
    }
}
