//! The event record: a 44-byte head, then the event's JSON.
//!
//! ```text
//!  0 length u32 | 4 checksum u32 | 8 kind | 9 flags | 10 id length | 11 topic length
//! 12 topic number u32 | 16 seq u64 | 24 ts u64 | 32 topic at u16 | 34 key length u16
//! 36 payload at u32 | 40 payload length u32 | 44 body
//! ```
//! Where the publisher gave the ts, the time at which the event was stored (u64) is between head and body, and a flag
//! says so: ages count from it. Offsets are within the body; lengths of id and key are as JSON encodes them. The id always starts at 7
//! (`{"id":"`), the key follows the seq.

use super::encoder::{EventEncoder, EventPlace};
use super::frame::{EVENT_KIND, FrameError, read_frame, u32_at};
use crate::batch::EncodedEvent;
use crate::event_id::{GeneratedId, Id};
use crate::json_text::{digits_of, unescape};
use crate::receipt::EventRef;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

pub(super) const HEAD_BYTES: usize = 44;
pub(super) const ID_AT: usize = br#"{"id":""#.len();
const BEFORE_SEQ: usize = br#"","seq":"#.len();
const BEFORE_PARTITION: &[u8] = br#","partition":"#;
const BEFORE_KEY: usize = br#","key":""#.len();

pub(super) const CLIENT_ID: u8 = 1 << 1;
pub(super) const CLIENT_TS: u8 = 1 << 2;
pub(super) const TOMBSTONE: u8 = 1 << 3;
/// The stored time is before the body.
pub(super) const STORED_TIME: u8 = 1 << 4;
pub(super) const STORED_TIME_BYTES: usize = 8;

/// A stored event: shared bytes of the block it was read with, and where it is in them. Cloning copies no bytes.
#[derive(Clone)]
pub struct StoredEvent {
    block: Arc<Vec<u8>>,
    at: usize,
    bytes: usize,
}

/// Encodes events outside the log, many into one shared block, for stores that keep events elsewhere.
#[derive(Debug, Default)]
pub struct EventBlock {
    /// The records of the events so far; its memory is used again for the next block.
    records: Vec<u8>,
    /// Where each record ends.
    ends: Vec<usize>,
    encoder: EventEncoder,
}

impl EventBlock {
    /// Adds an event at the position it was given, which is stored at `stored_ms`.
    pub fn push(&mut self, event: EncodedEvent<'_>, event_ref: &EventRef, stored_ms: u64) {
        let place = EventPlace {
            topic_number: 0,
            topic: event.topic(),
            id: &event_ref.id,
            ts: event_ref.ts,
            seq: event_ref.seq,
            stored_ms,
        };
        self.encoder
            .write(&mut self.records, event, &place, super::LAST_OF_BATCH);
        self.ends.push(self.records.len());
    }

    /// Adds an event as it is, so that the block it is in can be let go.
    pub fn copy(&mut self, event: &StoredEvent) {
        self.records.extend_from_slice(event.record());
        self.ends.push(self.records.len());
    }

    /// How many bytes have been added.
    pub fn bytes(&self) -> usize {
        self.records.len()
    }

    /// Takes the events added so far, in their order, in a block of exactly their size.
    pub fn take(&mut self) -> impl Iterator<Item = StoredEvent> + '_ {
        let block = Arc::new(self.records.as_slice().to_vec());
        self.records.clear();
        let mut at = 0;
        self.ends.drain(..).map(move |end| {
            let bytes = end - std::mem::replace(&mut at, end);
            StoredEvent {
                block: block.clone(),
                at: end - bytes,
                bytes,
            }
        })
    }
}

impl StoredEvent {
    /// Encodes an event outside the log, for stores that keep events elsewhere. `topic_number` is free to choose.
    pub fn encode(event: EncodedEvent<'_>, id: &Id, ts: u64, seq: u64) -> Self {
        let mut block = Vec::with_capacity(HEAD_BYTES + event.rest_json().len() + 128);
        let place = EventPlace {
            topic_number: 0,
            topic: event.topic(),
            id,
            ts,
            seq,
            stored_ms: ts,
        };
        EventEncoder::default().write(&mut block, event, &place, super::LAST_OF_BATCH);
        let bytes = block.len();
        Self {
            block: Arc::new(block),
            at: 0,
            bytes,
        }
    }

    /// Checks and takes the event record at `at`.
    pub fn read(block: Arc<Vec<u8>>, at: usize) -> Result<Self, FrameError> {
        let frame = read_frame(&block, at)?;
        Self::from_checked(block, at, frame.bytes)
    }

    /// Takes an event record whose frame was checked before.
    pub fn from_checked(block: Arc<Vec<u8>>, at: usize, bytes: usize) -> Result<Self, FrameError> {
        let event = Self { block, at, bytes };
        // The checksum held, but a reader must not panic over a writer's mistake either.
        if bytes < HEAD_BYTES {
            return Err(FrameError::Damaged);
        }
        let body = bytes.checked_sub(event.body_at());
        let body = body.ok_or(FrameError::Damaged)?;
        let payload_end = event.payload_at() + u32_at(event.head(), 40) as usize;
        let before_payload = ID_AT + event.id_bytes() < event.topic_at()
            && event.key_at() + event.key_bytes().unwrap_or(0) <= event.payload_at();
        if event.head()[8] != EVENT_KIND || payload_end > body || !before_payload {
            return Err(FrameError::Damaged);
        }
        Ok(event)
    }

    /// The whole event as JSON, in the field order of the contract.
    pub fn json(&self) -> &str {
        text(self.body())
    }

    /// The same as bytes, for those who only copy it.
    pub fn json_bytes(&self) -> &[u8] {
        self.body()
    }

    /// Its id.
    pub fn id(&self) -> Cow<'_, str> {
        unescape(text(&self.body()[ID_AT..ID_AT + self.id_bytes()]))
    }

    /// Its topic.
    pub fn topic(&self) -> &str {
        let at = self.topic_at();
        text(&self.body()[at..at + usize::from(self.head()[11])])
    }

    /// Its position in the topic.
    pub fn seq(&self) -> u64 {
        self.u64_at(16)
    }

    /// Its time in epoch milliseconds.
    pub fn ts(&self) -> u64 {
        self.u64_at(24)
    }

    /// When it was stored, in epoch milliseconds, which is what ages count from. `None` where its publisher chose both
    /// id and ts and an older version stored it.
    pub fn stored_ms(&self) -> Option<u64> {
        if !self.has_client_ts() {
            return Some(self.ts());
        }
        if self.head()[9] & STORED_TIME != 0 {
            let mut array = [0; STORED_TIME_BYTES];
            let at = self.at + HEAD_BYTES;
            array.copy_from_slice(&self.block[at..at + STORED_TIME_BYTES]);
            return Some(u64::from_le_bytes(array));
        }
        let made = GeneratedId::parse(&self.id()).filter(|_| !self.has_client_id());
        made.map(|made| made.ms)
    }

    /// Its key.
    pub fn key(&self) -> Option<Cow<'_, str>> {
        let bytes = self.key_bytes()?;
        let at = self.key_at();
        Some(unescape(text(&self.body()[at..at + bytes])))
    }

    /// Its partition, where its topic was partitioned when it was published.
    pub fn partition(&self) -> Option<u32> {
        // It follows the key, or the seq where there is no key.
        let at = match self.key_bytes() {
            Some(bytes) => self.key_at() + bytes + 1,
            None => self.key_at() - BEFORE_KEY,
        };
        let rest = self.body().get(at..)?.strip_prefix(BEFORE_PARTITION)?;
        let mut digits = rest.iter().take_while(|byte| byte.is_ascii_digit());
        let add = |number: u32, byte: &u8| {
            let number = number.checked_mul(10)?;
            number.checked_add(u32::from(byte - b'0'))
        };
        digits.try_fold(0, add)
    }

    /// Its payload as JSON.
    pub fn payload(&self) -> &str {
        let at = self.payload_at();
        text(&self.body()[at..at + u32_at(self.head(), 40) as usize])
    }

    /// Whether it says that its key is gone.
    pub fn is_tombstone(&self) -> bool {
        self.head()[9] & TOMBSTONE != 0
    }

    /// Whether the publisher chose the id.
    pub fn has_client_id(&self) -> bool {
        self.head()[9] & CLIENT_ID != 0
    }

    /// The bytes it takes in the log.
    pub fn stored_bytes(&self) -> usize {
        self.bytes
    }

    /// The bytes of the block that it keeps in memory, which other events may share.
    pub fn block_bytes(&self) -> usize {
        self.block.len()
    }

    /// Whether it shares its block with another event.
    pub fn shares_block(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.block, &other.block)
    }

    /// Whether the publisher gave the time.
    pub fn has_client_ts(&self) -> bool {
        self.head()[9] & CLIENT_TS != 0
    }

    /// The number that the store gave its topic.
    pub fn topic_number(&self) -> u32 {
        u32_at(self.head(), 12)
    }

    /// The whole record as it is on disk.
    pub fn record(&self) -> &[u8] {
        &self.block[self.at..self.at + self.bytes]
    }

    fn head(&self) -> &[u8] {
        &self.block[self.at..self.at + HEAD_BYTES]
    }

    fn body(&self) -> &[u8] {
        &self.block[self.at + self.body_at()..self.at + self.bytes]
    }

    fn body_at(&self) -> usize {
        match self.head()[9] & STORED_TIME {
            0 => HEAD_BYTES,
            _ => HEAD_BYTES + STORED_TIME_BYTES,
        }
    }

    fn id_bytes(&self) -> usize {
        usize::from(self.head()[10])
    }

    fn topic_at(&self) -> usize {
        usize::from(u16_at(self.head(), 32))
    }

    /// A key of no bytes is still a key, so the length on disk is one more.
    fn key_bytes(&self) -> Option<usize> {
        usize::from(u16_at(self.head(), 34)).checked_sub(1)
    }

    fn key_at(&self) -> usize {
        let topic_end = self.topic_at() + usize::from(self.head()[11]);
        topic_end + BEFORE_SEQ + digits_of(self.seq()) + BEFORE_KEY
    }

    fn payload_at(&self) -> usize {
        u32_at(self.head(), 36) as usize
    }

    fn u64_at(&self, at: usize) -> u64 {
        let mut array = [0; 8];
        array.copy_from_slice(&self.head()[at..at + 8]);
        u64::from_le_bytes(array)
    }
}

impl fmt::Debug for StoredEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoredEvent({})", self.json())
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// The log writes only text; a checksum that holds over something else is treated as no text.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}
