//! One pass of the snapshotter: reads the topic from where the last pass ended, keeps the last state of each key that
//! it meets, and stores these together with how far it has come.

use super::follow::PAGE;
use super::snapshot::{
    Marker, SNAPSHOT_SEQ_HEADER, SNAPSHOT_TS_HEADER, SOURCE_SEQ_HEADER, marker_key, payload_text,
};
use super::snapshot_plan::SnapshotPlan;
use crate::core::Core;
use crate::topic::TopicConfig;
use prombus_store::{
    Batch, Change, CommitError, Draft, Expect, ReadError, ReadFrom, ReadLimit, StoreFailed,
    StoredEvent,
};
use std::collections::HashMap;
use std::sync::Arc;

/// A pass ends when it holds this many bytes of keys and payloads, or `snapshot_pass_keys` of them. It is stored as
/// one batch, so this bounds that too.
const MAX_PASS_BYTES: usize = 16 << 20;

/// The result of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PassResult {
    /// The snapshot is whole up to here.
    pub(super) position: u64,
    /// Whether that was the end of the topic.
    pub(super) is_done: bool,
}

/// Why a pass failed.
#[derive(Debug)]
pub(super) enum PassError {
    /// A concurrent pass won, or the topic has changed; the next pass sees that.
    Overtaken,
    Read(ReadError),
    Commit(CommitError),
}

/// Where a pass starts.
struct Start {
    marker: Marker,
    expect: Expect,
}

/// The last states of the keys that a pass has read.
#[derive(Default)]
struct LatestStates {
    last: HashMap<String, LastState>,
    bytes: usize,
    next_seq: u64,
    /// When the end of the topic was looked up, if that was reached.
    whole_to_ts: Option<u64>,
}

struct LastState {
    seq: u64,
    ts: u64,
    payload: String,
    is_tombstone: bool,
}

/// Runs one pass.
pub(super) async fn run_pass(core: &Core, plan: &SnapshotPlan) -> Result<PassResult, PassError> {
    let start = start(core, plan).await?;
    let position = start.marker.position;
    let Some(latest) = read_latest(core, &plan.topic, position).await? else {
        let is_done = true;
        return Ok(PassResult { position, is_done });
    };
    let result = PassResult {
        position: latest.next_seq - 1,
        is_done: latest.whole_to_ts.is_some(),
    };
    make_snapshot_topic(core, plan);
    let batch = batch(plan, start, latest);
    match core.store.commit(batch).await {
        Ok(_) => Ok(result),
        Err(CommitError::VersionMismatch(_) | CommitError::UnknownTopic(_)) => {
            core.topics.forget(&plan.snapshot_topic);
            Err(PassError::Overtaken)
        }
        Err(error) => Err(PassError::Commit(error)),
    }
}

/// Where the last pass ended. A snapshot starts over where there is none, where the snapshot topic changed, and where the
/// topic or the snapshot topic is another one than it was.
async fn start(core: &Core, plan: &SnapshotPlan) -> Result<Start, PassError> {
    let stored = core.store.get(&marker_key(&plan.topic)).await?;
    let expect = stored
        .as_ref()
        .map_or(Expect::Absent, |keyed| Expect::Version(keyed.version));
    let tail_seq = core
        .store
        .topic(&plan.topic)
        .map_or(0, |info| info.tail_seq);
    let snapshot = core.store.topic(&plan.snapshot_topic);
    let marker = stored.and_then(|keyed| Marker::from_bytes(&keyed.value));
    let current = marker.filter(|marker| {
        let is_held = |first_seq| {
            let snapshot_tail = snapshot.as_ref().map(|info| info.tail_seq);
            snapshot_tail.is_some_and(|tail| first_seq <= tail + 1)
        };
        marker.snapshot_topic == plan.snapshot_topic
            && marker.position <= tail_seq
            && is_held(marker.first_seq)
    });
    if let Some(marker) = current {
        return Ok(Start { marker, expect });
    }
    let first_seq = snapshot.map_or(1, |info| info.tail_seq + 1);
    let marker = Marker::new(&plan.snapshot_topic, first_seq, 0);
    Ok(Start { marker, expect })
}

/// Makes the snapshot topic where there is none: as the configuration says, else compacted, so that it stays as small
/// as its keys.
fn make_snapshot_topic(core: &Core, plan: &SnapshotPlan) {
    if core.store.topic(&plan.snapshot_topic).is_some() {
        return;
    }
    let source = core.store.topic(&plan.topic);
    let durability = source.map(|info| info.options.durability);
    core.topics.ensure_as(&plan.snapshot_topic, || TopicConfig {
        durability: durability.unwrap_or_default(),
        compaction: true,
        ..TopicConfig::default()
    });
}

/// Reads on from behind `position`; `None` where there is nothing new.
async fn read_latest(
    core: &Core,
    topic: &Arc<str>,
    position: u64,
) -> Result<Option<LatestStates>, PassError> {
    // The time before the tail: whatever is published behind it is given this time or a later one.
    let now_ms = core.now_ms();
    let tail_seq = core.store.topic(topic).map_or(0, |info| info.tail_seq);
    let mut latest = LatestStates {
        next_seq: position + 1,
        ..LatestStates::default()
    };
    if latest.next_seq > tail_seq {
        return Ok(None);
    }
    let max_keys = core.options.snapshot_pass_keys;
    while latest.next_seq <= tail_seq && !latest.is_full(max_keys) {
        // A page brings no more keys than events.
        let limit = ReadLimit {
            events: PAGE.events.min(max_keys - latest.last.len()),
            ..PAGE
        };
        let page = core
            .store
            .read(topic, ReadFrom::Seq(latest.next_seq), limit)
            .await?;
        if page.next_seq <= latest.next_seq {
            // The topic is another one now.
            return Err(PassError::Overtaken);
        }
        for event in &page.events {
            latest.take(event);
        }
        latest.next_seq = page.next_seq;
    }
    latest.whole_to_ts = (latest.next_seq > tail_seq).then_some(now_ms);
    Ok(Some(latest))
}

/// Everything that a pass stores, in one atomic batch; the states in the order of their last changes.
fn batch(plan: &SnapshotPlan, start: Start, latest: LatestStates) -> Batch {
    let position = latest.next_seq - 1;
    let mut batch = Batch::atomic();
    batch.change(Change::Put {
        key: marker_key(&plan.topic),
        value: start.marker.at(position).to_bytes(),
        expect: start.expect,
    });
    let mut states: Vec<(String, LastState)> = latest.last.into_iter().collect();
    states.sort_unstable_by_key(|(_, state)| state.seq);
    let header = |name: &str, number: u64| (name.to_owned(), number.to_string());
    let mut headers = vec![
        header(SOURCE_SEQ_HEADER, 0),
        header(SNAPSHOT_SEQ_HEADER, position),
    ];
    headers.extend(latest.whole_to_ts.map(|ts| header(SNAPSHOT_TS_HEADER, ts)));
    for (key, state) in states {
        headers[0].1 = state.seq.to_string();
        batch.publish(
            &plan.snapshot_topic,
            &Draft {
                key: Some(&key),
                headers: &headers,
                payload: &payload_text(&key, &state.payload, state.ts),
                tombstone: state.is_tombstone,
                ..Draft::default()
            },
        );
    }
    batch
}

impl LatestStates {
    /// Keeps what an event says of its key. The text is copied, for an event would keep the block it was read with.
    fn take(&mut self, event: &StoredEvent) {
        let Some(key) = event.key() else { return };
        let state = LastState {
            seq: event.seq(),
            ts: event.ts(),
            payload: if event.is_tombstone() {
                "null".to_owned()
            } else {
                event.payload().to_owned()
            },
            is_tombstone: event.is_tombstone(),
        };
        self.bytes += state.payload.len();
        match self.last.get_mut(&*key) {
            Some(before) => {
                self.bytes -= before.payload.len();
                *before = state;
            }
            None => {
                self.bytes += key.len();
                self.last.insert(key.into_owned(), state);
            }
        }
    }

    fn is_full(&self, max_keys: usize) -> bool {
        self.last.len() >= max_keys || self.bytes >= MAX_PASS_BYTES
    }
}

impl From<ReadError> for PassError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::UnknownTopic(_) => Self::Overtaken,
            error @ ReadError::Failed { .. } => Self::Read(error),
        }
    }
}

impl PassError {
    /// Whether the same may succeed when it is tried again at once.
    pub(super) fn is_overtaken(&self) -> bool {
        matches!(self, Self::Overtaken)
    }

    /// What went wrong, as the failure of the store that it is.
    pub(super) fn cause(self) -> StoreFailed {
        let cause = match self {
            Self::Overtaken => "another snapshotter of the topic keeps winning".into(),
            Self::Read(error) => error.to_string().into(),
            Self::Commit(error) => error.to_string().into(),
        };
        StoreFailed { cause }
    }
}
