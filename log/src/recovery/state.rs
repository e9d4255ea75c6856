//! The state that a log goes on from, rebuilt from the state runs and the records of the segments that are not sealed.

use crate::damage::DamageList;
use crate::files::Files;
use crate::hashing::GivenMap;
use crate::record::{Kind, StateRecord, StoredEvent, TopicRecord, read_frame};
use crate::segment::active::{ActiveEntry, ActiveSegment};
use crate::segment::index::Section;
use crate::segment::sealed::Sealed;
use crate::segment::{Found, Scanner};
use crate::state_runs::{self, LoadedRuns, RunHeader, StateRuns, log_time};
use crate::write_buffer::UnsealedIds;
use crate::writer::segment_start;
use prombus_store::{EventRef, Id, Keyed};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Topics, keyed records and client ids as of some place in the log.
pub(super) struct State {
    pub(super) topics: BTreeMap<u32, TopicRecord>,
    pub(super) keyed: BTreeMap<Arc<str>, Keyed>,
    pub(super) unsealed_ids: UnsealedIds,
    pub(super) next_topic_number: u32,
    pub(super) log_id: u64,
    /// The last segment whose changes are in state runs.
    pub(super) covered_to: u64,
    /// The position behind the last event of each topic that was found in the segments.
    reached: GivenMap<u32, u64>,
    /// The segments of which there should be state runs, if there is none at all and nothing else told their state.
    pub(super) lacks_runs: Option<Range<u64>>,
}

/// A topic, if it is known, and positions that are missing in it.
pub(super) type Gap = (Option<Arc<str>>, Range<u64>);

/// What replaying a segment has found out about it and the one before it.
#[derive(Default)]
pub(super) struct Replayed {
    /// Positions of topics that the segment knows to have been before it, and the records before it did not have.
    pub(super) gaps: Vec<Gap>,
    /// How long the segment before it was.
    pub(super) previous_bytes: Option<u64>,
    /// Events that do not belong where they are.
    pub(super) misplaced: Vec<Range<u64>>,
}

impl State {
    /// The state behind the last sealed segment, which the state runs hold. Where something of them is lost, the topics
    /// at least are told by the segments' directories, and the runs are written anew.
    pub(super) fn load(
        files: &dyn Files,
        damage: &DamageList,
        sealed: &BTreeMap<u64, Arc<Sealed>>,
        log_id: Option<u64>,
        new_log_id: u64,
    ) -> io::Result<(Self, StateRuns)> {
        let mut state = Self {
            topics: BTreeMap::new(),
            keyed: BTreeMap::new(),
            unsealed_ids: UnsealedIds::default(),
            next_topic_number: 1,
            log_id: log_id.unwrap_or(new_log_id),
            covered_to: 0,
            reached: GivenMap::default(),
            lacks_runs: None,
        };
        let mut loaded =
            state_runs::load(files, log_id, damage, |record| state.apply(record, None))?;
        state.next_topic_number = state.next_topic_number.max(loaded.next_topic_number);
        state.log_id = log_id.or(loaded.log_id).unwrap_or(new_log_id);
        let last = sealed.values().next_back();
        let sealed_to = last.map_or(0, |last| last.header.covers_to.max(last.header.number));
        let is_upgrade = loaded.runs.is_empty() && last.is_some_and(|last| state.apply_copy(last));
        let lacks_some = !is_upgrade && loaded.covered_to < sealed_to;
        if lacks_some && loaded.runs.is_empty() {
            state.lacks_runs = Some(1..sealed_to + 1);
        } else if lacks_some {
            let missing = loaded.covered_to + 1..sealed_to + 1;
            LoadedRuns::note_missing(files, damage, missing);
        }
        for segment in sealed.values() {
            let runs = segment.index.runs().unwrap_or_default();
            let mut names = None;
            for (at, run) in runs.iter().enumerate() {
                state.reach(run.topic, run.last_seq);
                if let Some(topic) = state.topics.get_mut(&run.topic) {
                    topic.next_seq = topic.next_seq.max(run.last_seq + 1);
                } else if lacks_some || loaded.may_have_lost(run.topic) {
                    let names = names
                        .get_or_insert_with(|| segment.index.topic_names().unwrap_or_default());
                    if let Some(name) = names.get(at) {
                        state.find_topic(run.topic, name, run.last_seq, run.max_ts);
                    }
                }
            }
        }
        state.covered_to = loaded.covered_to.max(sealed_to);
        if loaded.is_incomplete || loaded.covered_to < state.covered_to {
            loaded.runs = vec![state.write_base(files, &loaded.runs)?];
        }
        Ok((state, StateRuns::new(loaded.runs)))
    }

    /// Applies the copy of the state that the index of a sealed segment of format 1 has. False where there is none.
    fn apply_copy(&mut self, last: &Sealed) -> bool {
        let copy = last.index.load(Section::Checkpoint).unwrap_or_default();
        let mut at = 0;
        while let Ok(frame) = read_frame(&copy, at) {
            if let Some(record) = StateRecord::read(&copy, at, &frame) {
                self.apply(record, None);
            }
            at += frame.bytes;
        }
        !copy.is_empty()
    }

    /// Writes the whole state as the one run that there is.
    fn write_base(&self, files: &dyn Files, replaced: &[RunHeader]) -> io::Result<RunHeader> {
        let header =
            RunHeader::for_segments(1, self.covered_to, self.next_topic_number, self.log_id);
        let keyed = self.keyed.iter().map(|(key, keyed)| StateRecord::KeyedPut {
            key: key.clone(),
            version: keyed.version,
            value: keyed.value.clone(),
        });
        let written = state_runs::write_base(files, header, self.topics.values(), keyed)?;
        state_runs::remove_replaced(files, written.to, replaced)?;
        Ok(written)
    }

    /// The record that a segment starts with.
    pub(super) fn segment_start(&self) -> Vec<u8> {
        segment_start(self.next_topic_number, self.log_id)
    }

    /// Applies all records of a sound segment up to `end`, and fills in where its events are. Where it starts with the
    /// whole state, as in format 1, that replaces what is known. An event whose position was passed already was copied
    /// there from elsewhere and is left out.
    pub(super) fn replay(
        &mut self,
        segment: &mut ActiveSegment,
        end: u64,
        has_checkpoint: bool,
    ) -> io::Result<Replayed> {
        let mut replayed = Replayed::default();
        let mut before = None;
        let mut is_first = true;
        let is_covered = segment.number <= self.covered_to;
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
            let starts_with_state = has_checkpoint && frame.kind != Kind::CheckpointEnd;
            if std::mem::take(&mut is_first) && starts_with_state && !is_covered {
                // It names everything; what it does not name any more is gone.
                before = Some(std::mem::take(&mut self.topics));
                self.keyed.clear();
                self.lacks_runs = None;
            }
            if frame.kind == Kind::Event {
                if let Ok(event) = StoredEvent::from_checked(block, in_block, frame.bytes)
                    && !self.apply_event(segment, at as u32, &event)
                {
                    replayed.misplaced.push(at..at + frame.bytes as u64);
                }
            } else if let Some(record) = StateRecord::read(&block, in_block, &frame) {
                match record {
                    StateRecord::SegmentEnd { bytes, next_seqs } => {
                        replayed.previous_bytes = Some(bytes);
                        let gaps =
                            self.gaps_before(&next_seqs, segment.number <= self.covered_to + 1);
                        replayed.gaps.extend(gaps);
                    }
                    // The state runs know of it, and of what came later.
                    StateRecord::TopicDelete { number } if is_covered => {
                        segment.runs.remove(&number);
                    }
                    _ if is_covered => {}
                    record => self.apply(record, Some(segment)),
                }
            }
            if frame.kind == Kind::CheckpointEnd
                && let Some(before) = before.take()
            {
                replayed.gaps = self.gaps_since(&before);
            }
        }
        Ok(replayed)
    }

    /// The positions that topics had reached in the segment before and that were not found there. They are not given
    /// again. A topic whose record was lost with them has no name.
    fn gaps_before(&mut self, next_seqs: &[(u32, u64)], is_covered: bool) -> Vec<Gap> {
        let mut gaps = Vec::new();
        for &(number, next_seq) in next_seqs {
            let found = self.reached.get(&number).copied().unwrap_or(1);
            let (name, missing) = match self.topics.get_mut(&number) {
                Some(topic) => {
                    let known = if is_covered { found } else { topic.next_seq };
                    let missing = known.max(found).max(topic.first_seq)..next_seq;
                    topic.next_seq = topic.next_seq.max(next_seq);
                    (Some(topic.name.clone()), missing)
                }
                // It was deleted since.
                None if is_covered => continue,
                None => (None, found..next_seq),
            };
            if !missing.is_empty() {
                gaps.push((name, missing));
            }
        }
        gaps
    }

    /// The positions that topics keep and had not reached.
    fn gaps_since(&self, before: &BTreeMap<u32, TopicRecord>) -> Vec<Gap> {
        let mut gaps = Vec::new();
        for topic in self.topics.values() {
            let known = before.get(&topic.number).map_or(1, |known| known.next_seq);
            let missing = known.max(topic.first_seq)..topic.next_seq;
            if !missing.is_empty() {
                gaps.push((Some(topic.name.clone()), missing));
            }
        }
        gaps
    }

    /// False for an event that does not belong there.
    fn apply_event(
        &mut self,
        segment: &mut ActiveSegment,
        offset: u32,
        event: &StoredEvent,
    ) -> bool {
        let (seq, ts) = (event.seq(), event.ts());
        let number = event.topic_number();
        if self.reached.get(&number).is_some_and(|&next| seq < next) {
            return false;
        }
        if segment.number > self.covered_to {
            let log_ts = log_time(event, self.log_id);
            self.find_topic(number, event.topic(), seq, log_ts);
        } else if !self.topics.contains_key(&number) {
            // It was deleted.
            return true;
        }
        self.reach(number, seq);
        let entry = ActiveEntry {
            seq,
            ts,
            offset,
            bytes: event.stored_bytes() as u32,
        };
        let run = segment.runs.entry(number).or_default();
        run.push(entry, event.key().as_deref());
        run.has_client_ids |= event.has_client_id();
        // What an older version stored is as old as the newest time before it, where it does not say.
        let known_ms = self.topics.get(&number).map_or(0, |topic| topic.last_ts);
        let stored_ms = event.stored_ms().unwrap_or(known_ms);
        run.note_stored(seq, event.has_client_ts().then_some(stored_ms));
        if event.has_client_id()
            && let Some(id) = Id::from_client(&event.id())
        {
            let event_ref = EventRef { id, seq, ts };
            let payload = event.payload().as_bytes();
            self.unsealed_ids
                .insert(number, &event_ref, payload, segment.number);
        }
        true
    }

    fn reach(&mut self, number: u32, seq: u64) {
        let reached = self.reached.entry(number).or_default();
        *reached = (*reached).max(seq + 1);
    }

    /// Moves a topic behind an event. Only where damage took the record that made the topic is it made here, from
    /// what its event says.
    fn find_topic(&mut self, number: u32, name: &str, seq: u64, bus_ts: u64) {
        let topic = self.topics.entry(number).or_insert_with(|| TopicRecord {
            number,
            name: name.into(),
            options: Arc::default(),
            next_seq: 1,
            first_seq: 1,
            last_ts: 0,
        });
        topic.next_seq = topic.next_seq.max(seq + 1);
        topic.last_ts = topic.last_ts.max(bus_ts);
        self.next_topic_number = self.next_topic_number.max(number + 1);
    }

    /// Applies a record; `segment` is where the events read so far are, of which a deleted topic's go.
    pub(super) fn apply(&mut self, record: StateRecord, segment: Option<&mut ActiveSegment>) {
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
                if let Some(known) = self.topics.get(&topic.number) {
                    // A record that was copied there from before must not take positions back.
                    topic.advance(known.next_seq, known.first_seq, known.last_ts);
                }
                self.topics.insert(topic.number, topic);
            }
            StateRecord::TopicProgress {
                number,
                next_seq,
                first_seq,
                last_ts,
            } => {
                if let Some(topic) = self.topics.get_mut(&number) {
                    topic.advance(next_seq, first_seq, last_ts);
                }
            }
            StateRecord::TopicDelete { number } => {
                self.topics.remove(&number);
                if let Some(segment) = segment {
                    segment.runs.remove(&number);
                }
            }
            StateRecord::Trim { number, first_seq } => {
                if let Some(topic) = self.topics.get_mut(&number) {
                    topic.advance(first_seq, first_seq, 0);
                }
            }
            StateRecord::CheckpointEnd {
                next_topic_number,
                log_id,
            } => {
                self.next_topic_number = self.next_topic_number.max(next_topic_number);
                self.log_id = log_id;
            }
            StateRecord::Synced { .. } | StateRecord::SegmentEnd { .. } => {}
        }
    }
}
