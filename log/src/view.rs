//! What readers see: each topic's sealed runs and, behind them, its events in the segments not sealed yet.

mod sealed_runs;

pub(crate) use sealed_runs::{SealedRun, TOPICS_PER_HOLD};

use crate::hashing::GivenMap;
use crate::record::{LAST_OF_BATCH, StateRecord, StoredEvent, TopicRecord};
use crate::segment::active::{ActiveEntry, ActiveRun, ActiveSegment, SpareEntries};
use crate::segment::index::IdPrefix;
use crate::segment::sealed::Sealed;
use crate::tail_cache::TailCache;
use crate::write_buffer::{NewEvent, ViewChange};
use prombus_store::{TopicInfo, TopicOptions, tag_of};
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// So many topics are named in one record about a segment's end.
const TOPICS_OF_A_RECORD: usize = 65_536;

/// Everything that can be read.
pub(crate) struct View {
    /// Boxed, because a map has up to half of its places empty.
    pub(crate) topics: GivenMap<u32, Box<TopicView>>,
    pub(crate) names: BTreeMap<Arc<str>, u32>,
    /// Oldest first; the last one is being written.
    pub(crate) active_segments: Vec<ActiveSegment>,
    pub(crate) sealed: BTreeMap<u64, Arc<Sealed>>,
    pub(crate) tail_cache: TailCache,
    pub(crate) spare_entries: SpareEntries,
    pub(crate) log_id: u64,
}

/// One topic as readers see it.
pub(crate) struct TopicView {
    pub(crate) number: u32,
    pub(crate) name: Arc<str>,
    pub(crate) options: Arc<TopicOptions>,
    /// The tag of the ids that the log makes in it.
    pub(crate) tag: u32,
    pub(crate) first_seq: u64,
    /// The newest position; shared with the buffer.
    pub(crate) tail: Arc<AtomicU64>,
    /// In the order of positions.
    pub(crate) runs: Vec<SealedRun>,
    /// The events and bytes of all runs.
    pub(crate) sealed_events: u64,
    pub(crate) sealed_bytes: u64,
    /// How many sealed events the last compaction left.
    pub(crate) compacted_events: u64,
    /// The beginning of the highest client id that a sealed segment holds or held.
    pub(crate) highest_id: IdPrefix,
    /// The lowest ts of a run, by its segment and generation, if it was asked for when that was the first one kept.
    pub(crate) oldest_stored: Option<((u64, u32), u64)>,
}

/// A topic that got longer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TailAdvance {
    pub(crate) topic: u32,
    pub(crate) tail_seq: u64,
}

impl View {
    pub(crate) fn topic(&self, name: &str) -> Option<&TopicView> {
        self.topics.get(self.names.get(name)?).map(|topic| &**topic)
    }

    /// A topic's events in a segment that is not sealed.
    pub(crate) fn run(&self, segment: u64, topic: u32) -> Option<&ActiveRun> {
        let active = self
            .active_segments
            .iter()
            .find(|one| one.number == segment)?;
        active.runs.get(&topic)
    }

    /// The name of the topic whose event is at this place of a segment that is not sealed.
    pub(crate) fn topic_of(&self, segment: u64, entry: &ActiveEntry) -> Option<Arc<str>> {
        let active = self
            .active_segments
            .iter()
            .find(|one| one.number == segment)?;
        let is_there = |run: &ActiveRun| {
            let found = run.entries_from(entry.seq).first();
            found.is_some_and(|found| found.offset == entry.offset)
        };
        let (number, _) = active.runs.iter().find(|(_, run)| is_there(run))?;
        Some(self.topics.get(number)?.name.clone())
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
                    for active in &mut self.active_segments {
                        active.runs.remove(&number);
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
        for active in &mut self.active_segments {
            if let Some(run) = active.runs.get_mut(&record.number) {
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
            sealed_events: 0,
            sealed_bytes: 0,
            compacted_events: 0,
            highest_id: IdPrefix::default(),
            oldest_stored: None,
        };
        self.topics.insert(topic.number, Box::new(topic));
    }

    /// Shows events that were written at `offset` of `segment` as part of `block`. Returns which topics got longer; one
    /// that has events in several places of the block is there for each.
    pub(crate) fn show<'a>(
        &mut self,
        segment: u64,
        offset: u64,
        block: &Arc<Vec<u8>>,
        events: impl Iterator<Item = &'a NewEvent>,
    ) -> Vec<TailAdvance> {
        let mut moved = Vec::new();
        let Some(active) = self
            .active_segments
            .iter_mut()
            .rev()
            .find(|active| active.number == segment)
        else {
            return moved;
        };
        let mut events = events.peekable();
        while let Some(number) = events.peek().map(|event| event.topic) {
            // Mostly many in a row are of one topic.
            let in_a_row = std::iter::from_fn(|| events.next_if(|event| event.topic == number));
            let run = match active.runs.entry(number) {
                Entry::Occupied(run) => run.into_mut(),
                Entry::Vacant(place) => {
                    let Some(topic) = self.topics.get(&number) else {
                        in_a_row.for_each(drop);
                        continue;
                    };
                    place.insert(ActiveRun::new(topic.tail.clone()))
                }
            };
            let mut tail_seq = 0;
            for event in in_a_row {
                let (at, bytes) = (event.at as usize, event.bytes as usize);
                let stored = if event.keyed {
                    StoredEvent::from_checked(block.clone(), at, bytes).ok()
                } else {
                    None
                };
                let entry = ActiveEntry {
                    seq: event.seq,
                    ts: event.ts,
                    offset: (offset + u64::from(event.at)) as u32,
                    bytes: event.bytes,
                };
                let key = stored.as_ref().and_then(|stored| stored.key());
                run.preallocate(&mut self.spare_entries);
                run.push(entry, key.as_deref());
                run.has_client_ids |= event.has_client_id;
                run.note_stored(event.seq, event.client_ts_stored_ms);
                tail_seq = event.seq;
            }
            run.tail.store(tail_seq, Ordering::Release);
            moved.push(TailAdvance {
                topic: number,
                tail_seq,
            });
        }
        moved
    }

    /// Appends the records that say how a full segment ended, for the start of the next one.
    pub(crate) fn segment_end(&self, segment: u64, bytes: u64, out: &mut Vec<u8>) {
        let active = self
            .active_segments
            .iter()
            .find(|one| one.number == segment);
        let runs = active.into_iter().flat_map(|active| &active.runs);
        let next_seqs: Vec<(u32, u64)> = runs
            .filter_map(|(number, run)| Some((*number, run.entries.last()?.seq + 1)))
            .collect();
        let mut parts = next_seqs.chunks(TOPICS_OF_A_RECORD);
        let first = parts.next().unwrap_or_default();
        for part in [first].into_iter().chain(parts) {
            let record = StateRecord::SegmentEnd {
                bytes,
                next_seqs: part.to_vec(),
            };
            record.write(out, LAST_OF_BATCH);
        }
    }

    /// Notes that a segment's start and name are synced.
    pub(crate) fn active_is_durable(&mut self, number: u64) {
        let mut newest_first = self.active_segments.iter_mut().rev();
        if let Some(active) = newest_first.find(|active| active.number == number) {
            active.is_durable = true;
        }
    }

    /// A topic with what it holds.
    pub(crate) fn info(&self, topic: &TopicView) -> TopicInfo {
        let first_seq = topic.first_seq;
        let (mut events, mut bytes) = self.sealed_size(topic);
        for run in self
            .active_segments
            .iter()
            .filter_map(|active| active.runs.get(&topic.number))
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
            options: (*topic.options).clone(),
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
