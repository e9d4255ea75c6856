//! Positions that were given once are never given again, also where the events are lost: each topic goes on behind
//! everything that is known to have existed, and behind everything that may have.

use super::Opening;
use super::inventory::Inventory;
use super::state::State;
use crate::files::File;
use crate::record::{LAST_OF_BATCH, StateRecord, TopicRecord};
use prombus_store::{Damage, DamageKind, MAX_SEQ};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

/// No segment holds more events: it stays below 4 GiB, and no event's record is shorter than this.
const MIN_EVENT_BYTES: u64 = 64;
const MAX_SEGMENT_EVENTS: u64 = (1 << 32) / MIN_EVENT_BYTES;
/// So many segments that are missing at the end count; a record that names more of them is not to use up all positions.
const MAX_LOST_SEGMENTS: u64 = 16;

impl Opening {
    /// Moves topics on behind all that is known to be lost. Returns those that moved.
    pub(super) fn raise_positions(
        &self,
        state: &mut State,
        inventory: &Inventory,
    ) -> Vec<TopicRecord> {
        let before: BTreeMap<u32, u64> = state
            .topics
            .values()
            .map(|topic| (topic.number, topic.next_seq))
            .collect();
        let mut raise = |number: u32, next_seq: u64| {
            if let Some(topic) = state.topics.get_mut(&number) {
                topic.next_seq = topic.next_seq.max(next_seq.min(MAX_SEQ));
            }
        };
        for run in inventory.orphans.iter().flat_map(|(_, runs)| runs) {
            raise(run.topic, run.last_seq + 1);
        }
        if let Some(mark) = &self.closed {
            for &(number, next_seq) in &mark.next_seqs {
                raise(number, next_seq);
                if !before.contains_key(&number) {
                    self.note_lost_topic(mark.segment, next_seq);
                }
            }
        }
        self.raise_by_bad_bytes(state);
        // Behind the last thing that is known nothing tells how many positions were given.
        let lost_segments = match self.closed {
            Some(_) => 0,
            None => inventory.missing_at_end.min(MAX_LOST_SEGMENTS),
        };
        let unknown = lost_segments * MAX_SEGMENT_EVENTS;
        let behind_bad_bytes = self.unknown_bytes.div_ceil(MIN_EVENT_BYTES);
        for topic in state.topics.values_mut() {
            let goes_on = self.known_topics.contains(&topic.number);
            let more = unknown + if goes_on { 0 } else { behind_bad_bytes };
            topic.next_seq = (topic.next_seq + more).min(MAX_SEQ);
        }
        let moved = state.topics.values();
        let moved = moved.filter(|topic| before.get(&topic.number) != Some(&topic.next_seq));
        moved.cloned().collect()
    }

    /// Bad bytes that can be told to be events were given positions.
    fn raise_by_bad_bytes(&self, state: &mut State) {
        // Older findings may be about a topic of the same name that is gone.
        let findings = self.damage.since(self.known_damage);
        let topics = state.topics.values_mut();
        let mut topics: HashMap<Arc<str>, &mut TopicRecord> =
            topics.map(|topic| (topic.name.clone(), topic)).collect();
        for event in findings.iter().flat_map(|damage| &damage.events) {
            let (Some(name), Some(seq)) = (&event.topic, event.seq) else {
                continue;
            };
            // A position that no segment reaches was damaged itself.
            if let Some(topic) = topics.get_mut(name.as_str())
                && (topic.next_seq..topic.next_seq + MAX_SEGMENT_EVENTS).contains(&seq)
            {
                topic.next_seq = seq + 1;
            }
        }
    }

    /// A topic that the mark of a clean stop knows and nothing else does.
    fn note_lost_topic(&self, segment: u64, next_seq: u64) {
        let mut damage = Damage::of(DamageKind::LostPositions, segment);
        damage.lose(None, 1..next_seq);
        self.damage.add(&*self.files, &damage);
    }
}

/// Writes down how far topics went, behind the last record of the segment. Returns where it ends then.
pub(super) fn append(file: &dyn File, end: u64, topics: &[TopicRecord]) -> io::Result<u64> {
    let mut out = Vec::new();
    for topic in topics {
        StateRecord::TopicPut(topic.clone()).write(&mut out, LAST_OF_BATCH);
    }
    if !out.is_empty() {
        file.write_at(&out, end)?;
        file.sync()?;
    }
    Ok(end + out.len() as u64)
}
