//! What a process says of itself.

use super::{ProcessState, ProcessStatus};
use serde::Deserialize;
use serde_json::Number;

/// The longest session id that is taken.
const MAX_SID_BYTES: usize = 256;
/// The longest name or host, so that the key they make together is one.
const MAX_NAME_BYTES: usize = 240;

/// The payload of a heartbeat. Fields that are not named here are none of our business.
#[derive(Debug, Deserialize)]
pub(super) struct Heartbeat {
    pid: u64,
    name: String,
    host: String,
    cpu_pct: Number,
    mem_mb: Number,
    sid: Option<String>,
}

impl Heartbeat {
    /// Reads one, or says why it is none.
    pub(super) fn read(payload: &str) -> Result<Self, String> {
        let beat: Self = serde_json::from_str(payload).map_err(|error| error.to_string())?;
        for (field, value) in [("name", &beat.name), ("host", &beat.host)] {
            if !(1..=MAX_NAME_BYTES).contains(&value.len()) {
                return Err(format!("{field} has to have 1 to {MAX_NAME_BYTES} bytes"));
            }
        }
        if beat
            .sid
            .as_ref()
            .is_some_and(|sid| sid.len() > MAX_SID_BYTES)
        {
            return Err(format!("sid may have up to {MAX_SID_BYTES} bytes"));
        }
        Ok(beat)
    }

    /// What tells its process from all others.
    pub(super) fn process_id(&self) -> String {
        let Self {
            host, name, pid, ..
        } = self;
        format!("{host}:{name}:{pid}")
    }

    /// The process as it is when it has just been seen.
    pub(super) fn into_state(self, last_seen_ts: u64) -> ProcessState {
        ProcessState {
            process_id: self.process_id(),
            name: self.name,
            host: self.host,
            pid: self.pid,
            sid: self.sid,
            cpu_pct: self.cpu_pct,
            mem_mb: self.mem_mb,
            last_seen_ts,
            status: ProcessStatus::Alive,
        }
    }
}
