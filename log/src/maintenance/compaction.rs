//! Compaction: of a keyed topic only the latest event of each key has to stay. It works on sealed segments; what is
//! still in commit order is left alone.

use crate::key_index::KeyRef;
use crate::maintainer::Maintainer;
use crate::record::StoredEvent;
use crate::segment::index::{IndexError, KEY_SPACE};
use crate::segment::sealed::Sealed;
use crate::view::SealedRun;
use prombus_store::LockExt;
use prombus_store::ReadError;
use std::collections::{BTreeMap, HashSet};
use std::io;
use std::sync::Arc;

/// A segment is rewritten when at least this share of a topic's events in it is superseded.
const REWRITE_FROM: (u64, u64) = (1, 4);
/// A topic is looked at again when this share of it is new.
const LOOK_AGAIN_FROM: (u64, u64) = (1, 2);

/// A topic that has changed enough.
struct Due {
    topic: Arc<str>,
    number: u32,
    /// Where its last sealed run begins.
    last_run_seq: u64,
}

impl Maintainer {
    /// Compacts every topic that asks for it and has changed enough.
    pub(crate) fn compact_topics(&self) -> io::Result<()> {
        let _one_at_a_time = self.rewriting.guard();
        let topics = self.topics_to_compact();
        // A segment holds events of many topics and is rewritten once for all of them.
        let mut segments: BTreeMap<u64, (Arc<Sealed>, HashSet<u32>)> = BTreeMap::new();
        for due in &topics {
            for segment in self.segments_to_compact(&due.topic, due.number)? {
                let number = segment.header.number;
                let (_, topics) = segments
                    .entry(number)
                    .or_insert_with(|| (segment, HashSet::new()));
                topics.insert(due.number);
            }
        }
        for (segment, topics) in segments.into_values() {
            if !self.committer.has_room_for(segment.data_bytes) {
                continue;
            }
            let created_ms = segment.header.created_ms;
            self.rewrite(&[segment], |event| {
                let number = event.topic_number();
                if !topics.contains(&number) {
                    return Ok(true);
                }
                let stored_ms = event.stored_ms().unwrap_or(created_ms);
                self.is_wanted(number, event, stored_ms)
            })?;
        }
        for due in topics {
            let mut view = self.reader.view_mut();
            if let Some(view) = view.topics.get_mut(&due.number) {
                // What was sealed meanwhile has not been looked at.
                let runs = view.runs.iter();
                let looked_at = runs.filter(|run| run.first_seq <= due.last_run_seq);
                let left: u64 = looked_at.map(SealedRun::events).sum();
                view.compacted_events = left.max(1);
            }
        }
        Ok(())
    }

    fn topics_to_compact(&self) -> Vec<Due> {
        let mut due = Vec::new();
        self.visit_topics(|view, topic| {
            // A deleted topic is in the view until its events are gone.
            let is_named = || view.names.get(&topic.name) == Some(&topic.number);
            if !topic.options.compaction || !is_named() {
                return;
            }
            let events = topic.sealed_events;
            let new = events.saturating_sub(topic.compacted_events);
            if events > 0 && new * LOOK_AGAIN_FROM.1 >= events * LOOK_AGAIN_FROM.0 {
                due.push(Due {
                    topic: topic.name.clone(),
                    number: topic.number,
                    last_run_seq: topic.runs.last().map_or(0, |run| run.first_seq),
                });
            }
        });
        due
    }

    /// The segments in which enough of the topic is superseded.
    fn segments_to_compact(&self, topic: &str, number: u32) -> io::Result<Vec<Arc<Sealed>>> {
        let Ok(merge) = self.reader.merge_keys(topic, None, usize::MAX) else {
            return Ok(Vec::new());
        };
        let elsewhere = match merge.count_superseded() {
            Ok(counts) => counts,
            Err((_, IndexError::Io(error))) => return Err(error),
            Err((segment, IndexError::Damaged)) => {
                self.reader.rebuild_index(&segment)?;
                return Ok(Vec::new());
            }
        };
        let runs = match self.reader.view().topics.get(&number) {
            Some(topic) => topic.runs.clone(),
            None => return Ok(Vec::new()),
        };
        let mut worth = Vec::new();
        for SealedRun { segment, .. } in runs {
            let info = match segment.run(number) {
                Ok(Some(info)) => info,
                Ok(None) => continue,
                Err(IndexError::Io(error)) => return Err(error),
                Err(IndexError::Damaged) => {
                    self.reader.rebuild_index(&segment)?;
                    return Ok(Vec::new());
                }
            };
            let newer = elsewhere.get(&segment.header.number).unwrap_or(&0);
            let superseded = info.superseded + newer + info.tombstones;
            if superseded * REWRITE_FROM.1 >= info.events * REWRITE_FROM.0 && superseded > 0 {
                worth.push(segment);
            }
        }
        Ok(worth)
    }

    /// Whether an event has to stay: it has no key, or it is the latest of its key and no old tombstone.
    fn is_wanted(
        &self,
        number: u32,
        event: &StoredEvent,
        stored_ms: u64,
    ) -> Result<bool, ReadError> {
        let Some(key) = event.key() else {
            return Ok(true);
        };
        let latest = self.reader.sealed_latest(number, &key)?;
        if latest.is_some_and(|latest| latest.seq() > event.seq()) {
            return Ok(false);
        }
        let age_ms = self
            .committer
            .options
            .clock
            .now_ms()
            .saturating_sub(stored_ms);
        let may_go = event.is_tombstone() && age_ms > self.committer.options.tombstone_ms;
        Ok(!may_go || self.has_older(number, &key, event.seq())?)
    }

    /// Whether an earlier segment holds the key, so that its tombstone has to stay.
    fn has_older(&self, number: u32, key: &str, seq: u64) -> Result<bool, ReadError> {
        let name = KeyRef {
            space: KEY_SPACE,
            topic: number,
            name: key.as_bytes(),
        };
        // The last run that begins at the event or before it holds it.
        let runs = match self.reader.view().topics.get(&number) {
            Some(topic) => topic.runs[..topic.runs_up_to(seq).saturating_sub(1)].to_vec(),
            None => return Ok(false),
        };
        for run in &runs {
            match run.segment.index.find(&name) {
                Ok(None) => {}
                // A damaged index may hide the key, so the tombstone stays.
                Ok(Some(_)) | Err(IndexError::Damaged) => return Ok(true),
                Err(IndexError::Io(error)) => return Err(error.into()),
            }
        }
        Ok(false)
    }
}
