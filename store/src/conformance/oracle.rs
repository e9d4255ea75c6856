//! What a store should hold and answer, kept in plain vectors and maps. It shares nothing with any store: it learns
//! only the ids and versions that a store makes, and judges them.

use crate::{
    Batch, Change, CommitError, Draft, EventOutcome, EventRef, Expect, Id, IfExists, Receipt,
    StoredEvent, TopicOptions,
};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Everything a store should hold.
#[derive(Debug, Clone, Default)]
pub(super) struct Oracle {
    pub(super) topics: BTreeMap<Arc<str>, OracleTopic>,
    pub(super) records: BTreeMap<Arc<str>, (u64, Arc<[u8]>)>,
}

/// A topic with all events it ever had; those before `first_seq` are gone.
#[derive(Debug, Clone, Default)]
pub(super) struct OracleTopic {
    pub(super) options: TopicOptions,
    pub(super) first_seq: u64,
    events: Vec<OracleEvent>,
    /// The latest ts that the store gave.
    last_ts: u64,
    /// The latest time at which something was published. A store may let its own times stand there when the clock
    /// goes back.
    last_clock_ms: u64,
    /// The latest id that the store made.
    last_id: String,
}

/// An event as it should be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OracleEvent {
    pub(super) seq: u64,
    pub(super) id: String,
    pub(super) ts: u64,
    pub(super) key: Option<String>,
    pub(super) payload: Text,
    pub(super) tombstone: bool,
}

/// A payload, of which a failure shows only the beginning.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Text(pub(super) String);

/// An event to publish, owned.
#[derive(Debug, Clone)]
pub(super) struct OracleDraft {
    pub(super) topic: Arc<str>,
    pub(super) id: Option<Id>,
    pub(super) ts: Option<u64>,
    pub(super) key: Option<String>,
    pub(super) payload: Text,
    pub(super) tombstone: bool,
}

/// A batch before it is encoded.
#[derive(Debug, Clone, Default)]
pub(super) struct OracleBatch {
    pub(super) atomic: bool,
    pub(super) changes: Vec<Change>,
    pub(super) events: Vec<OracleDraft>,
}

/// The batch should have been refused.
struct Refused;

impl OracleBatch {
    pub(super) fn encode(&self) -> Batch {
        let mut batch = if self.atomic {
            Batch::atomic()
        } else {
            Batch::new()
        };
        for change in &self.changes {
            batch.change(change.clone());
        }
        for event in &self.events {
            let draft = Draft {
                id: event.id,
                ts: event.ts,
                key: event.key.as_deref(),
                payload: &event.payload.0,
                tombstone: event.tombstone,
                ..Draft::default()
            };
            batch.publish(&event.topic, &draft);
        }
        batch
    }
}

impl Oracle {
    /// Takes in what a store answered to a batch, or says what is wrong with the answer.
    pub(super) fn judge(
        &mut self,
        batch: &OracleBatch,
        now_ms: u64,
        answer: Result<Receipt, CommitError>,
    ) -> Result<(), String> {
        let mut after = self.clone();
        let versions = answer
            .as_ref()
            .ok()
            .map(|receipt| receipt.versions.as_slice());
        let refused = after.change(batch, versions)?.is_err() || after.refuses(batch);
        match answer {
            Ok(_) if refused => Err("it should have been refused".into()),
            Ok(receipt) => {
                after.publish(batch, now_ms, &receipt.events)?;
                *self = after;
                Ok(())
            }
            Err(
                CommitError::UnknownTopic(_)
                | CommitError::VersionMismatch(_)
                | CommitError::IdConflict(_),
            ) if refused => Ok(()),
            Err(error) => Err(format!("it should not have failed: {error}")),
        }
    }

    /// Applies the changes. The versions that the store gave, if it gave any, must have grown.
    fn change(
        &mut self,
        batch: &OracleBatch,
        versions: Option<&[u64]>,
    ) -> Result<Result<(), Refused>, String> {
        let mut given = versions.unwrap_or_default().iter();
        for change in &batch.changes {
            match change {
                Change::PutTopic {
                    topic, if_exists, ..
                } if *if_exists == IfExists::Keep && self.topics.contains_key(topic) => {}
                Change::PutTopic { topic, options, .. } => {
                    let anew = || OracleTopic {
                        first_seq: 1,
                        ..OracleTopic::default()
                    };
                    let topic = self.topics.entry(topic.clone()).or_insert_with(anew);
                    topic.options = options.clone();
                }
                Change::DeleteTopic { topic } => drop(self.topics.remove(topic)),
                Change::Trim { topic, first_seq } => match self.topics.get_mut(topic) {
                    Some(topic) => {
                        let first_seq = *first_seq.min(&(topic.tail_seq() + 1));
                        topic.first_seq = topic.first_seq.max(first_seq);
                    }
                    None => return Ok(Err(Refused)),
                },
                Change::Put { key, value, expect } => {
                    let found = self.records.get(key).map(|record| record.0);
                    if !met(*expect, found) {
                        return Ok(Err(Refused));
                    }
                    let version = match versions {
                        Some(_) => given.next().copied().unwrap_or(0),
                        None => found.unwrap_or(0) + 1,
                    };
                    check(found.is_none_or(|found| version > found), || {
                        format!("{key} went from version {found:?} to {version}")
                    })?;
                    self.records.insert(key.clone(), (version, value.clone()));
                }
                Change::Delete { key, expect } => {
                    if !met(*expect, self.records.get(key).map(|record| record.0)) {
                        return Ok(Err(Refused));
                    }
                    self.records.remove(key);
                }
            }
        }
        check(given.next().is_none(), || "more versions than puts".into())?;
        Ok(Ok(()))
    }

    /// Whether an atomic batch has an event that cannot be stored.
    fn refuses(&self, batch: &OracleBatch) -> bool {
        let mut ids: BTreeMap<(&str, &str), &Text> = BTreeMap::new();
        batch.atomic
            && batch.events.iter().any(|draft| {
                let Some(topic) = self.topics.get(&draft.topic) else {
                    return true;
                };
                let Some(id) = &draft.id else {
                    return false;
                };
                let held = topic.with_id(id.as_str()).map(|event| &event.payload);
                let first = ids.entry((&draft.topic, id.as_str()));
                let first = first.or_insert(held.unwrap_or(&draft.payload));
                **first != draft.payload
            })
    }

    /// Takes in the events with the positions they should have.
    fn publish(
        &mut self,
        batch: &OracleBatch,
        now_ms: u64,
        outcomes: &[EventOutcome],
    ) -> Result<(), String> {
        if outcomes.len() != batch.events.len() {
            return Err(format!("{} outcomes", outcomes.len()));
        }
        for (draft, outcome) in batch.events.iter().zip(outcomes) {
            let Some(topic) = self.topics.get_mut(&draft.topic) else {
                if *outcome != EventOutcome::UnknownTopic {
                    return Err(format!("{draft:?} went nowhere and got {outcome:?}"));
                }
                continue;
            };
            topic
                .publish(draft, now_ms, outcome)
                .map_err(|wrong| format!("{draft:?} got {outcome:?}: {wrong}"))?;
        }
        Ok(())
    }
}

impl OracleTopic {
    pub(super) fn tail_seq(&self) -> u64 {
        self.events.len() as u64
    }

    /// What is still to be read, in the order of positions.
    pub(super) fn kept(&self) -> &[OracleEvent] {
        &self.events[self.first_seq as usize - 1..]
    }

    pub(super) fn with_id(&self, id: &str) -> Option<&OracleEvent> {
        self.kept().iter().find(|event| event.id == id)
    }

    fn publish(
        &mut self,
        draft: &OracleDraft,
        now_ms: u64,
        outcome: &EventOutcome,
    ) -> Result<(), String> {
        let held = draft.id.as_ref().and_then(|id| self.with_id(id.as_str()));
        if let Some(first) = held {
            let placed = first.placed();
            let expected = if first.payload == draft.payload {
                EventOutcome::Duplicate(placed)
            } else {
                EventOutcome::IdConflict(placed)
            };
            return check(*outcome == expected, || format!("not {expected:?}"));
        }
        let EventOutcome::Stored(placed) = outcome else {
            return Err("it should have been stored".into());
        };
        let seq = self.tail_seq() + 1;
        check(placed.seq == seq, || format!("its position is {seq}"))?;
        let id = placed.id.to_string();
        match draft.id {
            Some(own) => check(placed.id == own, || "its id is its own".into())?,
            None => {
                check(id > self.last_id, || {
                    format!("ids rise, the last was {}", self.last_id)
                })?;
                self.last_id.clone_from(&id);
            }
        }
        self.last_clock_ms = self.last_clock_ms.max(now_ms);
        match draft.ts {
            Some(own) => check(placed.ts == own, || "its time is its own".into())?,
            None => {
                let fitting = self.last_ts.max(now_ms)..=self.last_clock_ms;
                check(fitting.contains(&placed.ts), || {
                    format!("its time is in {fitting:?}")
                })?;
                self.last_ts = placed.ts;
            }
        }
        self.events.push(OracleEvent {
            seq,
            id,
            ts: placed.ts,
            key: draft.key.clone(),
            payload: draft.payload.clone(),
            tombstone: draft.tombstone,
        });
        Ok(())
    }
}

impl OracleEvent {
    fn placed(&self) -> EventRef {
        EventRef {
            id: Id::from_client(&self.id).expect("it was an id"),
            seq: self.seq,
            ts: self.ts,
        }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 30;
        let shown: String = self.0.chars().take(SHOWN).collect();
        let more = if shown.len() < self.0.len() {
            "…"
        } else {
            ""
        };
        write!(f, "{shown}{more} of {} bytes", self.0.len())
    }
}

impl From<&StoredEvent> for OracleEvent {
    fn from(event: &StoredEvent) -> Self {
        Self {
            seq: event.seq(),
            id: event.id().into_owned(),
            ts: event.ts(),
            key: event.key().map(|key| key.into_owned()),
            payload: Text(event.payload().into()),
            tombstone: event.is_tombstone(),
        }
    }
}

/// `Ok` where it holds, else what is wrong.
pub(super) fn check(holds: bool, wrong: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(wrong()) }
}

fn met(expect: Expect, found: Option<u64>) -> bool {
    match expect {
        Expect::Any => true,
        Expect::Absent => found.is_none(),
        Expect::Version(version) => found == Some(version),
    }
}
