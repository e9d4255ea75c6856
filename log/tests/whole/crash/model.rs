//! The log as vectors and maps: what a batch does, without files.

use crate::plan::{Plan, PlannedEvent};
use prombus_store::{Change, CommitError, Durability, Expect, GeneratedId, IfExists, TopicOptions};
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

/// Topics and keyed records as of some unit.
#[derive(Clone, Default)]
pub(super) struct World {
    pub(super) topics: BTreeMap<Arc<str>, Rc<Topic>>,
    /// Version and value.
    pub(super) keyed: BTreeMap<Arc<str>, (u64, Arc<[u8]>)>,
    /// The highest version of a record that was deleted since the log was opened.
    pub(super) deleted_version: u64,
    /// Tells a topic from an earlier one of its name.
    lives: u64,
}

#[derive(Clone)]
pub(super) struct Topic {
    pub(super) life: u64,
    pub(super) options: TopicOptions,
    /// All that were ever stored, by position.
    pub(super) events: BTreeMap<u64, Rc<Event>>,
    unsealed_ids: HashMap<String, u64>,
    pub(super) next_seq: u64,
    pub(super) first_seq: u64,
    /// Retention may have moved the first position up to here.
    pub(super) may_first_seq: u64,
    /// Compaction may have taken superseded events.
    pub(super) was_compacted: bool,
}

/// A stored event. What the log chose is learned from the first answer or read that shows it.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) seq: u64,
    pub(super) planned: PlannedEvent,
    pub(super) learned: OnceCell<Learned>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Learned {
    pub(super) id: String,
    pub(super) ts: u64,
}

/// What a crash leaves whole or not at all.
#[derive(Clone)]
pub(super) struct Unit {
    changes: Vec<Change>,
    events: Vec<Rc<Event>>,
}

/// What a commit has to answer.
#[derive(Default)]
pub(super) struct Expected {
    pub(super) outcomes: Vec<Outcome>,
    pub(super) versions: Vec<u64>,
    /// It is answered after a sync; else after the write.
    pub(super) needs_sync: bool,
}

#[derive(Debug)]
pub(super) enum Outcome {
    Stored(Rc<Event>),
    Duplicate(Rc<Event>),
    IdConflict(Rc<Event>),
    UnknownTopic,
}

/// Why a batch is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    VersionMismatch,
    IdConflict,
    UnknownTopic,
}

impl Refusal {
    pub(super) fn of(error: &CommitError) -> Option<Self> {
        match error {
            CommitError::VersionMismatch(_) => Some(Self::VersionMismatch),
            CommitError::IdConflict(_) => Some(Self::IdConflict),
            CommitError::UnknownTopic(_) => Some(Self::UnknownTopic),
            _ => None,
        }
    }
}

impl World {
    /// Takes a batch in: what it answers, and the units it consists of.
    pub(super) fn admit(&mut self, plan: &Plan) -> Result<(Expected, Vec<Unit>), Refusal> {
        let mut next = self.clone();
        let mut expected = Expected {
            needs_sync: !plan.changes.is_empty(),
            ..Expected::default()
        };
        for change in &plan.changes {
            next.check(change)?;
            expected.versions.extend(next.change(change));
        }
        let mut units = vec![Unit {
            changes: plan.changes.clone(),
            events: Vec::new(),
        }];
        for planned in &plan.events {
            let outcome = next.publish(planned);
            match (&outcome, plan.atomic) {
                (Outcome::UnknownTopic, true) => return Err(Refusal::UnknownTopic),
                (Outcome::IdConflict(_), true) => return Err(Refusal::IdConflict),
                (Outcome::Stored(event), true) => units[0].events.push(event.clone()),
                (Outcome::Stored(event), false) => units.push(Unit {
                    changes: Vec::new(),
                    events: vec![event.clone()],
                }),
                _ => {}
            }
            let topic = next.topics.get(&planned.topic);
            expected.needs_sync |=
                topic.is_some_and(|topic| topic.options.durability == Durability::Fsync);
            expected.outcomes.push(outcome);
        }
        units.retain(|unit| !unit.changes.is_empty() || !unit.events.is_empty());
        *self = next;
        Ok((expected, units))
    }

    /// Lets a unit happen that was admitted before.
    pub(super) fn apply(&mut self, unit: &Unit) {
        for change in &unit.changes {
            self.change(change);
        }
        for event in &unit.events {
            if let Some(topic) = self.topics.get_mut(&event.planned.topic) {
                Rc::make_mut(topic).insert(event);
            }
        }
    }

    pub(super) fn topic_mut(&mut self, name: &str) -> Option<&mut Topic> {
        self.topics.get_mut(name).map(Rc::make_mut)
    }

    fn check(&self, change: &Change) -> Result<(), Refusal> {
        let (key, expect) = match change {
            Change::Put { key, expect, .. } | Change::Delete { key, expect } => (key, expect),
            Change::Trim { topic, .. } if !self.topics.contains_key(topic) => {
                return Err(Refusal::UnknownTopic);
            }
            _ => return Ok(()),
        };
        let version = self.keyed.get(key).map(|(version, _)| *version);
        let holds = match expect {
            Expect::Any => true,
            Expect::Absent => version.is_none(),
            Expect::Version(expected) => version == Some(*expected),
        };
        if holds {
            Ok(())
        } else {
            Err(Refusal::VersionMismatch)
        }
    }

    /// Applies a change; returns the version that a put makes.
    fn change(&mut self, change: &Change) -> Option<u64> {
        match change {
            Change::PutTopic {
                topic,
                options,
                if_exists,
            } => match self.topic_mut(topic) {
                Some(_) if *if_exists == IfExists::Keep => {}
                Some(known) => {
                    known.options = options.clone();
                    known.was_compacted |= options.compaction;
                }
                None => {
                    self.lives += 1;
                    let new = Topic::new(self.lives, options);
                    self.topics.insert(topic.clone(), Rc::new(new));
                }
            },
            Change::DeleteTopic { topic } => {
                self.topics.remove(topic);
            }
            Change::Trim { topic, first_seq } => {
                if let Some(topic) = self.topic_mut(topic) {
                    topic.first_seq = topic.first_seq.max(*first_seq.min(&topic.next_seq));
                    topic.may_first_seq = topic.may_first_seq.max(topic.first_seq);
                }
            }
            Change::Put { key, value, .. } => {
                let old = self.keyed.get(key).map(|(version, _)| *version);
                let version = old.unwrap_or(self.deleted_version) + 1;
                self.keyed.insert(key.clone(), (version, value.clone()));
                return Some(version);
            }
            Change::Delete { key, .. } => {
                if let Some((version, _)) = self.keyed.remove(key) {
                    self.deleted_version = self.deleted_version.max(version);
                }
            }
        }
        None
    }

    fn publish(&mut self, planned: &PlannedEvent) -> Outcome {
        let Some(topic) = self.topic_mut(&planned.topic) else {
            return Outcome::UnknownTopic;
        };
        if let Some(held) = planned.id.as_deref().and_then(|id| topic.holder_of(id)) {
            return if held.planned.payload == planned.payload {
                Outcome::Duplicate(held)
            } else {
                Outcome::IdConflict(held)
            };
        }
        let event = Rc::new(Event {
            seq: topic.next_seq,
            planned: planned.clone(),
            learned: OnceCell::new(),
        });
        topic.insert(&event);
        Outcome::Stored(event)
    }
}

impl Topic {
    fn new(life: u64, options: &TopicOptions) -> Self {
        Self {
            life,
            options: options.clone(),
            events: BTreeMap::new(),
            unsealed_ids: HashMap::new(),
            next_seq: 1,
            first_seq: 1,
            may_first_seq: 1,
            was_compacted: options.compaction,
        }
    }

    fn insert(&mut self, event: &Rc<Event>) {
        assert_eq!(event.seq, self.next_seq, "the model numbers without gaps");
        self.next_seq += 1;
        if let Some(id) = &event.planned.id {
            self.unsealed_ids.insert(id.clone(), event.seq);
        }
        self.events.insert(event.seq, event.clone());
    }

    /// The event with this id, if the topic keeps it.
    fn holder_of(&self, id: &str) -> Option<Rc<Event>> {
        let made = GeneratedId::parse(id).map(|made| made.seq);
        let made = made.and_then(|seq| self.events.get(&seq));
        let made = made.filter(|event| event.id() == Some(id));
        let own = self
            .unsealed_ids
            .get(id)
            .and_then(|seq| self.events.get(seq));
        let mut held = made.into_iter().chain(own);
        held.find(|event| event.seq >= self.first_seq).cloned()
    }

    /// Whether an event is there for certain: neither retention nor compaction may have taken it.
    pub(super) fn surely_holds(&self, event: &Event) -> bool {
        let is_latest = || self.latest_of(event.planned.key.as_deref()) == Some(event.seq);
        event.seq >= self.may_first_seq
            && (!self.was_compacted
                || event.planned.key.is_none()
                || is_latest() && !event.planned.tombstone)
    }

    /// Whether no later event has this id, as one may once retention has let the first one go.
    pub(super) fn is_newest(&self, seq: u64, id: &str) -> bool {
        self.unsealed_ids
            .get(id)
            .is_none_or(|newest| *newest <= seq)
    }

    /// The latest position of a key.
    pub(super) fn latest_of(&self, key: Option<&str>) -> Option<u64> {
        let mut newest_first = self.events.values().rev();
        let found = newest_first.find(|event| event.planned.key.as_deref() == key);
        found.map(|event| event.seq)
    }
}

impl Event {
    /// Its id, once it is known.
    pub(super) fn id(&self) -> Option<&str> {
        let own = self.planned.id.as_deref();
        own.or_else(|| Some(&*self.learned.get()?.id))
    }

    /// Takes in what the log chose; from then on it has to stay so.
    pub(super) fn learn(&self, id: &str, ts: u64) {
        let told = Learned { id: id.into(), ts };
        let learned = self.learned.get_or_init(|| told.clone());
        assert_eq!(*learned, told, "an event has changed: {self:?}");
        assert!(self.planned.id.as_ref().is_none_or(|own| own == id));
        assert!(self.planned.ts.is_none_or(|own| own == ts));
        if self.planned.id.is_none() {
            let made = GeneratedId::parse(id).expect("a made id");
            assert_eq!(made.seq, self.seq, "{self:?}");
            assert!(self.planned.ts.is_some() || made.ms == ts, "{self:?}");
        }
    }

    /// The event as clients see it.
    pub(super) fn json(&self) -> String {
        let PlannedEvent {
            topic,
            key,
            payload,
            ..
        } = &self.planned;
        let Learned { id, ts } = self.learned.get().expect("the event was shown");
        let key = key.as_ref().map(|key| format!(r#","key":"{key}""#));
        let (key, seq) = (key.unwrap_or_default(), self.seq);
        format!(
            r#"{{"id":"{id}","ts":{ts},"topic":"{topic}","seq":{seq}{key},"payload":{payload}}}"#
        )
    }
}
