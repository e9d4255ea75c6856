//! One topic in memory: its events in order, and what finds them by id, time and key.

use super::time_order::TimeOrder;
use crate::record::EventBlock;
use crate::{
    EncodedEvent, EventOutcome, EventRef, Find, GeneratedId, Id, KeyPosition, LatestEvent, Page,
    ReadFrom, ReadLimit, StoredEvent, TimeRange, TopicInfo, TopicOptions,
};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

/// Events of one commit share blocks of about this size: large enough that an event costs no allocation of its own,
/// small enough that a topic's oldest event keeps little else in memory.
pub(super) const BLOCK_BYTES: usize = 64 << 10;

/// A topic with everything it holds.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) options: TopicOptions,
    /// What the ids made for this topic carry; no other topic of the store has it, nor has an earlier one of its name.
    pub(super) tag: u32,
    /// The number that no other topic of the store has or had.
    incarnation: u64,
    /// The oldest position that may still be read; behind the tail where nothing is kept.
    pub(super) first_seq: u64,
    pub(super) tail_seq: u64,
    /// The latest time the store itself has given here, so that neither ts nor ids go back when the clock does.
    pub(super) last_ms: u64,
    /// Bytes of the records held.
    pub(super) bytes: u64,
    /// Bytes of records that compaction dropped, but whose blocks may still be held by their neighbours.
    pub(super) dropped_bytes: u64,
    /// In the order of seq, with gaps where compaction took some.
    pub(super) events: VecDeque<Kept>,
    pub(super) by_time: TimeOrder,
    /// The seq of the latest event of each key.
    pub(super) latest: BTreeMap<Box<str>, u64>,
    /// The seq of events whose id the publisher chose. Ids the store made say themselves where their event is.
    pub(super) client_ids: HashMap<Box<str>, u64>,
}

/// An event a topic holds.
#[derive(Debug)]
pub(super) struct Kept {
    /// Beside the event, so that a search by position stays within the queue.
    pub(super) seq: u64,
    pub(super) event: StoredEvent,
}

impl Kept {
    /// When the event was stored. Every event here says so, since no older version has stored it.
    pub(super) fn stored_ms(&self) -> u64 {
        self.event.stored_ms().unwrap_or(self.event.ts())
    }
}

/// What a topic can say of an id that a publisher brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Claim {
    /// No event has it, and none will be given it.
    Free,
    /// The event at this position has it.
    Held(u64),
    /// It is of the form of this topic's client ids and names a position that is still to be given. It is refused, so
    /// that no two events ever have the same id.
    Reserved(GeneratedId),
}

impl Topic {
    pub(super) fn new(options: TopicOptions, tag: u32, incarnation: u64) -> Self {
        Self {
            options,
            tag,
            incarnation,
            first_seq: 1,
            tail_seq: 0,
            last_ms: 0,
            bytes: 0,
            dropped_bytes: 0,
            events: VecDeque::new(),
            by_time: TimeOrder::default(),
            latest: BTreeMap::new(),
            client_ids: HashMap::new(),
        }
    }

    /// Appends events in their order and adds an outcome for each. `block` is empty before and after.
    pub(super) fn append<'a>(
        &mut self,
        events: impl Iterator<Item = EncodedEvent<'a>>,
        now_ms: u64,
        block: &mut EventBlock,
        outcomes: &mut Vec<EventOutcome>,
    ) {
        let tail_before = self.tail_seq;
        for event in events {
            outcomes.push(match event.id() {
                None => self.place_if_expected(event, now_ms, block),
                Some(id) => match self.claim(&id, tail_before) {
                    Claim::Free => self.place_if_expected(event, now_ms, block),
                    Claim::Held(seq) => {
                        // The first one may be of this very batch.
                        self.take_in(block);
                        self.compare(id, seq, event.payload())
                    }
                    Claim::Reserved(GeneratedId { seq, ms: ts, .. }) => {
                        EventOutcome::IdConflict(EventRef { id, seq, ts })
                    }
                },
            });
            if block.bytes() >= BLOCK_BYTES {
                self.take_in(block);
            }
        }
        self.take_in(block);
    }

    /// What the topic can say of `id`, where ids up to `tail_seq` have been acknowledged to publishers.
    pub(super) fn claim(&self, id: &Id, tail_seq: u64) -> Claim {
        if let Some(&seq) = self.client_ids.get(id.as_str()) {
            return Claim::Held(seq);
        }
        match GeneratedId::parse(id.as_str()).filter(|made| made.tag == self.tag) {
            Some(made) if made.seq > tail_seq => Claim::Reserved(made),
            Some(made)
                if self
                    .get(made.seq)
                    .is_some_and(|event| event.id() == id.as_str()) =>
            {
                Claim::Held(made.seq)
            }
            _ => Claim::Free,
        }
    }

    /// The event at a position, if it is still held.
    pub(super) fn get(&self, seq: u64) -> Option<&StoredEvent> {
        let kept = self.events.get(self.index_from(seq))?;
        (kept.seq == seq).then_some(&kept.event)
    }

    pub(super) fn read(&self, from: ReadFrom<'_>, limit: ReadLimit) -> Page {
        let mut page = Page {
            events: Vec::new(),
            next_seq: self.tail_seq + 1,
            next_time: None,
            first_seq: self.first_seq,
            tail_seq: self.tail_seq,
        };
        match from {
            ReadFrom::Seq(from_seq) => {
                let from = self.index_from(from_seq);
                let wanted = self.events.range(from..).map(|kept| kept.event.clone());
                (page.events, _) = take_within(limit, wanted);
                page.next_seq = match self.events.get(from + page.events.len()) {
                    Some(next) => next.seq,
                    None => from_seq.max(self.tail_seq + 1),
                };
            }
            ReadFrom::Time(range) => {
                let (events, more) = take_within(limit, self.in_time(range));
                let last = events.last().map(|event| (event.ts(), event.seq()));
                page.next_time = last.filter(|_| more);
                page.events = events;
            }
            ReadFrom::Key(after) => {
                let from = after.map_or(Bound::Unbounded, Bound::Excluded);
                let seqs = self.latest.range::<str, _>((from, Bound::Unbounded));
                let wanted = seqs.filter_map(|(_, &seq)| self.get(seq).cloned());
                (page.events, _) = take_within(limit, wanted);
            }
        }
        page
    }

    fn in_time(&self, range: TimeRange) -> impl Iterator<Item = StoredEvent> {
        let after = range
            .after
            .map_or((0, 0), |(ts, seq)| (ts, seq.saturating_add(1)));
        self.by_time
            .since(after.max((range.from_ts, 0)))
            .take_while(move |&(ts, _)| ts <= range.to_ts)
            .filter_map(|(_, seq)| self.get(seq).cloned())
    }

    pub(super) fn find(&self, what: Find<'_>) -> Option<u64> {
        match what {
            Find::Ts(ts) => self.by_time.first_seq_since(ts),
            Find::Id(id) => match self.claim(&Id::from_client(id)?, self.tail_seq) {
                Claim::Held(seq) => Some(seq),
                Claim::Free | Claim::Reserved(_) => None,
            },
        }
    }

    /// The latest events of keys as of now.
    pub(super) fn latest(&self, keys: &[String]) -> Vec<LatestEvent> {
        let seqs = keys.iter().map(|key| self.latest.get(key.as_str()));
        seqs.map(|seq| LatestEvent {
            event: seq.and_then(|&seq| self.get(seq).cloned()),
            is_certain: true,
        })
        .collect()
    }

    /// Walks back from the tail until every key has its event.
    pub(super) fn latest_at(&self, keys: &[String], at_ts: u64) -> Vec<LatestEvent> {
        let mut past = vec![LatestEvent::default(); keys.len()];
        let mut open: HashMap<&str, usize> = HashMap::new();
        open.extend(keys.iter().enumerate().map(|(at, key)| (key.as_str(), at)));
        for (held_behind, Kept { seq, event }) in self.events.iter().rev().enumerate() {
            if open.is_empty() {
                break;
            }
            let key = event.key().filter(|_| event.ts() <= at_ts);
            if let Some(at) = key.and_then(|key| open.remove(&*key)) {
                past[at] = LatestEvent {
                    event: Some(event.clone()),
                    is_certain: self.tail_seq - seq == held_behind as u64,
                };
            }
        }
        let has_all = self.tail_seq + 1 - self.first_seq == self.events.len() as u64;
        for at in open.into_values() {
            past[at].is_certain = has_all;
        }
        past
    }

    pub(super) fn info(&self, name: &Arc<str>) -> TopicInfo {
        TopicInfo {
            name: name.clone(),
            options: self.options.clone(),
            incarnation: self.incarnation,
            first_seq: self.first_seq,
            tail_seq: self.tail_seq,
            events: self.events.len() as u64,
            bytes: self.bytes,
        }
    }

    /// Moves the events of `block` into the topic.
    fn take_in(&mut self, block: &mut EventBlock) {
        if block.bytes() == 0 {
            return;
        }
        for event in block.take() {
            let seq = event.seq();
            self.bytes += event.stored_bytes() as u64;
            self.by_time.push((event.ts(), seq));
            if let Some(key) = event.key() {
                match self.latest.get_mut(key.as_ref()) {
                    Some(latest) => *latest = seq,
                    None => drop(self.latest.insert(key.into(), seq)),
                }
            }
            self.events.push_back(Kept { seq, event });
        }
    }

    /// The last event of a key.
    pub(super) fn key_position(&self, key: &str) -> Option<KeyPosition> {
        let event = self.get(*self.latest.get(key)?)?;
        Some(KeyPosition::of_stored(event))
    }

    /// Stores an event unless it expects something else before it.
    fn place_if_expected(
        &mut self,
        event: EncodedEvent<'_>,
        now_ms: u64,
        block: &mut EventBlock,
    ) -> EventOutcome {
        if let Some(expected) = event.expected() {
            // The last event of the key may be of this very batch.
            self.take_in(block);
            let key_seq = || {
                let position = event.key().and_then(|key| self.key_position(&key));
                position.map_or(0, |position| position.seq_at(now_ms))
            };
            if let Err(mismatch) = expected.check(self.tail_seq, key_seq) {
                return EventOutcome::SeqMismatch(mismatch);
            }
        }
        EventOutcome::Stored(self.place(event, now_ms, block))
    }

    /// Gives an event the next position and writes it into `block`.
    fn place(&mut self, event: EncodedEvent<'_>, now_ms: u64, block: &mut EventBlock) -> EventRef {
        let seq = self.tail_seq + 1;
        let ms = self.last_ms.max(now_ms);
        self.last_ms = ms;
        let tag = self.tag;
        let id = event
            .id()
            .unwrap_or_else(|| GeneratedId { ms, tag, seq }.to_id());
        let ts = event.ts().unwrap_or(ms);
        if event.id().is_some() {
            self.client_ids.insert(id.as_str().into(), seq);
        }
        let event_ref = EventRef { id, seq, ts };
        block.push(event, &event_ref, ms);
        self.tail_seq = seq;
        event_ref
    }

    /// What becomes of an event that brings the id of the one at `seq`.
    fn compare(&self, id: Id, seq: u64, payload: &[u8]) -> EventOutcome {
        let first = self.get(seq);
        let ts = first.map_or(0, StoredEvent::ts);
        if first.is_some_and(|first| first.payload().as_bytes() == payload) {
            EventOutcome::Duplicate(EventRef { id, seq, ts })
        } else {
            EventOutcome::IdConflict(EventRef { id, seq, ts })
        }
    }

    /// The index of the first event at `seq` or behind it.
    fn index_from(&self, seq: u64) -> usize {
        // Without gaps an event is as far from the first as its position does.
        let first = self.events.front().map_or(0, |kept| kept.seq);
        let guess = seq.saturating_sub(first) as usize;
        match self.events.get(guess) {
            Some(kept) if kept.seq == seq => guess,
            _ => self.events.partition_point(|kept| kept.seq < seq),
        }
    }
}

/// Takes events up to a limit, but at least one, and returns whether there are more.
fn take_within(
    limit: ReadLimit,
    events: impl Iterator<Item = StoredEvent>,
) -> (Vec<StoredEvent>, bool) {
    let mut taken = Vec::new();
    let mut bytes = 0;
    for event in events {
        bytes += event.stored_bytes();
        if !taken.is_empty() && (taken.len() >= limit.events || bytes > limit.bytes) {
            return (taken, true);
        }
        taken.push(event);
    }
    (taken, false)
}
