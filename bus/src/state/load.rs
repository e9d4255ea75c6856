//! Loading the state of a topic: its table of keys first, then the events from exactly there on.
//!
//! Keys may change while the table is read; [`Ahead`] keeps what was read early from coming again.

use super::KeyState;
use super::follow::Follow;
use super::latest::{KeyRange, page_with_tombstones};
use super::snapshot::{Marker, SnapshotRecord, marker_key};
use crate::bus::Bus;
use crate::core::Core;
use crate::error::{FollowError, StateError, StateMoved};
use crate::partition::PartitionSet;
use prombus_interface::Ahead;
use prombus_store::StoredEvent;
use std::fmt;
use std::sync::Arc;

/// How many keys one page has at most; large payloads make it shorter.
const LOAD_PAGE_KEYS: usize = 32_768;

/// A table that is being loaded.
pub struct LoadState {
    core: Arc<Core>,
    topic: Arc<str>,
    source: Source,
    /// The table counts from here: everything up to it is in the table.
    position: u64,
    range: KeyRange,
    /// The partitions whose keys are loaded, where not all are.
    partitions: Option<PartitionSet>,
    ahead: Ahead,
    is_read: bool,
}

/// Where the table is read from.
enum Source {
    /// The latest events of the topic itself, where it has no snapshot.
    Topic,
    Snapshot(Marker),
}

impl Bus {
    /// Loads the state of a topic: read [`LoadState::next_page`] to the end, then [`LoadState::follow`]. It reads the
    /// snapshot where there is one, else the latest events of the topic itself; both take as long as there are keys.
    pub async fn load_state(&self, topic: &str) -> Result<LoadState, StateError> {
        let topic = self.state_topic(topic)?;
        let core = self.core().clone();
        let (source, position) = match marker(&core, &topic).await? {
            Some(marker) => {
                let position = marker.position;
                (Source::Snapshot(marker), position)
            }
            None => {
                let tail_seq = core.store.topic(&topic).map_or(0, |info| info.tail_seq);
                (Source::Topic, tail_seq)
            }
        };
        Ok(LoadState {
            core,
            topic,
            source,
            position,
            range: KeyRange {
                limit: LOAD_PAGE_KEYS,
                ..KeyRange::default()
            },
            partitions: None,
            ahead: Ahead::default(),
            is_read: false,
        })
    }
}

impl LoadState {
    /// Loads and follows only the keys of these partitions, as a member does that has them in a partitioned group. All of a
    /// topic without partitions are in the first one.
    pub fn of_partitions(mut self, partitions: &[u32]) -> Self {
        let count = self.core.topics.partitions(&self.topic).unwrap_or(1);
        self.partitions = Some(PartitionSet::new(partitions, count));
        self
    }

    /// The topic.
    pub fn topic(&self) -> &Arc<str> {
        &self.topic
    }

    /// The table counts from this position: what follows begins behind it.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether the table comes from a snapshot.
    pub fn is_from_snapshot(&self) -> bool {
        matches!(self.source, Source::Snapshot(_))
    }

    /// The next keys of the table, in the order of keys; `None` when all have been read.
    pub async fn next_page(&mut self) -> Result<Option<Vec<KeyState>>, StateError> {
        while !self.is_read {
            let table = match &self.source {
                Source::Topic => &self.topic,
                Source::Snapshot(marker) => &marker.snapshot_topic,
            };
            let page = page_with_tombstones(&*self.core.store, table, &self.range).await?;
            let states: Vec<KeyState> = page
                .events
                .iter()
                .filter_map(|event| self.take(event))
                .collect();
            if self.ahead.is_too_much() {
                return Err(self.moved());
            }
            match page.next {
                Some(next) => self.range.after = Some(next),
                None => self.finish().await?,
            }
            if !states.is_empty() {
                return Ok(Some(states));
            }
        }
        Ok(None)
    }

    /// Follows the topic from where the table ends. Pages of the table that were not read stay unread.
    pub fn follow(self) -> Result<Follow, FollowError> {
        let from_seq = self.position + 1;
        let follow = Follow::new(&self.core, &self.topic, from_seq)?;
        Ok(follow.without(self.ahead).of_partitions(self.partitions))
    }

    /// Takes a record of the table in, and notes if it is newer than the table.
    fn take(&mut self, event: &StoredEvent) -> Option<KeyState> {
        let (key, seq, state) = match &self.source {
            Source::Topic => {
                let key = event.key()?.into_owned();
                (key, event.seq(), KeyState::of(event))
            }
            Source::Snapshot(marker) => {
                let of_this = event.seq() >= marker.first_seq;
                let record = SnapshotRecord::of(event).filter(|_| of_this)?;
                (record.key, record.source_seq, record.state)
            }
        };
        if let Some(partitions) = &self.partitions
            && !partitions.holds_key(&key)
        {
            return None;
        }
        if seq > self.position {
            self.ahead.note(key, seq);
        }
        state
    }

    /// Everything has been read; it counts if it was the same snapshot all along.
    async fn finish(&mut self) -> Result<(), StateError> {
        if let Source::Snapshot(before) = &self.source {
            let now = marker(&self.core, &self.topic).await?;
            let is_same = now.is_some_and(|now| {
                now.snapshot_topic == before.snapshot_topic && now.first_seq == before.first_seq
            });
            if !is_same {
                return Err(self.moved());
            }
        }
        self.is_read = true;
        Ok(())
    }

    fn moved(&self) -> StateError {
        let topic = self.topic.clone();
        StateMoved { topic }.into()
    }
}

/// The marker of a snapshot that can be read.
pub(super) async fn marker(core: &Core, topic: &Arc<str>) -> Result<Option<Marker>, StateError> {
    let stored = core.store.get(&marker_key(topic)).await?;
    let marker = stored.and_then(|keyed| Marker::from_bytes(&keyed.value));
    let tail_seq = core.store.topic(topic).map_or(0, |info| info.tail_seq);
    Ok(marker.filter(|marker| {
        let snapshot = core.store.topic(&marker.snapshot_topic);
        marker.position <= tail_seq
            && snapshot.is_some_and(|info| marker.first_seq <= info.tail_seq + 1)
    }))
}

impl fmt::Debug for LoadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadState")
            .field("topic", &self.topic)
            .field("position", &self.position)
            .field("is_from_snapshot", &self.is_from_snapshot())
            .finish_non_exhaustive()
    }
}
