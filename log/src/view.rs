//! What readers see: each topic's sealed runs and, behind them, its events in the segments not sealed yet.

use crate::event_id::tag_of;
use crate::front::{NewEvent, ViewChange};
use crate::hashing::GivenMap;
use crate::recent::Recent;
use crate::record::{StoredEvent, TopicRecord};
use crate::segment::sealed::Sealed;
use crate::segment::stream::{SpareEntries, StreamEntry, StreamRun, StreamSegment};
use crate::topic::{TopicInfo, TopicOptions};
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Everything that can be read.
pub(crate) struct View {
    pub(crate) topics: GivenMap<u32, TopicView>,
    pub(crate) names: BTreeMap<Arc<str>, u32>,
    /// Oldest first; the last one is being written.
    pub(crate) streams: Vec<StreamSegment>,
    pub(crate) sealed: BTreeMap<u64, Arc<Sealed>>,
    pub(crate) recent: Recent,
    pub(crate) spare_entries: SpareEntries,
    pub(crate) log_id: u64,
}

/// One topic as readers see it.
pub(crate) struct TopicView {
    pub(crate) number: u32,
    pub(crate) name: Arc<str>,
    pub(crate) options: TopicOptions,
    /// The tag of the ids that the log makes in it.
    pub(crate) tag: u32,
    pub(crate) first_seq: u64,
    /// The newest position; shared with the front.
    pub(crate) tail: Arc<AtomicU64>,
    /// In the order of positions.
    pub(crate) runs: Vec<SealedRun>,
    /// How many sealed events the last compaction left.
    pub(crate) compacted_events: u64,
}

/// A topic that got longer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moved {
    pub(crate) topic: u32,
    pub(crate) tail_seq: u64,
}

/// A topic's events in one sealed segment.
#[derive(Clone)]
pub(crate) struct SealedRun {
    pub(crate) segment: Arc<Sealed>,
    pub(crate) slot: usize,
}

impl View {
    pub(crate) fn topic(&self, name: &str) -> Option<&TopicView> {
        self.topics.get(self.names.get(name)?)
    }

    /// A topic's events in a segment that is not sealed.
    pub(crate) fn run(&self, segment: u64, topic: u32) -> Option<&StreamRun> {
        let stream = self.streams.iter().find(|one| one.number == segment)?;
        stream.runs.get(&topic)
    }

    /// Applies changes to topics. Returns the names whose topic is gone or is another one now.
    pub(crate) fn change(&mut self, changes: Vec<ViewChange>) -> Vec<Arc<str>> {
        let mut gone = Vec::new();
        for change in changes {
            match change {
                ViewChange::Put { record, tail } => match self.topics.get_mut(&record.number) {
                    Some(topic) => topic.options = record.options,
                    None => {
                        // One of the same name may still be there, until its deletion is certain.
                        if self.names.contains_key(&record.name) {
                            gone.push(record.name.clone());
                        }
                        self.add_topic(record, tail);
                    }
                },
                ViewChange::Delete { number } => {
                    let Some(topic) = self.topics.remove(&number) else {
                        continue;
                    };
                    for stream in &mut self.streams {
                        stream.runs.remove(&number);
                    }
                    if self.names.get(&topic.name) == Some(&number) {
                        self.names.remove(&topic.name);
                        gone.push(topic.name);
                    }
                }
                ViewChange::Trim { number, first_seq } => {
                    if let Some(topic) = self.topics.get_mut(&number) {
                        topic.first_seq = topic.first_seq.max(first_seq);
                    }
                }
            }
        }
        gone
    }

    pub(crate) fn add_topic(&mut self, record: TopicRecord, tail: Arc<AtomicU64>) {
        self.names.insert(record.name.clone(), record.number);
        for stream in &mut self.streams {
            if let Some(run) = stream.runs.get_mut(&record.number) {
                run.tail = tail.clone();
            }
        }
        let topic = TopicView {
            number: record.number,
            name: record.name,
            options: record.options,
            tag: tag_of(self.log_id, record.number),
            first_seq: record.first_seq,
            tail,
            runs: Vec::new(),
            compacted_events: 0,
        };
        self.topics.insert(topic.number, topic);
    }

    /// Shows events that were written at `offset` of `segment` as part of `block`. Returns which topics got longer; one
    /// that has events in several places of the block is there for each.
    pub(crate) fn show<'a>(
        &mut self,
        segment: u64,
        offset: u64,
        block: &Arc<Vec<u8>>,
        events: impl Iterator<Item = &'a NewEvent>,
    ) -> Vec<Moved> {
        let mut moved = Vec::new();
        let Some(stream) = self
            .streams
            .iter_mut()
            .rev()
            .find(|stream| stream.number == segment)
        else {
            return moved;
        };
        let mut events = events.peekable();
        while let Some(number) = events.peek().map(|event| event.topic) {
            // Mostly many in a row are of one topic.
            let in_a_row = std::iter::from_fn(|| events.next_if(|event| event.topic == number));
            let run = match stream.runs.entry(number) {
                Entry::Occupied(run) => run.into_mut(),
                Entry::Vacant(place) => {
                    let Some(topic) = self.topics.get(&number) else {
                        in_a_row.for_each(drop);
                        continue;
                    };
                    place.insert(StreamRun {
                        tail: topic.tail.clone(),
                        ..StreamRun::default()
                    })
                }
            };
            let mut tail_seq = 0;
            for event in in_a_row {
                let (at, bytes) = (event.at as usize, event.bytes as usize);
                let stored = match event.keyed {
                    true => StoredEvent::from_checked(block.clone(), at, bytes).ok(),
                    false => None,
                };
                let entry = StreamEntry {
                    seq: event.seq,
                    ts: event.ts,
                    offset: (offset + u64::from(event.at)) as u32,
                    bytes: event.bytes,
                };
                let key = stored.as_ref().and_then(|stored| stored.key());
                run.make_room(&mut self.spare_entries);
                run.push(entry, key.as_deref());
                run.has_own_ids |= event.has_own_id;
                tail_seq = event.seq;
            }
            run.tail.store(tail_seq, Ordering::Release);
            moved.push(Moved {
                topic: number,
                tail_seq,
            });
        }
        moved
    }

    /// Notes that a segment's checkpoint and name are synced.
    pub(crate) fn stream_is_durable(&mut self, number: u64) {
        let mut newest_first = self.streams.iter_mut().rev();
        if let Some(stream) = newest_first.find(|stream| stream.number == number) {
            stream.is_durable = true;
        }
    }

    /// Adds a sealed segment's runs to their topics. Runs of topics that are gone are left out.
    pub(crate) fn add_sealed(&mut self, segment: &Arc<Sealed>) {
        self.sealed.insert(segment.header.number, segment.clone());
        for (slot, info) in segment.runs.iter().enumerate() {
            let Some(topic) = self.topics.get_mut(&info.topic) else {
                continue;
            };
            let at = topic
                .runs
                .partition_point(|run| run.info().first_seq < info.first_seq);
            let segment = segment.clone();
            topic.runs.insert(at, SealedRun { segment, slot });
        }
    }

    /// Takes a sealed segment out of sight.
    pub(crate) fn remove_sealed(&mut self, number: u64) {
        let Some(segment) = self.sealed.remove(&number) else {
            return;
        };
        for info in &segment.runs {
            if let Some(topic) = self.topics.get_mut(&info.topic) {
                topic.runs.retain(|run| run.segment.header.number != number);
            }
        }
    }

    /// A topic with what it holds.
    pub(crate) fn info(&self, topic: &TopicView) -> TopicInfo {
        let first_seq = topic.first_seq;
        let (mut events, mut bytes) = (0, 0);
        for run in topic.runs.iter().map(SealedRun::info) {
            let (kept, all) = (run.kept_from(first_seq), run.events.max(1));
            events += kept;
            bytes += run.bytes * kept / all;
        }
        for run in self
            .streams
            .iter()
            .filter_map(|stream| stream.runs.get(&topic.number))
        {
            let (kept, all) = (
                run.entries_from(first_seq).len() as u64,
                run.entries.len() as u64,
            );
            events += kept;
            bytes += run.bytes * kept / all.max(1);
        }
        TopicInfo {
            name: topic.name.clone(),
            options: topic.options.clone(),
            incarnation: u64::from(topic.number),
            first_seq,
            tail_seq: topic.tail_seq(),
            events,
            bytes,
        }
    }
}

impl TopicView {
    pub(crate) fn tail_seq(&self) -> u64 {
        self.tail.load(Ordering::Acquire)
    }
}

impl SealedRun {
    pub(crate) fn info(&self) -> &crate::segment::index::RunInfo {
        &self.segment.runs[self.slot]
    }
}
