//! Taking a batch in: checking what it expects, giving its events their positions, and encoding its records into the
//! pending group.

use super::keyed_budget::KeyedBudget;
use super::topics::Topic;
use super::{Held, NewEvent, SeenKey, ViewChange, WriteBuffer};
use crate::completion::Completion;
use crate::options::Role;
use crate::record::{EventPlace, LAST_OF_BATCH, StateRecord};
use prombus_store::{
    Batch, Change, CommitError, Durability, EncodedEvent, EventOutcome, EventRef, Expect, Id,
    IdConflict, IfExists, KeyPosition, LimitReached, PositionMismatch, Receipt, SeqMismatch,
    UnknownTopic, VersionMismatch,
};
use std::collections::HashMap;
use std::sync::Arc;

/// A batch that was taken in.
pub(crate) struct Admitted {
    pub(crate) receipt: Receipt,
    pub(crate) completion: Arc<Completion>,
    /// It is complete only after a sync.
    pub(crate) wants_sync: bool,
}

/// What recovery takes as one: all of it is there after a crash, or nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// The batch if it is atomic, else each of its events.
    Batch,
    /// A run of batches, which a later record ends.
    Run,
}

/// What was found of a batch's events before the buffer's lock was taken, one item for each event.
#[derive(Clone, Copy, Default)]
pub(crate) struct Known<'a> {
    /// Whether its client id was found in what readers see; empty where no event has a client id.
    pub(crate) held: &'a [Option<Held>],
    /// The last event of its key; empty where no event expects something of that.
    pub(crate) keys: &'a [Option<SeenKey>],
}

/// How an event is taken in: the place of its topic, what was found of it, and the time.
#[derive(Clone, Copy)]
struct Taking {
    place: usize,
    held: Option<Held>,
    key: Option<SeenKey>,
    now_ms: u64,
}

impl WriteBuffer {
    /// Takes a batch in.
    pub(crate) fn admit(
        &mut self,
        batch: &Batch,
        known: Known<'_>,
        now_ms: u64,
    ) -> Result<Admitted, CommitError> {
        self.check_takes(batch.events().len() > 0)?;
        if self.pending.bytes.len() > self.limits.max_pending_bytes {
            return Err(limit("max_pending_bytes", self.limits.max_pending_bytes));
        }
        self.check_sizes(batch)?;
        let expects_keys = batch.has_expected_key_positions();
        if expects_keys {
            self.watched_keys.begin_batch();
        }
        let taken = self.take_in(batch, known, now_ms, Unit::Batch);
        if expects_keys {
            self.watched_keys.end_batch();
        }
        let (receipt, wants_sync) = taken?;
        self.pending.awaited = true;
        self.sync_wanted |= wants_sync;
        self.pending.batches_to_sync += usize::from(wants_sync);
        self.pending.acknowledged_on_write |= !wants_sync;
        let completion = if wants_sync {
            self.pending.synced.clone()
        } else {
            self.pending.written.clone()
        };
        Ok(Admitted {
            receipt,
            completion,
            wants_sync,
        })
    }

    /// Takes a batch in unless one of its expectations fails, and says whether it has to be synced.
    pub(super) fn take_in(
        &mut self,
        batch: &Batch,
        known: Known<'_>,
        now_ms: u64,
        unit: Unit,
    ) -> Result<(Receipt, bool), CommitError> {
        self.check_changes(batch)?;
        let mut to_store = if batch.is_atomic() {
            Some(self.check_events(batch, known, now_ms)?)
        } else {
            None
        };
        let mut continues = to_store.is_some_and(|events| events > 0);
        if unit == Unit::Run {
            // The record that ends the run ends the unit.
            to_store = Some(usize::MAX);
            continues = true;
        }
        let mut receipt = Receipt {
            events: Vec::with_capacity(batch.events().len()),
            versions: Vec::new(),
        };
        self.apply_changes(batch, continues, &mut receipt);

        // In one step, so that a large batch is not copied over and over while its group grows.
        self.pending.events.reserve(batch.events().len());
        self.pending.bytes.reserve(batch.record_bytes());
        let mut wants_sync = !batch.changes().is_empty();
        let mut last: Option<(&Arc<str>, usize)> = None;
        for (at, event) in batch.events().enumerate() {
            let place = match last {
                Some((topic, place)) if Arc::ptr_eq(topic, event.topic()) => Some(place),
                _ => self.topics.place_of(event.topic()),
            };
            let Some(place) = place else {
                receipt.events.push(EventOutcome::UnknownTopic);
                continue;
            };
            last = Some((event.topic(), place));
            let taking = Taking {
                place,
                held: known.held.get(at).copied().flatten(),
                key: known.keys.get(at).copied().flatten(),
                now_ms,
            };
            let durability = self.store(event, taking, &mut to_store, &mut receipt.events);
            wants_sync |= durability == Durability::Fsync;
        }
        Ok((receipt, wants_sync))
    }

    /// Stores one event of a topic unless its id is held, and adds what became of it to `outcomes`. `to_store` counts
    /// down to the last event of an atomic batch; in other batches each event is independent.
    fn store(
        &mut self,
        event: EncodedEvent<'_>,
        taking: Taking,
        to_store: &mut Option<usize>,
        outcomes: &mut Vec<EventOutcome>,
    ) -> Durability {
        let Some(topic) = self.topics.at(taking.place) else {
            outcomes.push(EventOutcome::UnknownTopic);
            return Durability::Os;
        };
        let durability = topic.record.options.durability;
        let refused = match event.id() {
            Some(id) => {
                // What waits to be sealed is newer than what was looked up, which retention may have let go.
                let number = topic.record.number;
                let unsealed = self.unsealed_ids.find(number, &id, event.payload());
                held_before(topic, unsealed, taking.held)
            }
            None => None,
        };
        let refused = refused.or_else(|| {
            event.expected()?;
            let last_key = || {
                self.watched_keys
                    .last(topic.record.number, &event, taking.key)
            };
            let compared = compare(&event, topic, last_key, taking.now_ms);
            compared.err().map(EventOutcome::SeqMismatch)
        });
        if let Some(refused) = refused {
            outcomes.push(refused);
            return durability;
        }
        let (seq, bus_ts) = topic.next(taking.now_ms);
        let encoder = self.encoders.of(topic.record.number);
        let id = match event.id() {
            Some(own) => own,
            None => encoder.ids.make(bus_ts, seq),
        };
        let ts = event.ts().unwrap_or(bus_ts);
        let flags = match to_store {
            None => LAST_OF_BATCH,
            Some(left) => {
                *left = left.saturating_sub(1);
                if *left == 0 { LAST_OF_BATCH } else { 0 }
            }
        };
        let at = self.pending.bytes.len();
        let event_place = EventPlace {
            topic_number: topic.record.number,
            topic: &topic.record.name,
            id: &id,
            ts,
            seq,
            stored_ms: bus_ts,
        };
        encoder
            .records
            .write(&mut self.pending.bytes, event, &event_place, flags);
        self.pending.events.push(NewEvent {
            topic: topic.record.number,
            seq,
            ts,
            at: at as u32,
            bytes: (self.pending.bytes.len() - at) as u32,
            after_sync: self.role == Role::Primary && topic.visible_after_sync(seq),
            keyed: event.key_json_bytes().is_some(),
            has_client_id: event.has_client_id(),
            client_ts_stored_ms: event.ts().map(|_| bus_ts),
        });
        let event_ref = EventRef { id, seq, ts };
        if event.has_client_id() {
            let number = topic.record.number;
            self.unsealed_ids
                .insert(number, &event_ref, event.payload(), self.segment);
        }
        if self.watched_keys.is_watching() {
            let position = KeyPosition::of_new(&event, seq, bus_ts);
            self.watched_keys
                .note(topic.record.number, &event, position);
        }
        outcomes.push(EventOutcome::Stored(event_ref));
        durability
    }

    /// Refuses everything once the log has failed or was closed, and events while the disk is full.
    pub(super) fn check_takes(&self, has_events: bool) -> Result<(), CommitError> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        match &self.full {
            Some(full) if has_events => Err(full.clone().into()),
            _ => Ok(()),
        }
    }

    /// Refuses a batch with a record that readers would take for damage, or that is larger than everything that may
    /// wait to be written.
    fn check_sizes(&self, batch: &Batch) -> Result<(), CommitError> {
        batch.check_record_sizes()?;
        let most = self.limits.max_pending_bytes;
        if batch.record_bytes() > most {
            return Err(limit("max_pending_bytes", most));
        }
        Ok(())
    }

    /// Checks every expectation of the changes, each against what the ones before it leave behind.
    fn check_changes(&self, batch: &Batch) -> Result<(), CommitError> {
        let mut versions: HashMap<&str, Option<u64>> = HashMap::new();
        let mut budget = KeyedBudget::new(&self.keyed);
        let mut deleted_version = self.keyed.deleted_version();
        for (at, change) in batch.changes().iter().enumerate() {
            let (key, expect, value) = match change {
                Change::Put { key, value, expect } => (key, expect, Some(&**value)),
                Change::Delete { key, expect } => (key, expect, None),
                Change::Trim { topic, .. } if !self.will_exist(&batch.changes()[..at], topic) => {
                    return Err(unknown(topic));
                }
                _ => continue,
            };
            let known = || self.keyed.latest().get(key).map(|keyed| keyed.version);
            let found = versions.get(&**key).copied().unwrap_or_else(known);
            let holds = match expect {
                Expect::Any => true,
                Expect::Absent => found.is_none(),
                Expect::Version(version) => found == Some(*version),
            };
            if !holds {
                let key = key.clone();
                return Err(VersionMismatch { key, found }.into());
            }
            let becomes = match value {
                Some(_) => Some(found.unwrap_or(deleted_version) + 1),
                None => {
                    deleted_version = deleted_version.max(found.unwrap_or(0));
                    None
                }
            };
            versions.insert(key, becomes);
            budget.change(key, value);
        }
        if budget.fits(self.limits.max_keyed_bytes) {
            Ok(())
        } else {
            Err(limit("max_keyed_bytes", self.limits.max_keyed_bytes))
        }
    }

    /// Whether a topic is there once these changes have happened.
    fn will_exist(&self, changes: &[Change], name: &str) -> bool {
        let changed = changes.iter().rev().find_map(|change| match change {
            Change::PutTopic { topic, .. } if &**topic == name => Some(true),
            Change::DeleteTopic { topic } if &**topic == name => Some(false),
            _ => None,
        });
        changed.unwrap_or_else(|| self.topics.get(name).is_some())
    }

    /// The topic whose events are still there once the batch's changes have happened, and its first position then.
    fn topic_after(&self, batch: &Batch, name: &str) -> Option<(&Topic, u64)> {
        let topic = self.topics.get(name)?;
        let mut first_seq = topic.record.first_seq;
        for change in batch.changes() {
            match change {
                Change::DeleteTopic { topic } if &**topic == name => return None,
                Change::Trim {
                    topic,
                    first_seq: to,
                } if &**topic == name => {
                    first_seq = first_seq.max(*to);
                }
                _ => {}
            }
        }
        Some((topic, first_seq))
    }

    /// Checks that every event of an atomic batch can be stored; returns how many will be, duplicates excepted.
    fn check_events(
        &self,
        batch: &Batch,
        known: Known<'_>,
        now_ms: u64,
    ) -> Result<usize, CommitError> {
        let mut plan = Plan::default();
        let ids: Vec<Option<Id>> = batch.events().map(|event| event.id()).collect();
        for (at, event) in batch.events().enumerate() {
            if !self.will_exist(batch.changes(), event.topic()) {
                return Err(unknown(event.topic()));
            }
            let topic = self.topic_after(batch, event.topic());
            let before = *plan.stored.get(&**event.topic()).unwrap_or(&0);
            if let Some(id) = &ids[at] {
                let found = topic.and_then(|(topic, first_seq)| {
                    let next_seq = topic.record.next_seq + before;
                    let unsealed = self
                        .unsealed_ids
                        .find(topic.record.number, id, event.payload());
                    let held = known.held.get(at).copied().flatten();
                    let mut found = [unsealed, held].into_iter().flatten();
                    found.find(|held| topic.holds(held, first_seq, next_seq))
                });
                let earlier = plan.ids.get(&(&**event.topic(), id.as_str())).copied();
                match (found, earlier) {
                    (Some(held), _) if held.same_payload => continue,
                    (None, Some(payload)) if payload == event.payload() => continue,
                    (None, None) => {}
                    (found, _) => {
                        return Err(IdConflict {
                            topic: event.topic().clone(),
                            id: id.to_string(),
                            seq: found.map_or(0, |held| held.event_ref.seq),
                        }
                        .into());
                    }
                }
                let name = (&**event.topic(), id.as_str());
                plan.ids.insert(name, event.payload());
            }
            let tail_seq = topic.map_or(0, |(topic, _)| topic.record.next_seq - 1) + before;
            if let Some(expected) = event.expected() {
                let seen = known.keys.get(at).copied().flatten();
                let held = || {
                    let (topic, first_seq) = topic?;
                    let last = self.watched_keys.last(topic.record.number, &event, seen)?;
                    (last.seq >= first_seq).then_some(last)
                };
                let key_seq = || {
                    let last = plan.last_of_key(&event).or_else(held);
                    last.map_or(0, |last| last.seq_at(now_ms))
                };
                let checked = expected.check(tail_seq, key_seq);
                checked.map_err(|mismatch| SeqMismatch {
                    topic: event.topic().clone(),
                    mismatch,
                    event: at,
                })?;
            }
            *plan.stored.entry(event.topic()).or_default() += 1;
            if let Some(key) = event.key_json().filter(|_| !known.keys.is_empty()) {
                let position = KeyPosition::of_new(&event, tail_seq + 1, now_ms);
                plan.keys.insert((event.topic(), key), position);
            }
        }
        Ok(plan.stored.values().sum::<u64>() as usize)
    }

    /// Applies the changes and writes their records. They form one unit, together with the events if the batch is
    /// atomic and events follow (`continues`).
    fn apply_changes(&mut self, batch: &Batch, continues: bool, receipt: &mut Receipt) {
        let mut records = Vec::with_capacity(batch.changes().len());
        for change in batch.changes() {
            match change {
                Change::PutTopic {
                    topic, if_exists, ..
                } if *if_exists == IfExists::Keep && self.topics.get(topic).is_some() => {}
                Change::PutTopic { topic, options, .. } => {
                    let (record, tail) = self.topics.put(topic, options);
                    records.push(StateRecord::TopicPut(record.clone()));
                    let change = ViewChange::Put { record, tail };
                    self.pending.changes.push(change);
                }
                Change::DeleteTopic { topic } => {
                    if let Some(number) = self.topics.delete(topic) {
                        self.pending.changes.push(ViewChange::Delete { number });
                        records.push(StateRecord::TopicDelete { number });
                    }
                }
                Change::Trim { topic, first_seq } => {
                    records.extend(self.trim(topic, *first_seq));
                }
                Change::Put { key, value, .. } => {
                    let (version, change) = self.keyed.put(key, value);
                    self.pending.keyed.push(change);
                    receipt.versions.push(version);
                    records.push(StateRecord::KeyedPut {
                        key: key.clone(),
                        version,
                        value: value.clone(),
                    });
                }
                Change::Delete { key, .. } => {
                    if let Some(change) = self.keyed.delete(key) {
                        self.pending.keyed.push(change);
                        records.push(StateRecord::KeyedDelete { key: key.clone() });
                    }
                }
            }
        }
        let count = records.len();
        for (at, record) in records.into_iter().enumerate() {
            let last = at + 1 == count && !continues;
            record.write(
                &mut self.pending.bytes,
                if last { LAST_OF_BATCH } else { 0 },
            );
        }
    }

    /// Moves a topic's first position forward, never past its next one.
    fn trim(&mut self, name: &Arc<str>, first_seq: u64) -> Option<StateRecord> {
        let topic = self.topics.get_mut(name)?;
        let first_seq = first_seq.min(topic.record.next_seq);
        if first_seq <= topic.record.first_seq {
            return None;
        }
        topic.record.first_seq = first_seq;
        let number = topic.record.number;
        let change = ViewChange::Trim { number, first_seq };
        self.pending.changes.push(change);
        Some(StateRecord::Trim { number, first_seq })
    }
}

/// What the events of an atomic batch that were looked at would leave behind.
#[derive(Default)]
struct Plan<'a> {
    /// How many events of each topic would be stored.
    stored: HashMap<&'a str, u64>,
    /// The payloads of the ids that the batch brings.
    ids: HashMap<(&'a str, &'a str), &'a [u8]>,
    /// The last events of keys, where an event expects something of one.
    keys: HashMap<(&'a str, &'a [u8]), KeyPosition>,
}

impl<'a> Plan<'a> {
    fn last_of_key(&self, event: &EncodedEvent<'a>) -> Option<KeyPosition> {
        self.keys.get(&(event.topic(), event.key_json()?)).copied()
    }
}

/// What becomes of an event whose id the topic holds; `None` where it does not.
fn held_before(
    topic: &mut Topic,
    unsealed: Option<Held>,
    held: Option<Held>,
) -> Option<EventOutcome> {
    let (first_seq, next_seq) = (topic.record.first_seq, topic.record.next_seq);
    let mut found = [unsealed, held].into_iter().flatten();
    if let Some(held) = found.find(|held| topic.holds(held, first_seq, next_seq)) {
        return Some(if held.same_payload {
            EventOutcome::Duplicate(held.event_ref)
        } else {
            EventOutcome::IdConflict(held.event_ref)
        });
    }
    let number = topic.record.number;
    if let Some(ahead) = held.filter(|held| held.is_ahead && held.topic == number) {
        topic.record.last_ts = topic.record.last_ts.max(ahead.event_ref.ts);
    }
    None
}

/// Compares what an event expects with what its topic has.
fn compare(
    event: &EncodedEvent<'_>,
    topic: &Topic,
    last_key: impl FnOnce() -> Option<KeyPosition>,
    now_ms: u64,
) -> Result<(), PositionMismatch> {
    let Some(expected) = event.expected() else {
        return Ok(());
    };
    let key_seq = || {
        let last = last_key().filter(|last| last.seq >= topic.record.first_seq);
        last.map_or(0, |last| last.seq_at(now_ms))
    };
    expected.check(topic.record.next_seq - 1, key_seq)
}

fn unknown(topic: &Arc<str>) -> CommitError {
    UnknownTopic {
        topic: topic.clone(),
    }
    .into()
}

fn limit(name: &'static str, limit: usize) -> CommitError {
    LimitReached {
        name,
        limit: limit as u64,
    }
    .into()
}
