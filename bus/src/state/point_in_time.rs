//! The state as it was at a time.
//!
//! What is known of the past, and when it is not:
//!
//! - An event that is still the latest of its key and is not later than the time is the answer, whatever is gone.
//! - A key of which nothing at all is kept was not there, as long as the tombstones since then are kept.
//! - Otherwise the log is asked, and its answer counts if nothing that compaction took can have come behind it.
//! - Otherwise a snapshot that was made after that time is asked: what it says of a key counts if that was not later
//!   than the time, for then the key has not changed in between.
//! - Otherwise the past of the key is gone, which is said rather than guessed.
//!
//! What retention and purges took is forgotten: the state at a time is that of the events that are kept. Of a time
//! before the oldest of them nothing is known.

use super::KeyState;
use super::latest::{KeyRange, page_with_tombstones};
use super::load::marker;
use super::snapshot::SnapshotRecord;
use crate::bus::Bus;
use crate::error::{HistoryGone, StateError};
use prombus_store::{Find, LatestEvent, ReadFrom, ReadLimit, StoredEvent, TOMBSTONE_MS, TopicInfo};
use std::collections::HashMap;
use std::sync::Arc;

/// How many snapshots behind the time are looked at to find one that was whole then.
const MAX_SNAPSHOTS: usize = 4;

const ONE: ReadLimit = ReadLimit {
    events: 1,
    bytes: 1,
};

/// The states of some keys as of a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablePage {
    /// One for each key that there was, in the order of keys.
    pub states: Vec<KeyState>,
    /// The `after` of the next page; `None` where there is no more. A page may be short, or empty, and still have a
    /// next one.
    pub next: Option<String>,
}

/// What became of the question for one key.
enum Answer {
    Known(Option<KeyState>),
    /// It is to be asked of a snapshot.
    Unknown,
}

impl Bus {
    /// The state of a key as of a time: `None` where it was not there, or deleted.
    pub async fn state_at(
        &self,
        topic: &str,
        key: &str,
        at_ts: u64,
    ) -> Result<Option<KeyState>, StateError> {
        let topic = self.state_topic(topic)?;
        match self.store().latest_event(&topic, key).await? {
            Some(event) if event.ts() <= at_ts => return Ok(KeyState::of(&event)),
            // Had it been there then, something of it would be left, if only the tombstone of its deletion.
            None if self.knows_deletions(at_ts) && !self.is_forgotten(&topic, at_ts).await? => {
                return Ok(None);
            }
            _ => {}
        }
        let states = self.states_at(&topic, vec![key.to_owned()], at_ts).await?;
        Ok(states.into_values().next())
    }

    /// The states of a range of keys as of a time.
    pub async fn table_at(
        &self,
        topic: &str,
        at_ts: u64,
        range: &KeyRange,
    ) -> Result<TablePage, StateError> {
        range.check()?;
        let topic = self.state_topic(topic)?;
        self.check_deletions_known(&topic, at_ts)?;
        let page = page_with_tombstones(&**self.store(), &topic, range).await?;
        let changed = page.events.iter().filter(|event| event.ts() > at_ts);
        let changed = changed.filter_map(|event| Some(event.key()?.into_owned()));
        let mut states = self.states_at(&topic, changed.collect(), at_ts).await?;
        let state = |event: &StoredEvent| {
            if event.ts() <= at_ts {
                KeyState::of(event)
            } else {
                states.remove(&*event.key()?)
            }
        };
        Ok(TablePage {
            states: page.events.iter().filter_map(state).collect(),
            next: page.next,
        })
    }

    /// The states of keys of which the latest event, if there is one, is later than the time.
    pub(super) async fn states_at(
        &self,
        topic: &Arc<str>,
        keys: Vec<String>,
        at_ts: u64,
    ) -> Result<HashMap<String, KeyState>, StateError> {
        if keys.is_empty() {
            return Ok(HashMap::new());
        }
        let is_forgotten = self.is_forgotten(topic, at_ts).await?;
        let past = self
            .store()
            .latest(topic, keys.clone(), Some(at_ts))
            .await?;
        let mut states = HashMap::new();
        let mut unknown = Vec::new();
        for (key, past) in keys.into_iter().zip(past) {
            match answer(&past, is_forgotten) {
                Answer::Known(state) => states.extend(state.map(|state| (key, state))),
                Answer::Unknown => unknown.push(key),
            }
        }
        if !unknown.is_empty() {
            self.ask_snapshot(topic, unknown, at_ts, &mut states)
                .await?;
        }
        Ok(states)
    }

    /// Whether the time is before everything that retention has kept.
    async fn is_forgotten(&self, topic: &Arc<str>, at_ts: u64) -> Result<bool, StateError> {
        let info = self.store().topic(topic);
        let Some(info) = info.filter(|info| info.first_seq > 1) else {
            return Ok(false);
        };
        let oldest = self
            .store()
            .read(topic, ReadFrom::Seq(info.first_seq), ONE)
            .await?;
        Ok(match oldest.events.first() {
            Some(oldest) => oldest.ts() > at_ts,
            None => at_ts < self.core().now_ms(),
        })
    }

    /// What a snapshot made after the time says of keys.
    async fn ask_snapshot(
        &self,
        topic: &Arc<str>,
        keys: Vec<String>,
        at_ts: u64,
        states: &mut HashMap<String, KeyState>,
    ) -> Result<(), StateError> {
        let gone = |key: Option<&String>| HistoryGone {
            topic: topic.clone(),
            key: key.cloned(),
            at_ts,
        };
        let Some(marker) = marker(self.core(), topic).await? else {
            return Err(gone(keys.first()).into());
        };
        let snapshot = &marker.snapshot_topic;
        let made_ts = self
            .snapshot_behind(snapshot, marker.first_seq, at_ts)
            .await?;
        let Some(made_ts) = made_ts else {
            return Err(gone(keys.first()).into());
        };
        let past = self.store().latest(snapshot, keys.clone(), Some(made_ts));
        for (key, past) in keys.into_iter().zip(past.await?) {
            let of_this = |event: &&StoredEvent| event.seq() >= marker.first_seq;
            let event = past.event.as_ref().filter(of_this);
            let record = event.and_then(SnapshotRecord::of);
            match record {
                _ if !past.is_certain => return Err(gone(Some(&key)).into()),
                // The key was not there yet when the snapshot was made.
                None => {}
                Some(record) if record.source_ts <= at_ts => {
                    states.extend(record.state.map(|state| (key, state)));
                }
                Some(_) => return Err(gone(Some(&key)).into()),
            }
        }
        Ok(())
    }

    /// When the first snapshot was made that holds everything up to a time.
    async fn snapshot_behind(
        &self,
        snapshot: &Arc<str>,
        first_seq: u64,
        at_ts: u64,
    ) -> Result<Option<u64>, StateError> {
        let mut since_ts = at_ts.saturating_add(1);
        for _ in 0..MAX_SNAPSHOTS {
            let Some(seq) = self.store().find(snapshot, Find::Ts(since_ts)).await? else {
                return Ok(None);
            };
            let page = self
                .store()
                .read(snapshot, ReadFrom::Seq(seq.max(first_seq)), ONE)
                .await?;
            let Some(event) = page.events.first() else {
                return Ok(None);
            };
            let record = SnapshotRecord::of(event);
            let whole_to_ts = record.and_then(|record| record.whole_to_ts);
            if whole_to_ts.is_some_and(|whole_to_ts| whole_to_ts > at_ts) {
                return Ok(Some(event.ts()));
            }
            since_ts = event.ts().saturating_add(1);
        }
        Ok(None)
    }

    /// Refuses a table of a time whose deletions compaction may have forgotten: a key that is gone without a trace
    /// would be missing in it.
    pub(super) fn check_deletions_known(
        &self,
        topic: &Arc<str>,
        at_ts: u64,
    ) -> Result<(), StateError> {
        let has_gaps = |info: TopicInfo| info.events < info.tail_seq + 1 - info.first_seq;
        if self.knows_deletions(at_ts) || !self.store().topic(topic).is_some_and(has_gaps) {
            Ok(())
        } else {
            Err(HistoryGone {
                topic: topic.clone(),
                key: None,
                at_ts,
            }
            .into())
        }
    }

    /// Whether the tombstones of everything that was deleted since a time are still kept.
    fn knows_deletions(&self, at_ts: u64) -> bool {
        at_ts.saturating_add(TOMBSTONE_MS) >= self.core().now_ms()
    }
}

/// What the log says.
fn answer(past: &LatestEvent, is_forgotten: bool) -> Answer {
    match &past.event {
        _ if !past.is_certain => Answer::Unknown,
        Some(event) => Answer::Known(KeyState::of(event)),
        None if is_forgotten => Answer::Unknown,
        None => Answer::Known(None),
    }
}
