//! What a caller wants committed: events, keyed records and changes to topics, in one step. A batch encodes the JSON
//! of its events when they are added, on the caller's thread; committing only has to fill in id, ts and seq.

mod encoding;
mod expected;
mod memory;
mod sizes;

use crate::event_id::Id;
use crate::json_text::{push_string, unescape};
use crate::topic::TopicOptions;
pub use encoding::InvalidBatch;
pub use expected::{ExpectedPosition, KeyPosition};
use memory::Memory;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// One event before a store has given it a position. The caller has checked that `payload` is valid JSON without
/// line breaks and that every limit holds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Draft<'a> {
    /// The publisher's client id, else the store makes one.
    pub id: Option<Id>,
    /// The publisher's own time, else the store's clock.
    pub ts: Option<u64>,
    /// Boot or session id of the publisher.
    pub sid: Option<&'a str>,
    /// For compaction and ordering.
    pub key: Option<&'a str>,
    /// Only where the topic is partitioned.
    pub partition: Option<u32>,
    /// Names and values, in the order they are to be written.
    pub headers: &'a [(String, String)],
    /// JSON text.
    pub payload: &'a str,
    /// Ids of the events that caused this one.
    pub caused_by: &'a [String],
    /// Free labels.
    pub tags: &'a [String],
    /// Whether the payload says that the key is gone.
    pub tombstone: bool,
    /// What must be stored before it for this event to be.
    pub expected: ExpectedPosition,
}

/// What a keyed write requires of the record it replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Whatever is there.
    Any,
    /// Nothing may be there.
    Absent,
    /// This version must be there.
    Version(u64),
}

/// What [`Change::PutTopic`] does to a topic that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfExists {
    /// It gets the new options.
    Replace,
    /// It stays as it is: a first publish that creates the topic does not overwrite options that were set before.
    Keep,
}

/// A change to something other than events. Changes are applied before the batch's events, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Makes a topic, or gives an existing one new options.
    PutTopic {
        /// The topic's name.
        topic: Arc<str>,
        /// Its options from now on.
        options: TopicOptions,
        /// What happens to a topic that exists.
        if_exists: IfExists,
    },
    /// Removes a topic and all its events. Nothing happens if there is none.
    DeleteTopic {
        /// The topic's name.
        topic: Arc<str>,
    },
    /// Forgets the events of a topic before a position.
    Trim {
        /// The topic's name.
        topic: Arc<str>,
        /// The first position to keep.
        first_seq: u64,
    },
    /// Writes a keyed record.
    Put {
        /// The record's key.
        key: Arc<str>,
        /// Its new value.
        value: Arc<[u8]>,
        /// What must be there for this to happen.
        expect: Expect,
    },
    /// Removes a keyed record.
    Delete {
        /// The record's key.
        key: Arc<str>,
        /// What must be there for this to happen.
        expect: Expect,
    },
}

/// About what the fields beside the payload take where there are few.
const FIELDS_BYTES: usize = 64;

/// Events and changes to commit together. See [`Batch::atomic`] for what "together" means.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    memory: Memory,
    /// The topics of the events; one that has many in a row is here once for all of them.
    topics: Vec<Arc<str>>,
    /// The ids that publishers chose, in the order of their events.
    client_ids: Vec<Id>,
    /// What events expect, in their order; most expect nothing.
    expected: Vec<ExpectedPosition>,
    changes: Vec<Change>,
    atomic: bool,
}

/// Where the pieces of one drafted event are in the batch's text. Ranges count from its start.
#[derive(Debug, Clone)]
struct EncodedDraft {
    start: usize,
    ts: Option<u64>,
    /// Its place among the batch's topics.
    topic: u32,
    /// Its place among the batch's client ids.
    client_id: Option<u32>,
    /// Where what follows the seq begins; what follows the id comes before it.
    rest_at: u32,
    /// The key as JSON encodes it, without the quotes.
    key: Option<Range<u32>>,
    payload: Range<u32>,
    end: u32,
    /// One more than its place among what the batch's events expect; 0 where it expects nothing. In four bytes, which fit
    /// where the struct has room anyway.
    expected: u32,
    tombstone: bool,
}

/// One drafted event of a batch, ready to be given its position.
#[derive(Debug, Clone, Copy)]
pub struct EncodedEvent<'a> {
    batch: &'a Batch,
    draft: &'a EncodedDraft,
}

impl Batch {
    /// A batch of independent events: one that is a duplicate or conflicts does not keep the others from being
    /// stored. Changes, if there are any, still need all their expectations to hold, or nothing happens.
    pub fn new() -> Self {
        Self::default()
    }

    /// A batch that happens as a whole or not at all, also across a crash. A duplicate event counts as stored; a
    /// conflicting id or a failed expectation refuses the batch.
    pub fn atomic() -> Self {
        Self {
            atomic: true,
            ..Self::default()
        }
    }

    /// Adds an event to be published to `topic`.
    pub fn publish(&mut self, topic: &Arc<str>, draft: &Draft<'_>) {
        let (topic, client_id) = (self.topic_place(topic), self.client_id_place(draft.id));
        let expected = self.expected_place(draft.expected);
        let Memory { text, events } = &mut self.memory;
        text.reserve(draft.payload.len() + FIELDS_BYTES);
        let start = text.len();
        let at = |text: &Vec<u8>| (text.len() - start) as u32;
        if let Some(sid) = draft.sid {
            text.extend_from_slice(b",\"sid\":");
            push_string(text, sid);
        }
        let rest_at = at(text);
        let key = draft.key.map(|key| {
            text.extend_from_slice(b",\"key\":");
            let key_at = at(text) + 1;
            push_string(text, key);
            key_at..at(text) - 1
        });
        if let Some(partition) = draft.partition {
            text.extend_from_slice(b",\"partition\":");
            crate::json_text::push_integer(text, u64::from(partition));
        }
        push_headers(text, draft.headers);
        text.extend_from_slice(b",\"payload\":");
        let payload_at = at(text);
        text.extend_from_slice(draft.payload.as_bytes());
        let payload = payload_at..at(text);
        push_strings(text, b",\"caused_by\":[", draft.caused_by);
        push_strings(text, b",\"tags\":[", draft.tags);
        text.push(b'}');
        events.push(EncodedDraft {
            start,
            ts: draft.ts,
            topic,
            client_id,
            rest_at,
            key,
            payload,
            end: at(text),
            expected,
            tombstone: draft.tombstone,
        });
    }

    /// Adds a change.
    pub fn change(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Adds the events and changes of another batch behind those that are here. Whether this batch is atomic stays as
    /// it is.
    pub fn append(&mut self, other: &Batch) {
        let text_at = self.memory.text.len();
        let client_ids_at = self.client_ids.len() as u32;
        let expected_at = self.expected.len() as u32;
        self.memory.text.extend_from_slice(&other.memory.text);
        self.memory.events.reserve(other.memory.events.len());
        // Without a list of places: most batches have one topic, and many are appended one by one.
        let mut last: Option<(u32, u32)> = None;
        for draft in &other.memory.events {
            let topic = match last {
                Some((before, now)) if before == draft.topic => now,
                _ => self.topic_place(&other.topics[draft.topic as usize]),
            };
            last = Some((draft.topic, topic));
            self.memory.events.push(EncodedDraft {
                start: draft.start + text_at,
                topic,
                client_id: draft.client_id.map(|place| place + client_ids_at),
                expected: match draft.expected {
                    0 => 0,
                    place => place + expected_at,
                },
                ..draft.clone()
            });
        }
        self.client_ids.extend_from_slice(&other.client_ids);
        self.expected.extend_from_slice(&other.expected);
        self.changes.extend_from_slice(&other.changes);
    }

    /// Whether the batch happens as a whole or not at all.
    pub fn is_atomic(&self) -> bool {
        self.atomic
    }

    /// Whether there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.memory.events.is_empty() && self.changes.is_empty()
    }

    /// Whether an event has an id that its publisher chose.
    pub fn has_client_ids(&self) -> bool {
        !self.client_ids.is_empty()
    }

    /// Whether an event expects something of what is stored before it.
    pub fn has_expected_positions(&self) -> bool {
        !self.expected.is_empty()
    }

    /// Whether an event expects something of the last event of its key.
    pub fn has_expected_key_positions(&self) -> bool {
        self.expected
            .iter()
            .any(|expected| expected.key_seq.is_some())
    }

    /// Bytes of the JSON of all events, without what a store adds.
    pub fn text_bytes(&self) -> usize {
        self.memory.text.len()
    }

    /// The changes, in the order they were added.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The events, in the order they were added.
    pub fn events(&self) -> impl ExactSizeIterator<Item = EncodedEvent<'_>> {
        let drafts = self.memory.events.iter();
        drafts.map(|draft| EncodedEvent { batch: self, draft })
    }

    fn topic_place(&mut self, topic: &Arc<str>) -> u32 {
        let is_last = |last: &Arc<str>| Arc::ptr_eq(last, topic);
        if !self.topics.last().is_some_and(is_last) {
            self.topics.push(topic.clone());
        }
        (self.topics.len() - 1) as u32
    }

    fn client_id_place(&mut self, id: Option<Id>) -> Option<u32> {
        let place = self.client_ids.len() as u32;
        self.client_ids.push(id?);
        Some(place)
    }

    fn expected_place(&mut self, expected: ExpectedPosition) -> u32 {
        if expected.is_anything() {
            return 0;
        }
        self.expected.push(expected);
        self.expected.len() as u32
    }
}

impl<'a> EncodedEvent<'a> {
    /// The topic it is for.
    pub fn topic(&self) -> &'a Arc<str> {
        &self.batch.topics[self.draft.topic as usize]
    }

    /// The publisher's client id, if it chose one.
    pub fn id(&self) -> Option<Id> {
        let place = self.draft.client_id?;
        Some(self.batch.client_ids[place as usize])
    }

    /// The publisher's own time, if it gave one.
    pub fn ts(&self) -> Option<u64> {
        self.draft.ts
    }

    /// The payload's JSON.
    pub fn payload(&self) -> &'a [u8] {
        self.text(&self.draft.payload)
    }

    /// Whether the payload says that the key is gone.
    pub fn is_tombstone(&self) -> bool {
        self.draft.tombstone
    }

    /// Whether its publisher chose the id.
    pub fn has_client_id(&self) -> bool {
        self.draft.client_id.is_some()
    }

    /// `,"sid":"…"`, or nothing.
    pub fn sid_json(&self) -> &'a [u8] {
        self.text(&(0..self.draft.rest_at))
    }

    /// Everything that follows the seq, up to and with the closing brace.
    pub fn rest_json(&self) -> &'a [u8] {
        self.text(&(self.draft.rest_at..self.draft.end))
    }

    /// What it expects of what is stored before it; `None` where it is stored whatever that is.
    pub fn expected(&self) -> Option<ExpectedPosition> {
        let place = self.draft.expected.checked_sub(1)?;
        self.batch.expected.get(place as usize).copied()
    }

    /// The key as JSON encodes it, without the quotes.
    pub fn key_json(&self) -> Option<&'a [u8]> {
        self.draft.key.as_ref().map(|key| self.text(key))
    }

    /// The key.
    pub fn key(&self) -> Option<Cow<'a, str>> {
        let key = std::str::from_utf8(self.key_json()?).ok()?;
        Some(unescape(key))
    }

    /// Bytes of the key as JSON encodes it, without the quotes.
    pub fn key_json_bytes(&self) -> Option<usize> {
        self.draft.key.as_ref().map(ExactSizeIterator::len)
    }

    /// Where the payload starts within [`Self::rest_json`].
    pub fn payload_offset_in_rest(&self) -> usize {
        (self.draft.payload.start - self.draft.rest_at) as usize
    }

    fn text(&self, range: &Range<u32>) -> &'a [u8] {
        let start = self.draft.start;
        &self.batch.memory.text[start + range.start as usize..start + range.end as usize]
    }
}

fn push_headers(text: &mut Vec<u8>, headers: &[(String, String)]) {
    if headers.is_empty() {
        return;
    }
    text.extend_from_slice(b",\"headers\":{");
    for (at, (name, value)) in headers.iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        push_string(text, name);
        text.push(b':');
        push_string(text, value);
    }
    text.push(b'}');
}

fn push_strings(text: &mut Vec<u8>, opening: &[u8], strings: &[String]) {
    if strings.is_empty() {
        return;
    }
    text.extend_from_slice(opening);
    for (at, string) in strings.iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        push_string(text, string);
    }
    text.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Publishes to topics, some with an id of their own, and writes a record.
    fn fill(batch: &mut Batch, topics: &[Arc<str>], numbers: Range<usize>) {
        for number in numbers {
            let key = format!("key-{number}");
            let payload = format!("{{\"number\":{number}}}");
            let id = (number % 2 == 0).then(|| Id::from_client(&format!("own-{number}")));
            let draft = Draft {
                id: id.flatten(),
                ts: (number % 3 == 0).then_some(number as u64),
                sid: Some("boot"),
                key: Some(&key),
                payload: &payload,
                expected: ExpectedPosition {
                    seq: (number % 5 == 0).then_some(number as u64),
                    key_seq: (number % 7 == 0).then_some(0),
                },
                ..Draft::default()
            };
            batch.publish(&topics[number % topics.len()], &draft);
            batch.change(Change::Delete {
                key: key.into(),
                expect: Expect::Any,
            });
        }
    }

    #[test]
    fn what_is_appended_is_as_if_it_had_been_added() {
        let topics: Vec<Arc<str>> = ["a", "b", "a"].map(Arc::from).to_vec();
        let mut whole = Batch::atomic();
        fill(&mut whole, &topics, 0..20);
        let mut joined = Batch::atomic();
        for part in [0..0, 0..7, 7..8, 8..20] {
            let mut piece = Batch::new();
            fill(&mut piece, &topics, part);
            joined.append(&piece);
        }
        assert!(joined.is_atomic());
        assert_eq!(joined.changes(), whole.changes());
        assert_eq!(joined.text_bytes(), whole.text_bytes());
        assert_eq!(joined.events().len(), 20);
        for (one, other) in joined.events().zip(whole.events()) {
            assert_eq!(one.topic(), other.topic());
            assert_eq!((one.id(), one.ts()), (other.id(), other.ts()));
            assert_eq!(one.payload(), other.payload());
            assert_eq!(one.expected(), other.expected());
            assert_eq!(one.key(), other.key());
            assert_eq!(one.sid_json(), other.sid_json());
            assert_eq!(one.rest_json(), other.rest_json());
        }
    }
}
