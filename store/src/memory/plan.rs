//! Whether a batch can happen, found out before anything of it does.

use super::state::State;
use super::topic::{Claim, Topic};
use crate::{
    Batch, Change, CommitError, EncodedEvent, Expect, Id, IdConflict, KeyPosition, SeqMismatch,
    UnknownTopic, VersionMismatch,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Refuses a batch of which something would have to be left out that must not be.
pub(super) fn check(state: &State, batch: &Batch, now_ms: u64) -> Result<(), CommitError> {
    if batch.changes().is_empty() && !batch.is_atomic() {
        return Ok(());
    }
    let mut plan = Plan {
        state,
        topics: HashMap::new(),
        versions: HashMap::new(),
        last_version: state.last_version,
        now_ms,
        has_expected_keys: batch.has_expected_key_positions(),
    };
    for change in batch.changes() {
        plan.change(change)?;
    }
    if batch.is_atomic() {
        for (at, event) in batch.events().enumerate() {
            plan.event(at, event)?;
        }
    }
    Ok(())
}

/// The store as it would be after the part of the batch that was looked at.
struct Plan<'a> {
    state: &'a State,
    /// Topics that the batch touches, `None` where they would not exist.
    topics: HashMap<&'a str, Option<PlannedTopic<'a>>>,
    /// Versions of the keyed records that the batch touches, `None` where they would not exist.
    versions: HashMap<&'a str, Option<u64>>,
    last_version: u64,
    now_ms: u64,
    /// Whether an event of the batch expects something of its key.
    has_expected_keys: bool,
}

#[derive(Default)]
struct PlannedTopic<'a> {
    /// What it holds now; nothing where the batch makes it.
    held: Option<&'a Topic>,
    /// The position before which the batch trims it.
    first_seq: u64,
    tail_seq: u64,
    /// Where the ids that the batch brings would be stored, and with which payload.
    ids: HashMap<String, (u64, &'a [u8])>,
    /// The last events of keys that the batch brings, where one of its events expects something of a key.
    keys: HashMap<&'a [u8], KeyPosition>,
}

impl<'a> Plan<'a> {
    fn change(&mut self, change: &'a Change) -> Result<(), CommitError> {
        match change {
            Change::PutTopic { topic, .. } => {
                self.topic(topic).get_or_insert_default();
            }
            Change::DeleteTopic { topic } => *self.topic(topic) = None,
            Change::Trim { topic, first_seq } => {
                let planned = self.existing(topic)?;
                planned.first_seq = planned.first_seq.max(*first_seq);
            }
            Change::Put { key, expect, .. } => {
                self.expect(key, *expect)?;
                self.last_version += 1;
                self.versions.insert(key, Some(self.last_version));
            }
            Change::Delete { key, expect } => {
                self.expect(key, *expect)?;
                self.versions.insert(key, None);
            }
        }
        Ok(())
    }

    /// Takes in an event of an atomic batch.
    fn event(&mut self, at: usize, event: EncodedEvent<'a>) -> Result<(), CommitError> {
        let (now_ms, has_expected_keys) = (self.now_ms, self.has_expected_keys);
        let planned = self.existing(event.topic())?;
        if let Some(id) = event.id() {
            match planned.first_with(&id) {
                First::None => {}
                First::At(_, payload) if payload == event.payload() => return Ok(()),
                First::At(seq, _) | First::Reserved(seq) => {
                    return Err(IdConflict {
                        topic: event.topic().clone(),
                        id: id.as_str().into(),
                        seq,
                    }
                    .into());
                }
            }
        }
        if let Some(expected) = event.expected() {
            let checked = expected.check(planned.tail_seq, || planned.key_seq(&event, now_ms));
            checked.map_err(|mismatch| SeqMismatch {
                topic: event.topic().clone(),
                mismatch,
                event: at,
            })?;
        }
        planned.tail_seq += 1;
        if let Some(id) = event.id() {
            let place = (planned.tail_seq, event.payload());
            planned.ids.insert(id.as_str().into(), place);
        }
        if has_expected_keys && let Some(key) = event.key_json() {
            let position = KeyPosition::of_new(&event, planned.tail_seq, now_ms);
            planned.keys.insert(key, position);
        }
        Ok(())
    }

    fn expect(&self, key: &'a Arc<str>, expect: Expect) -> Result<(), VersionMismatch> {
        let found = match self.versions.get(key.as_ref()) {
            Some(&planned) => planned,
            None => self.state.keyed.get(key).map(|keyed| keyed.version),
        };
        let met = match expect {
            Expect::Any => true,
            Expect::Absent => found.is_none(),
            Expect::Version(version) => found == Some(version),
        };
        if met {
            Ok(())
        } else {
            Err(VersionMismatch {
                key: key.clone(),
                found,
            })
        }
    }

    fn existing(&mut self, topic: &'a Arc<str>) -> Result<&mut PlannedTopic<'a>, UnknownTopic> {
        self.topic(topic).as_mut().ok_or_else(|| UnknownTopic {
            topic: topic.clone(),
        })
    }

    fn topic(&mut self, topic: &'a Arc<str>) -> &mut Option<PlannedTopic<'a>> {
        self.topics.entry(topic).or_insert_with(|| {
            let held = self.state.topics.get(topic)?;
            Some(PlannedTopic {
                held: Some(held),
                tail_seq: held.tail_seq,
                ..PlannedTopic::default()
            })
        })
    }
}

/// Who had an id first.
enum First<'a> {
    None,
    /// An event at this position, with this payload.
    At(u64, &'a [u8]),
    /// It is kept free for the event that will be given this position.
    Reserved(u64),
}

impl<'a> PlannedTopic<'a> {
    /// The position of the last event of an event's key.
    fn key_seq(&self, event: &EncodedEvent<'a>, now_ms: u64) -> u64 {
        let planned = event.key_json().and_then(|key| self.keys.get(key));
        let held = || {
            let position = self.held?.key_position(&event.key()?)?;
            (position.seq >= self.first_seq).then_some(position)
        };
        let position = planned.copied().or_else(held);
        position.map_or(0, |position| position.seq_at(now_ms))
    }

    fn first_with(&self, id: &Id) -> First<'a> {
        if let Some(&(seq, payload)) = self.ids.get(id.as_str()) {
            return First::At(seq, payload);
        }
        let Some(held) = self.held else {
            return First::None;
        };
        match held.claim(id, held.tail_seq) {
            Claim::Held(seq) if seq >= self.first_seq => {
                let payload = held.get(seq).map_or("", |event| event.payload());
                First::At(seq, payload.as_bytes())
            }
            Claim::Reserved(made) => First::Reserved(made.seq),
            Claim::Free | Claim::Held(_) => First::None,
        }
    }
}
