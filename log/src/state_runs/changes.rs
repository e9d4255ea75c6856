//! The net change that one segment made to topics and keyed records: the last record of each key, and how far the topics
//! of its events have come.

use super::file::RunWriter;
use super::order::{StateKey, combine};
use super::{RunHeader, StateRuns};
use crate::files::{File, Files};
use crate::hashing::GivenMap;
use crate::pace::STRETCH_BYTES;
use crate::record::{Kind, StateRecord, StoredEvent};
use crate::segment::{Found, Scanner};
use prombus_store::{GeneratedId, tag_of};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// What a segment in commit order leaves of the changes made in it.
pub(crate) struct NetChanges {
    records: BTreeMap<StateKey, StateRecord>,
    /// Next position and clock of each topic that has events in the segment.
    progress: GivenMap<u32, (u64, u64)>,
    next_topic_number: u32,
    /// The segment starts with the whole state, as those of format 1 do, so that nothing before it counts.
    is_complete: bool,
    /// Bad stretches of the segment.
    pub(crate) damage: Vec<Range<u64>>,
}

impl NetChanges {
    /// Reads a whole segment. `rest` is called after each stretch of it.
    pub(crate) fn of_segment(
        file: &Arc<dyn File>,
        log_id: u64,
        rest: &dyn Fn(u64),
    ) -> io::Result<Self> {
        let mut changes = Self {
            records: BTreeMap::new(),
            progress: GivenMap::default(),
            next_topic_number: 1,
            is_complete: false,
            damage: Vec::new(),
        };
        let mut scanner = Scanner::whole(file.clone(), file.bytes()?);
        // Whether the first record is one of a state; those of the present format start with the end of it.
        let mut starts_with_state = None;
        let mut stretch = 0;
        while let Some(found) = scanner.next()? {
            let (frame, block, in_block) = match found {
                Found::Damage { from, to } => {
                    changes.damage.push(from..to);
                    starts_with_state.get_or_insert(false);
                    continue;
                }
                Found::Record {
                    frame,
                    block,
                    in_block,
                    ..
                } => (frame, block, in_block),
            };
            stretch += frame.bytes as u64;
            if stretch >= STRETCH_BYTES {
                rest(std::mem::take(&mut stretch));
            }
            let starts_with_state =
                *starts_with_state.get_or_insert(frame.kind != Kind::CheckpointEnd);
            if frame.kind == Kind::Event {
                if let Ok(event) = StoredEvent::from_checked(block, in_block, frame.bytes) {
                    changes.add_event(&event, log_id);
                }
            } else if let Some(record) = StateRecord::read(&block, in_block, &frame) {
                changes.is_complete |= starts_with_state && frame.kind == Kind::CheckpointEnd;
                changes.add(record);
            }
        }
        Ok(changes)
    }

    fn add_event(&mut self, event: &StoredEvent, log_id: u64) {
        let progress = self.progress.entry(event.topic_number()).or_default();
        progress.0 = progress.0.max(event.seq() + 1);
        progress.1 = progress.1.max(log_time(event, log_id));
    }

    fn add(&mut self, record: StateRecord) {
        let record = match record {
            StateRecord::Trim { number, first_seq } => StateRecord::TopicProgress {
                number,
                next_seq: first_seq,
                first_seq,
                last_ts: 0,
            },
            StateRecord::CheckpointEnd {
                next_topic_number, ..
            } => {
                self.next_topic_number = self.next_topic_number.max(next_topic_number);
                return;
            }
            record => record,
        };
        if let StateRecord::TopicPut(topic) = &record {
            self.next_topic_number = self.next_topic_number.max(topic.number + 1);
        }
        let Some(key) = StateKey::of(&record) else {
            return;
        };
        let known = self.records.remove(&key);
        let record = match known {
            Some(known) => combine(known, record),
            None => record,
        };
        self.records.insert(key, record);
    }

    /// Writes the changes of segment `number` as the newest run. Returns how many bytes that took.
    pub(crate) fn write(
        mut self,
        files: &dyn Files,
        runs: &StateRuns,
        number: u64,
        log_id: u64,
    ) -> io::Result<u64> {
        for (number, (next_seq, last_ts)) in std::mem::take(&mut self.progress) {
            self.add(StateRecord::TopicProgress {
                number,
                next_seq,
                first_seq: 1,
                last_ts,
            });
        }
        let from = if self.is_complete {
            1
        } else {
            runs.covered_to() + 1
        };
        let header = RunHeader::for_segments(from, number, self.next_topic_number, log_id);
        let mut writer = RunWriter::create(files, header)?;
        for record in self.records.values() {
            writer.add(record)?;
        }
        let written = writer.finish()?;
        let replaced = runs.add(written);
        super::remove_replaced(files, number, &replaced)?;
        Ok(written.bytes)
    }
}

/// The log's own time of an event: when it was stored, and in its id if the log made it.
pub(crate) fn log_time(event: &StoredEvent, log_id: u64) -> u64 {
    let given = event.stored_ms().unwrap_or(0);
    let tag = tag_of(log_id, event.topic_number());
    let made = GeneratedId::parse(&event.id()).filter(|made| made.tag == tag);
    given.max(made.map_or(0, |made| made.ms))
}
