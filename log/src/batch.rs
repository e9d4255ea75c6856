//! What a caller wants committed: events, keyed records and changes to topics, in one step. A batch spells the JSON
//! of its events when they are added, on the caller's thread; committing only has to fill in id, ts and seq.

use crate::event_id::Id;
use crate::json_text::push_string;
use crate::topic::TopicOptions;
use std::ops::Range;
use std::sync::Arc;

/// One event before the log has given it a position. The caller has checked that `payload` is valid JSON without
/// line breaks and that every limit holds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Draft<'a> {
    /// The publisher's own id, else the log makes one.
    pub id: Option<Id>,
    /// The publisher's own time, else the log's clock.
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

/// A change to something other than events. Changes are applied before the batch's events, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Makes a topic, or gives an existing one new options.
    PutTopic {
        /// The topic's name.
        topic: Arc<str>,
        /// Its options from now on.
        options: TopicOptions,
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
    /// The JSON of all events, each in two pieces: what follows the id, and what follows the seq.
    text: Vec<u8>,
    events: Vec<EncodedDraft>,
    changes: Vec<Change>,
    atomic: bool,
}

/// Where the pieces of one drafted event lie in the batch's text.
#[derive(Debug, Clone)]
pub(crate) struct EncodedDraft {
    pub(crate) topic: Arc<str>,
    pub(crate) id: Option<Id>,
    pub(crate) ts: Option<u64>,
    pub(crate) tombstone: bool,
    sid: Range<usize>,
    /// The key as JSON spells it, without the quotes.
    key: Option<Range<usize>>,
    payload: Range<usize>,
    rest: Range<usize>,
}

/// One drafted event of a batch, ready to be given its position.
#[derive(Debug, Clone, Copy)]
pub struct EncodedEvent<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) draft: &'a EncodedDraft,
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
        let text = &mut self.text;
        text.reserve(draft.payload.len() + FIELDS_BYTES);
        let sid_start = text.len();
        if let Some(sid) = draft.sid {
            text.extend_from_slice(b",\"sid\":");
            push_string(text, sid);
        }
        let rest_start = text.len();
        let key = draft.key.map(|key| {
            text.extend_from_slice(b",\"key\":");
            let start = text.len() + 1;
            push_string(text, key);
            start..text.len() - 1
        });
        if let Some(partition) = draft.partition {
            text.extend_from_slice(b",\"partition\":");
            crate::json_text::push_integer(text, u64::from(partition));
        }
        if !draft.headers.is_empty() {
            text.extend_from_slice(b",\"headers\":{");
            for (at, (name, value)) in draft.headers.iter().enumerate() {
                if at > 0 {
                    text.push(b',');
                }
                push_string(text, name);
                text.push(b':');
                push_string(text, value);
            }
            text.push(b'}');
        }
        text.extend_from_slice(b",\"payload\":");
        let payload_start = text.len();
        text.extend_from_slice(draft.payload.as_bytes());
        let payload = payload_start..text.len();
        push_strings(text, b",\"caused_by\":[", draft.caused_by);
        push_strings(text, b",\"tags\":[", draft.tags);
        text.push(b'}');
        self.events.push(EncodedDraft {
            topic: topic.clone(),
            id: draft.id,
            ts: draft.ts,
            tombstone: draft.tombstone,
            sid: sid_start..rest_start,
            key,
            payload,
            rest: rest_start..self.text.len(),
        });
    }

    /// Adds a change.
    pub fn change(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Whether the batch happens as a whole or not at all.
    pub fn is_atomic(&self) -> bool {
        self.atomic
    }

    /// Whether there is nothing to commit.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.changes.is_empty()
    }

    /// Bytes of the JSON of all events, without what the log adds.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// The changes, in the order they were added.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The events, in the order they were added.
    pub fn events(&self) -> impl ExactSizeIterator<Item = EncodedEvent<'_>> {
        self.events.iter().map(|draft| EncodedEvent {
            text: &self.text,
            draft,
        })
    }
}

impl<'a> EncodedEvent<'a> {
    /// The topic it is for.
    pub fn topic(&self) -> &'a Arc<str> {
        &self.draft.topic
    }

    /// The publisher's own id, if it chose one.
    pub fn id(&self) -> Option<Id> {
        self.draft.id
    }

    /// The publisher's own time, if it gave one.
    pub fn ts(&self) -> Option<u64> {
        self.draft.ts
    }

    /// The payload's JSON.
    pub fn payload(&self) -> &'a [u8] {
        &self.text[self.draft.payload.clone()]
    }

    /// `,"sid":"…"`, or nothing.
    pub(crate) fn sid_json(&self) -> &'a [u8] {
        &self.text[self.draft.sid.clone()]
    }

    /// Everything that follows the seq, up to and with the closing brace.
    pub(crate) fn rest_json(&self) -> &'a [u8] {
        &self.text[self.draft.rest.clone()]
    }

    /// The key as JSON spells it, without the quotes.
    pub(crate) fn key_json(&self) -> Option<&'a [u8]> {
        let range = self.draft.key.clone()?;
        Some(&self.text[range])
    }

    /// Where the payload starts within [`Self::rest_json`].
    pub(crate) fn payload_offset_in_rest(&self) -> usize {
        self.draft.payload.start - self.draft.rest.start
    }
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
