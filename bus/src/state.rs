//! State: what a topic says of its keys now and what it said before, snapshots of that, and reading on from there.
//!
//! The state of a key is its last event, in the order of positions. Its state at a time is the last one, in the same
//! order, of those whose ts is that time or earlier, so that the state at the end of time is the state now. Where
//! publishers choose their own ts, an event that comes late counts from the time that it says.

mod diff;
mod follow;
mod latest;
mod load;
mod point_in_time;
mod snapshot;
mod snapshot_pass;
mod snapshot_plan;
mod snapshotter;

pub use diff::{DiffPage, KeyChange};
pub use follow::Follow;
pub use latest::{KeyPage, KeyRange};
pub use load::LoadState;
pub use point_in_time::TablePage;
pub(crate) use snapshot::{MARKER_PREFIX, Marker, marker_key};
pub use snapshot::{SNAPSHOT_SEQ_HEADER, SNAPSHOT_TS_HEADER, SOURCE_SEQ_HEADER};
pub(crate) use snapshot_plan::{check_snapshots, is_snapshot_topic};
pub(crate) use snapshotter::Snapshotter;

use prombus_store::StoredEvent;

/// What a key's last event said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyState {
    /// The key.
    pub key: String,
    /// The event's payload, as JSON text.
    pub payload: String,
    /// The event's time in epoch milliseconds.
    pub ts: u64,
    /// The event's position in the topic.
    pub seq: u64,
    /// The event's id; a snapshot does not know it.
    pub id: Option<String>,
}

impl KeyState {
    /// The state that an event with a key makes; a tombstone makes none.
    pub fn of(event: &StoredEvent) -> Option<Self> {
        let key = event.key().filter(|_| !event.is_tombstone())?;
        Some(Self {
            key: key.into_owned(),
            payload: event.payload().to_owned(),
            ts: event.ts(),
            seq: event.seq(),
            id: Some(event.id().into_owned()),
        })
    }
}
