//! All processes that are known, and how each is doing.

use serde::{Deserialize, Serialize};
use serde_json::Number;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Of so many parts of all processes one is forgotten when there are too many.
const FORGET_PART: usize = 16;

/// The payload of `process.state`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessState {
    /// `host:name:pid`, which is also the key.
    #[serde(rename = "processId")]
    pub process_id: String,
    /// What runs.
    pub name: String,
    /// Where it runs.
    pub host: String,
    /// Its number there.
    pub pid: u64,
    /// Its boot or session id, where the heartbeat has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sid: Option<String>,
    /// Percent of a processor, as its last heartbeat said.
    pub cpu_pct: Number,
    /// Megabytes of memory, as its last heartbeat said.
    pub mem_mb: Number,
    /// The time of its last heartbeat, in epoch milliseconds.
    pub last_seen_ts: u64,
    /// Whether it is heard of.
    pub status: ProcessStatus,
}

/// Whether a process is heard of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessStatus {
    /// It is.
    Alive,
    /// It has not been for a while.
    Stale,
}

/// The state of the process projector.
#[derive(Debug, Default)]
pub struct Processes {
    /// In the order of keys, so that the same state always emits the same.
    by_key: BTreeMap<Arc<str>, Known>,
}

#[derive(Debug)]
struct Known {
    process: ProcessState,
    /// The id of the heartbeat's event, for `caused_by`; empty where it is not known.
    beat_id: Box<str>,
}

impl Processes {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The process with this id.
    pub fn get(&self, process_id: &str) -> Option<&ProcessState> {
        self.by_key.get(process_id).map(|known| &known.process)
    }

    pub(super) fn last_seen_ts(&self, process_id: &str) -> Option<u64> {
        self.get(process_id).map(|process| process.last_seen_ts)
    }

    /// Puts a process there, and makes room for it where there are `max` already.
    pub(super) fn insert(
        &mut self,
        process_id: Arc<str>,
        process: ProcessState,
        beat_id: Box<str>,
        max: usize,
    ) {
        if self.by_key.len() >= max && !self.by_key.contains_key(&process_id) {
            self.forget((max / FORGET_PART).max(1));
        }
        self.by_key.insert(process_id, Known { process, beat_id });
    }

    /// Those that are alive, with the ids of their last heartbeats.
    pub(super) fn alive_mut(&mut self) -> impl Iterator<Item = (&str, &mut ProcessState, &str)> {
        self.by_key
            .iter_mut()
            .filter(|(_, known)| known.process.status == ProcessStatus::Alive)
            .map(|(key, known)| (&**key, &mut known.process, &*known.beat_id))
    }

    /// Forgets those that have been silent for longest, stale ones first.
    fn forget(&mut self, count: usize) {
        let mut silent: Vec<(bool, u64, Arc<str>)> = self
            .by_key
            .iter()
            .map(|(key, known)| {
                let is_alive = known.process.status == ProcessStatus::Alive;
                (is_alive, known.process.last_seen_ts, key.clone())
            })
            .collect();
        silent.sort_unstable();
        for (.., key) in silent.into_iter().take(count) {
            self.by_key.remove(&key);
        }
    }
}
