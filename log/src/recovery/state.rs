//! The state that a log goes on from, rebuilt from a checkpoint and the records behind it.

use crate::checkpoint::Checkpoint;
use crate::event_id::{Id, MadeId, tag_of};
use crate::front::OwnIds;
use crate::receipt::{Keyed, Placed};
use crate::record::{Kind, StateRecord, StoredEvent, TopicRecord, read_frame};
use crate::segment::index::Section;
use crate::segment::sealed::Sealed;
use crate::segment::stream::{StreamEntry, StreamSegment};
use crate::segment::{Found, Scanner};
use crate::topic::TopicOptions;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Topics, keyed records and own ids as of some place in the log.
pub(super) struct State {
    pub(super) topics: BTreeMap<u32, TopicRecord>,
    pub(super) keyed: BTreeMap<Arc<str>, Keyed>,
    pub(super) own_ids: OwnIds,
    pub(super) next_topic_number: u32,
    pub(super) log_id: u64,
}

/// What reading a segment's records found.
#[derive(Default)]
pub(super) struct Replayed {
    /// Where it starts with a checkpoint: positions of topics that the checkpoint knows and the records before it did
    /// not have.
    pub(super) gaps: Vec<(Arc<str>, Range<u64>)>,
    /// Events that do not belong where they are.
    pub(super) misplaced: Vec<Range<u64>>,
}

impl State {
    /// The state behind the last sealed segment, which keeps a copy of the checkpoint that follows it. Where that is
    /// lost, the topics at least are told by the segments' directories.
    pub(super) fn after(
        sealed: &BTreeMap<u64, Arc<Sealed>>,
        log_id: Option<u64>,
        entropy: u64,
    ) -> Self {
        let mut state = Self {
            topics: BTreeMap::new(),
            keyed: BTreeMap::new(),
            own_ids: OwnIds::default(),
            next_topic_number: 1,
            log_id: log_id.unwrap_or(entropy),
        };
        let Some(last) = sealed.values().next_back() else {
            return state;
        };
        let copy = last.index.load(Section::Checkpoint).unwrap_or_default();
        let mut at = 0;
        while let Ok(frame) = read_frame(&copy, at) {
            if let Some(record) = StateRecord::read(&copy, at, &frame) {
                state.apply(record, None);
            }
            at += frame.bytes;
        }
        if copy.is_empty() {
            for run in sealed.values().flat_map(|segment| &segment.runs) {
                state.find_topic(run.topic, &run.name, run.last_seq, run.max_ts);
            }
        }
        state
    }

    /// The records that a new segment starts with.
    pub(super) fn checkpoint(&self) -> Vec<u8> {
        let checkpoint = Checkpoint {
            topics: self.topics.values(),
            keyed: &self.keyed,
            next_topic_number: self.next_topic_number,
            log_id: self.log_id,
        };
        checkpoint.encode()
    }

    /// Applies all records of a sound segment up to `end`, and fills in where its events lie. An event whose position
    /// was passed already was copied there from elsewhere and is left out.
    pub(super) fn replay(
        &mut self,
        segment: &mut StreamSegment,
        end: u64,
        starts_with_checkpoint: bool,
    ) -> io::Result<Replayed> {
        let mut replayed = Replayed::default();
        let mut before = None;
        if starts_with_checkpoint {
            // It names everything; what it does not name any more is gone.
            before = Some(std::mem::take(&mut self.topics));
            self.keyed.clear();
        }
        let mut scanner = Scanner::whole(segment.file.clone(), end);
        while let Some(found) = scanner.next()? {
            let Found::Record {
                at,
                frame,
                block,
                in_block,
            } = found
            else {
                continue;
            };
            if frame.kind == Kind::Event {
                if let Ok(event) = StoredEvent::from_checked(block, in_block, frame.bytes)
                    && !self.apply_event(segment, at as u32, &event)
                {
                    replayed.misplaced.push(at..at + frame.bytes as u64);
                }
            } else if let Some(record) = StateRecord::read(&block, in_block, &frame) {
                self.apply(record, Some(segment));
            }
            if frame.kind == Kind::CheckpointEnd
                && let Some(before) = before.take()
            {
                replayed.gaps = self.gaps_since(&before);
            }
        }
        Ok(replayed)
    }

    /// The positions that topics keep and had not reached.
    fn gaps_since(&self, before: &BTreeMap<u32, TopicRecord>) -> Vec<(Arc<str>, Range<u64>)> {
        let mut gaps = Vec::new();
        for topic in self.topics.values() {
            let known = before.get(&topic.number).map_or(1, |known| known.next_seq);
            let missing = known.max(topic.first_seq)..topic.next_seq;
            if !missing.is_empty() {
                gaps.push((topic.name.clone(), missing));
            }
        }
        gaps
    }

    /// False for an event that does not belong there.
    fn apply_event(
        &mut self,
        segment: &mut StreamSegment,
        offset: u32,
        event: &StoredEvent,
    ) -> bool {
        let (seq, ts) = (event.seq(), event.ts());
        let number = event.topic_number();
        let topic = self.topics.get(&number);
        if topic.is_some_and(|topic| seq < topic.next_seq) {
            return false;
        }
        let bus_ts = self.bus_time(event);
        self.find_topic(number, event.topic(), seq, bus_ts);
        let entry = StreamEntry {
            seq,
            ts,
            offset,
            bytes: event.stored_bytes() as u32,
        };
        let run = segment.runs.entry(number).or_default();
        run.push(entry, event.key().as_deref());
        run.has_own_ids |= event.has_own_id();
        if event.has_own_id()
            && let Some(id) = Id::own(&event.id())
        {
            let placed = Placed { id, seq, ts };
            let payload = event.payload().as_bytes();
            self.own_ids
                .insert(number, &placed, payload, segment.number);
        }
        true
    }

    /// The log's own time of an event: in its ts unless the publisher gave that, and in its id if the log made it.
    fn bus_time(&self, event: &StoredEvent) -> u64 {
        let given = if event.has_own_ts() { 0 } else { event.ts() };
        let tag = tag_of(self.log_id, event.topic_number());
        let made = MadeId::parse(&event.id()).filter(|made| made.tag == tag);
        given.max(made.map_or(0, |made| made.ms))
    }

    /// Moves a topic behind an event. Only where damage took the record that made the topic is it made here, from
    /// what its event says.
    fn find_topic(&mut self, number: u32, name: &str, seq: u64, bus_ts: u64) {
        let topic = self.topics.entry(number).or_insert_with(|| TopicRecord {
            number,
            name: name.into(),
            options: TopicOptions::default(),
            next_seq: 1,
            first_seq: 1,
            last_ts: 0,
        });
        topic.next_seq = topic.next_seq.max(seq + 1);
        topic.last_ts = topic.last_ts.max(bus_ts);
        self.next_topic_number = self.next_topic_number.max(number + 1);
    }

    /// Applies a record; `segment` is where the events read so far are, of which a deleted topic's go.
    pub(super) fn apply(&mut self, record: StateRecord, segment: Option<&mut StreamSegment>) {
        match record {
            StateRecord::KeyedPut {
                key,
                version,
                value,
            } => {
                self.keyed.insert(key, Keyed { version, value });
            }
            StateRecord::KeyedDelete { key } => {
                self.keyed.remove(&key);
            }
            StateRecord::TopicPut(mut topic) => {
                self.next_topic_number = self.next_topic_number.max(topic.number + 1);
                // A record that was copied there from before must not take positions back.
                if let Some(known) = self.topics.get(&topic.number) {
                    topic.next_seq = topic.next_seq.max(known.next_seq);
                    topic.first_seq = topic.first_seq.max(known.first_seq);
                    topic.last_ts = topic.last_ts.max(known.last_ts);
                }
                self.topics.insert(topic.number, topic);
            }
            StateRecord::TopicDelete { number } => {
                self.topics.remove(&number);
                if let Some(segment) = segment {
                    segment.runs.remove(&number);
                }
            }
            StateRecord::Trim { number, first_seq } => {
                if let Some(topic) = self.topics.get_mut(&number) {
                    topic.first_seq = topic.first_seq.max(first_seq);
                }
            }
            StateRecord::CheckpointEnd {
                next_topic_number,
                log_id,
            } => {
                self.next_topic_number = self.next_topic_number.max(next_topic_number);
                self.log_id = log_id;
            }
            StateRecord::Synced { .. } => {}
        }
    }
}
