//! The process projector: heartbeats become the state of each process, alive or stale.

mod heartbeat;
mod processes;

pub use processes::{ProcessState, ProcessStatus, Processes};

use super::{Emitter, Projector};
use crate::publish::PublishOptions;
use heartbeat::Heartbeat;
use prombus_interface::EventFields;
use prombus_store::StoredEvent;
use std::sync::Arc;

/// Turns `heartbeat.received` into `process.state`.
///
/// A heartbeat is `{pid, name, host, cpu_pct, mem_mb, sid?}`, and each one that is as it should be becomes one event
/// with the key `host:name:pid` and a [`ProcessState`] as its payload; `caused_by` names the heartbeat. A process
/// without one for 15 seconds turns `stale`, which is looked at every 5 seconds, and `alive` again with its next.
///
/// What counts is the time of the heartbeat's event. One in the future counts as the moment when it is read, so that
/// nobody stays alive for ever; one that is older than the last of its process tells nothing new and is refused, as is
/// one with missing or wrong fields.
#[derive(Debug, Clone)]
pub struct ProcessProjector {
    max_processes: usize,
}

/// A process is stale when it was last seen this long ago.
const STALE_AFTER_MS: u64 = 15_000;
/// How often it is looked whether one is.
const CHECK_INTERVAL_MS: u64 = 5_000;
/// The most processes that are kept in memory, at some 400 bytes each. Where one more comes, the sixteenth that has
/// been silent for longest is forgotten, stale ones first. Nothing is emitted for that: one that is forgotten keeps its
/// latest event in `process.state`, and is known again with its next heartbeat.
const MAX_PROCESSES: usize = 100_000;

impl Default for ProcessProjector {
    fn default() -> Self {
        Self {
            max_processes: MAX_PROCESSES,
        }
    }
}

impl Projector for ProcessProjector {
    type State = Processes;

    fn name(&self) -> &str {
        "process"
    }

    fn input(&self) -> &str {
        "heartbeat.received"
    }

    fn output(&self) -> &str {
        "process.state"
    }

    fn fold(&self, state: &mut Processes, event: &StoredEvent, now_ms: u64, emit: &mut Emitter) {
        let beat = match Heartbeat::read(event.payload()) {
            Ok(beat) => beat,
            Err(reason) => return emit.reject(reason),
        };
        let key: Arc<str> = beat.process_id().into();
        let known_ts = state.last_seen_ts(&key).unwrap_or(0);
        if event.ts() < known_ts {
            return emit.reject("it is older than the last heartbeat of its process");
        }
        // The clock may have gone back since the last one.
        let last_seen_ts = event.ts().min(now_ms).max(known_ts);
        let process = beat.into_state(last_seen_ts);
        let options = PublishOptions {
            key: Some(&key),
            ..PublishOptions::default()
        };
        match emit.emit(&process, &options) {
            Ok(()) => state.insert(key.clone(), process, event.id().into(), self.max_processes),
            Err(error) => emit.reject(error),
        }
    }

    fn restore(&self, state: &mut Processes, event: &StoredEvent) {
        // What others may have published there is none of ours.
        let Ok(process) = serde_json::from_str::<ProcessState>(event.payload()) else {
            return;
        };
        let key = event.key().unwrap_or_default();
        let cause = EventFields::of(event).caused_by.into_iter().next();
        if process.process_id == key {
            let beat_id = cause.unwrap_or_default().into();
            state.insert(key.into(), process, beat_id, self.max_processes);
        }
    }

    fn tick_interval_ms(&self) -> Option<u64> {
        Some(CHECK_INTERVAL_MS)
    }

    fn tick(&self, state: &mut Processes, now_ms: u64, emit: &mut Emitter) {
        let silent_since_ms = now_ms.saturating_sub(STALE_AFTER_MS);
        for (key, process, beat_id) in state.alive_mut() {
            if process.last_seen_ts > silent_since_ms {
                continue;
            }
            if emit.is_full() {
                return;
            }
            process.status = ProcessStatus::Stale;
            let caused_by = [beat_id.to_owned()];
            let options = PublishOptions {
                key: Some(key),
                caused_by: if beat_id.is_empty() { &[] } else { &caused_by },
                ..PublishOptions::default()
            };
            if let Err(error) = emit.emit(process, &options) {
                emit.reject(error);
            }
        }
    }
}

#[cfg(test)]
mod tests;
