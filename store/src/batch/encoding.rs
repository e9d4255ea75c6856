//! A batch as bytes, for stores that send it elsewhere before anything was decided about it.
//!
//! ```text
//! batch   format u8 (1) | flags u8: 1 atomic | topics | changes | events | text
//! topics  count | name …
//! changes count | change …         see Change::encode
//! events  count | event …
//! event   flags u8: 1 tombstone, 2 ts, 4 client id, 8 key, 16 another topic than the event before,
//!                   32 expected seq, 64 expected seq of its key
//!         [topic's place] [ts] [id] [expected seq] [expected seq of its key] | bytes before the rest | [bytes before the key | bytes of the key]
//!         bytes before the payload | bytes of the payload | bytes behind it
//! text    bytes | the JSON of all events, one behind the other
//! ```
//! Numbers are LEB128, texts and values have their length before them. What is decoded is checked as far as memory
//! safety and the later slicing need it; that a payload is JSON is its sender's promise.
//!
//! The flags 32 and 64 came later. A reader that does not know them rejects the batch, so a sender that sends one where
//! [`Batch::has_expected_positions`] has to make sure that all who read it know them.

use super::memory::Memory;
use super::{Batch, Change, EncodedDraft, Expect, ExpectedPosition, IfExists};
use crate::event_id::Id;
use crate::topic::{Durability, TopicOptions};
use std::sync::Arc;

const FORMAT: u8 = 1;
const ATOMIC: u8 = 1;

const TOMBSTONE: u8 = 1;
const HAS_TS: u8 = 1 << 1;
const HAS_CLIENT_ID: u8 = 1 << 2;
const HAS_KEY: u8 = 1 << 3;
const OTHER_TOPIC: u8 = 1 << 4;
const EXPECTS_SEQ: u8 = 1 << 5;
const EXPECTS_KEY_SEQ: u8 = 1 << 6;
const EVENT_FLAGS: u8 =
    TOMBSTONE | HAS_TS | HAS_CLIENT_ID | HAS_KEY | OTHER_TOPIC | EXPECTS_SEQ | EXPECTS_KEY_SEQ;

/// The numbers of changes; a retired one is never used again.
const PUT_TOPIC: u8 = 1;
const DELETE_TOPIC: u8 = 2;
const TRIM: u8 = 3;
const PUT: u8 = 4;
const DELETE: u8 = 5;

/// What encoding needs at most of a batch, an event, what it expects, and a change, without names, ids, values and texts.
const MAX_BATCH_BYTES: usize = 64;
const MAX_EVENT_BYTES: usize = 46;
const MAX_EXPECTED_BYTES: usize = 20;
const MAX_CHANGE_BYTES: usize = 100;

/// The bytes are not a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid batch encoding at byte {at}")]
pub struct InvalidBatch {
    /// The byte before which everything is well-formed.
    pub at: usize,
}

impl Batch {
    /// Appends the batch to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(FORMAT);
        out.push(if self.atomic { ATOMIC } else { 0 });
        put_number(out, self.topics.len() as u64);
        for topic in &self.topics {
            put_bytes(out, topic.as_bytes());
        }
        put_number(out, self.changes.len() as u64);
        for change in &self.changes {
            change.encode(out);
        }
        let Memory { text, events } = &self.memory;
        put_number(out, events.len() as u64);
        let mut topic = None;
        for event in events {
            self.encode_event(event, topic.replace(event.topic), out);
        }
        put_bytes(out, text);
    }

    /// How many bytes [`Self::encode`] appends, or a few more.
    pub fn max_encoded_bytes(&self) -> usize {
        let names = self.topics.iter().map(|topic| topic.len() + 10);
        let ids = self.client_ids.iter().map(|id| id.as_bytes().len() + 2);
        let changes = self.changes.iter().map(|change| match change {
            Change::PutTopic { topic, options, .. } => {
                topic.len() + options.attributes.len() + MAX_CHANGE_BYTES
            }
            Change::DeleteTopic { topic } | Change::Trim { topic, .. } => {
                topic.len() + MAX_CHANGE_BYTES
            }
            Change::Put { key, value, .. } => key.len() + value.len() + MAX_CHANGE_BYTES,
            Change::Delete { key, .. } => key.len() + MAX_CHANGE_BYTES,
        });
        let expected = self.expected.len() * MAX_EXPECTED_BYTES;
        let sum = names.chain(ids).chain(changes).sum::<usize>();
        let events = self.memory.events.len() * MAX_EVENT_BYTES;
        MAX_BATCH_BYTES + sum + expected + events + self.memory.text.len()
    }

    /// Takes a batch off the front of `bytes`.
    pub fn decode(bytes: &mut &[u8]) -> Result<Self, InvalidBatch> {
        let mut input = Input { all: bytes, at: 0 };
        let Some(batch) = decode_batch(&mut input) else {
            return Err(InvalidBatch { at: input.at });
        };
        *bytes = &bytes[input.at..];
        Ok(batch)
    }

    /// Takes the changes out, so that others can be put in their place.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    fn encode_event(&self, event: &EncodedDraft, last_topic: Option<u32>, out: &mut Vec<u8>) {
        let mut flags = if event.tombstone { TOMBSTONE } else { 0 };
        flags |= event.ts.map_or(0, |_| HAS_TS);
        flags |= event.client_id.map_or(0, |_| HAS_CLIENT_ID);
        flags |= event.key.as_ref().map_or(0, |_| HAS_KEY);
        if last_topic != Some(event.topic) {
            flags |= OTHER_TOPIC;
        }
        let expected = match event.expected {
            0 => ExpectedPosition::default(),
            place => self.expected[place as usize - 1],
        };
        flags |= expected.seq.map_or(0, |_| EXPECTS_SEQ);
        flags |= expected.key_seq.map_or(0, |_| EXPECTS_KEY_SEQ);
        out.push(flags);
        if last_topic != Some(event.topic) {
            put_number(out, event.topic.into());
        }
        if let Some(ts) = event.ts {
            put_number(out, ts);
        }
        if let Some(id) = event.client_id {
            put_bytes(out, self.client_ids[id as usize].as_bytes());
        }
        for seq in expected.seq.into_iter().chain(expected.key_seq) {
            put_number(out, seq);
        }
        put_number(out, event.rest_at.into());
        let mut at = event.rest_at;
        for range in event.key.iter().chain([&event.payload]) {
            put_number(out, (range.start - at).into());
            put_number(out, (range.end - range.start).into());
            at = range.end;
        }
        put_number(out, (event.end - at).into());
    }
}

impl Change {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::PutTopic {
                topic,
                options,
                if_exists,
            } => {
                out.push(PUT_TOPIC);
                put_bytes(out, topic.as_bytes());
                out.push(u8::from(*if_exists == IfExists::Keep));
                encode_options(options, out);
            }
            Self::DeleteTopic { topic } => {
                out.push(DELETE_TOPIC);
                put_bytes(out, topic.as_bytes());
            }
            Self::Trim { topic, first_seq } => {
                out.push(TRIM);
                put_bytes(out, topic.as_bytes());
                put_number(out, *first_seq);
            }
            Self::Put { key, value, expect } => {
                out.push(PUT);
                put_bytes(out, key.as_bytes());
                put_expect(out, *expect);
                put_bytes(out, value);
            }
            Self::Delete { key, expect } => {
                out.push(DELETE);
                put_bytes(out, key.as_bytes());
                put_expect(out, *expect);
            }
        }
    }

    fn decode(input: &mut Input<'_>) -> Option<Self> {
        let kind = input.byte()?;
        let name: Arc<str> = input.text()?.into();
        Some(match kind {
            PUT_TOPIC => Self::PutTopic {
                topic: name,
                if_exists: if input.flag()? {
                    IfExists::Keep
                } else {
                    IfExists::Replace
                },
                options: decode_options(input)?,
            },
            DELETE_TOPIC => Self::DeleteTopic { topic: name },
            TRIM => Self::Trim {
                topic: name,
                first_seq: input.number()?,
            },
            PUT => Self::Put {
                key: name,
                expect: take_expect(input)?,
                value: input.bytes()?.into(),
            },
            DELETE => Self::Delete {
                key: name,
                expect: take_expect(input)?,
            },
            _ => return None,
        })
    }
}

fn decode_batch(input: &mut Input<'_>) -> Option<Batch> {
    if input.byte()? != FORMAT {
        return None;
    }
    let mut batch = match input.byte()? {
        0 => Batch::new(),
        ATOMIC => Batch::atomic(),
        _ => return None,
    };
    for _ in 0..input.number()? {
        batch.topics.push(input.text()?.into());
    }
    for _ in 0..input.number()? {
        batch.changes.push(Change::decode(input)?);
    }
    let mut topic = None;
    let mut text_bytes = 0;
    for _ in 0..input.number()? {
        let event = decode_event(input, &mut batch, topic, text_bytes)?;
        topic = Some(event.topic);
        text_bytes += event.end as usize;
        batch.memory.events.push(event);
    }
    let text = input.text()?;
    // Whatever is sliced later is text: every range ends at the start of a character.
    let is_text = |event: &EncodedDraft| {
        let ends = [event.rest_at, event.payload.start, event.payload.end];
        let key = event.key.iter().flat_map(|key| [key.start, key.end]);
        let mut ends = ends.into_iter().chain(key).chain([event.end]);
        ends.all(|end| text.is_char_boundary(event.start + end as usize))
    };
    let is_valid = text.len() == text_bytes && batch.memory.events.iter().all(is_text);
    batch.memory.text.extend_from_slice(text.as_bytes());
    is_valid.then_some(batch)
}

fn decode_event(
    input: &mut Input<'_>,
    batch: &mut Batch,
    last_topic: Option<u32>,
    start: usize,
) -> Option<EncodedDraft> {
    let flags = input.byte()?;
    if flags & !EVENT_FLAGS != 0 {
        return None;
    }
    let topic = match flags & OTHER_TOPIC {
        0 => last_topic?,
        _ => input.small_number()?,
    };
    if topic as usize >= batch.topics.len() {
        return None;
    }
    let ts = match flags & HAS_TS {
        0 => None,
        _ => Some(input.number()?),
    };
    let client_id = match flags & HAS_CLIENT_ID {
        0 => None,
        _ => {
            batch.client_ids.push(Id::from_client(input.text()?)?);
            Some(batch.client_ids.len() as u32 - 1)
        }
    };
    let mut number_if = |flag| match flags & flag {
        0 => Some(None),
        _ => Some(Some(input.number()?)),
    };
    let expected = ExpectedPosition {
        seq: number_if(EXPECTS_SEQ)?,
        key_seq: number_if(EXPECTS_KEY_SEQ)?,
    };
    let expected = batch.expected_place(expected);
    // No event is longer than what is left of the input, so sums stay far below overflow of an u64; an u32 is checked.
    let rest_at = input.small_number()?;
    let mut at = rest_at;
    let mut range = |input: &mut Input<'_>| {
        let start = at.checked_add(input.small_number()?)?;
        at = start.checked_add(input.small_number()?)?;
        Some(start..at)
    };
    let key = match flags & HAS_KEY {
        0 => None,
        _ => Some(range(input)?),
    };
    let payload = range(input)?;
    let end = at.checked_add(input.small_number()?)?;
    (start + end as usize <= input.all.len()).then_some(EncodedDraft {
        start,
        ts,
        topic,
        client_id,
        rest_at,
        key,
        payload,
        end,
        expected,
        tombstone: flags & TOMBSTONE != 0,
    })
}

fn encode_options(options: &TopicOptions, out: &mut Vec<u8>) {
    out.push(match options.durability {
        Durability::Fsync => 0,
        Durability::Os => 1,
    });
    out.push(u8::from(options.compaction));
    for limit in [options.retention_ms, options.max_bytes, options.max_events] {
        out.push(u8::from(limit.is_some()));
        if let Some(limit) = limit {
            put_number(out, limit);
        }
    }
    put_bytes(out, options.attributes.as_bytes());
}

fn decode_options(input: &mut Input<'_>) -> Option<TopicOptions> {
    let durability = match input.byte()? {
        0 => Durability::Fsync,
        1 => Durability::Os,
        _ => return None,
    };
    let compaction = input.flag()?;
    let mut limits = [None; 3];
    for limit in &mut limits {
        if input.flag()? {
            *limit = Some(input.number()?);
        }
    }
    let [retention_ms, max_bytes, max_events] = limits;
    Some(TopicOptions {
        durability,
        retention_ms,
        max_bytes,
        max_events,
        compaction,
        attributes: input.text()?.into(),
    })
}

fn put_expect(out: &mut Vec<u8>, expect: Expect) {
    match expect {
        Expect::Any => out.push(0),
        Expect::Absent => out.push(1),
        Expect::Version(version) => {
            out.push(2);
            put_number(out, version);
        }
    }
}

fn take_expect(input: &mut Input<'_>) -> Option<Expect> {
    Some(match input.byte()? {
        0 => Expect::Any,
        1 => Expect::Absent,
        2 => Expect::Version(input.number()?),
        _ => return None,
    })
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// What is being decoded, and how far.
struct Input<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.all.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn small_number(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let end = self.at.checked_add(length)?;
        let bytes = self.all.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

#[cfg(test)]
mod tests;
