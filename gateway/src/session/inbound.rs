//! The receiving half of a WebSocket: bytes of the socket become whole messages, checked and unmasked in place.
//!
//! Libraries were measured for this. The one that reads fastest cannot stop waiting without losing bytes, and the
//! others keep a buffer as large as the largest message for as long as the connection lives; here a socket that is
//! silent has no buffer at all, and many messages are taken out of one read.

use std::fmt;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// What is read at a time at first, and while little comes.
const SMALL_READ_BYTES: usize = 4 << 10;
/// What is read at a time when much comes, and how fast room grows for a large message.
const LARGE_READ_BYTES: usize = 64 << 10;
/// The most memory that is kept between messages while they come.
const KEPT_BYTES: usize = 256 << 10;
/// The longest payload of a ping, a pong or a close.
const MAX_CONTROL_BYTES: usize = 125;

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;

/// Received bytes that were not consumed yet.
#[derive(Debug)]
pub(super) struct Inbound {
    /// The read buffer; bytes between `start` and `end` were not consumed yet.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// The parts of a message that came so far.
    parts: Vec<u8>,
    /// Whether a fragmented message is incomplete.
    in_parts: bool,
    max_message_bytes: usize,
    /// How much to make room for.
    read_bytes: usize,
}

/// Something whole that a client sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming<'a> {
    Text(&'a str),
    Ping(&'a [u8]),
    Pong,
    /// With its code, where it has one.
    Close(Option<u16>),
}

/// What ends a connection, with the close code for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Violation {
    Protocol(&'static str),
    Binary,
    NotUtf8,
    TooBig { limit: usize },
}

/// The head of a frame.
struct Head {
    is_last: bool,
    opcode: u8,
    mask: [u8; 4],
    head_bytes: usize,
    payload_bytes: usize,
}

/// The payload of a complete message or control frame.
enum Whole {
    Message(Range<usize>),
    MessageInParts,
    Control(u8, Range<usize>),
}

impl Inbound {
    /// Begins with what was read behind the request for the upgrade.
    pub(super) fn new(read_already: &[u8], max_message_bytes: usize) -> Self {
        Self {
            buffer: read_already.to_vec(),
            start: 0,
            end: read_already.len(),
            parts: Vec::new(),
            in_parts: false,
            max_message_bytes,
            read_bytes: SMALL_READ_BYTES,
        }
    }

    pub(super) fn set_max_message_bytes(&mut self, max_message_bytes: usize) {
        self.max_message_bytes = max_message_bytes;
    }

    /// Reads what the socket has, once. `Ok(0)` is its end.
    pub(super) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Poll<io::Result<usize>> {
        self.make_room();
        let mut room = ReadBuf::new(&mut self.buffer[self.end..]);
        ready!(Pin::new(stream).poll_read(context, &mut room))?;
        let read = room.filled().len();
        if room.remaining() == 0 {
            self.read_bytes = LARGE_READ_BYTES;
        }
        self.end += read;
        Poll::Ready(Ok(read))
    }

    /// The next message, where all of it is there.
    pub(super) fn next(&mut self) -> Result<Option<Incoming<'_>>, Violation> {
        loop {
            let Some(whole) = self.next_frame()? else {
                return Ok(None);
            };
            return match whole {
                Some(Whole::Message(range)) => text(&self.buffer[range]).map(Some),
                Some(Whole::MessageInParts) => {
                    self.in_parts = false;
                    text(&self.parts).map(Some)
                }
                Some(Whole::Control(opcode, range)) => {
                    control(opcode, &self.buffer[range]).map(Some)
                }
                None => continue,
            };
        }
    }

    /// Passes over everything that was read.
    pub(super) fn forget(&mut self) {
        self.start = self.end;
    }

    /// Frees memory that is not in use.
    pub(super) fn rest(&mut self) {
        self.keep_at_most(0);
        self.read_bytes = SMALL_READ_BYTES;
    }

    /// Frees memory that only a large message needed.
    pub(super) fn shrink(&mut self) {
        self.keep_at_most(KEPT_BYTES);
    }

    fn keep_at_most(&mut self, bytes: usize) {
        if self.start == self.end && self.buffer.len() > bytes {
            self.buffer = Vec::new();
            (self.start, self.end) = (0, 0);
        }
        if !self.in_parts && self.parts.capacity() > bytes {
            self.parts = Vec::new();
        }
    }

    /// Takes the next frame: `None` where it is not all there, `Some(None)` where it was a part of a message.
    fn next_frame(&mut self) -> Result<Option<Option<Whole>>, Violation> {
        let Some(head) = self.head()? else {
            return Ok(None);
        };
        let payload_at = self.start + head.head_bytes;
        let range = payload_at..payload_at + head.payload_bytes;
        if range.end > self.end {
            return Ok(None);
        }
        unmask(head.mask, &mut self.buffer[range.clone()]);
        self.start = range.end;
        Ok(Some(match (head.opcode, head.is_last) {
            (TEXT, true) => Some(Whole::Message(range)),
            (TEXT, false) => {
                self.in_parts = true;
                self.parts.clear();
                self.parts.extend_from_slice(&self.buffer[range]);
                None
            }
            (CONTINUATION, is_last) => {
                self.parts.extend_from_slice(&self.buffer[range]);
                is_last.then_some(Whole::MessageInParts)
            }
            (opcode, _) => Some(Whole::Control(opcode, range)),
        }))
    }

    /// Reads the head of the next frame and rejects what may not come here; `None` where it is not all there.
    fn head(&self) -> Result<Option<Head>, Violation> {
        let bytes = &self.buffer[self.start..self.end];
        let &[first, second, ..] = bytes else {
            return Ok(None);
        };
        let (is_last, opcode) = (first & 0x80 != 0, first & 0x0F);
        self.check_opcode(opcode, is_last)?;
        if first & 0x70 != 0 {
            return Err(Violation::Protocol("reserved bits set"));
        }
        if second & 0x80 == 0 {
            return Err(Violation::Protocol("client frame is not masked"));
        }
        let (length_bytes, payload_bytes) = match second & 0x7F {
            126 => match bytes.get(2..4).and_then(|two| two.try_into().ok()) {
                Some(two) => (2, u64::from(u16::from_be_bytes(two))),
                None => return Ok(None),
            },
            127 => match bytes.get(2..10).and_then(|eight| eight.try_into().ok()) {
                Some(eight) => (8, u64::from_be_bytes(eight)),
                None => return Ok(None),
            },
            short => (0, u64::from(short)),
        };
        let payload_bytes = self.check_length(opcode, length_bytes, payload_bytes)?;
        let mask = bytes.get(2 + length_bytes..6 + length_bytes);
        let Some(mask) = mask.and_then(|four| four.try_into().ok()) else {
            return Ok(None);
        };
        Ok(Some(Head {
            is_last,
            opcode,
            mask,
            head_bytes: 6 + length_bytes,
            payload_bytes,
        }))
    }

    fn check_opcode(&self, opcode: u8, is_last: bool) -> Result<(), Violation> {
        match opcode {
            BINARY => Err(Violation::Binary),
            TEXT if self.in_parts => Err(Violation::Protocol("expected a continuation frame")),
            CONTINUATION if !self.in_parts => {
                Err(Violation::Protocol("unexpected continuation frame"))
            }
            CLOSE | PING | PONG if !is_last => Err(Violation::Protocol("fragmented control frame")),
            TEXT | CONTINUATION | CLOSE | PING | PONG => Ok(()),
            _ => Err(Violation::Protocol("unknown opcode")),
        }
    }

    /// The length of a payload that is allowed, before any of it is taken in.
    fn check_length(
        &self,
        opcode: u8,
        length_bytes: usize,
        payload_bytes: u64,
    ) -> Result<usize, Violation> {
        let is_shortest = match length_bytes {
            2 => payload_bytes > 125,
            8 => payload_bytes > u64::from(u16::MAX),
            _ => true,
        };
        if !is_shortest {
            return Err(Violation::Protocol("length is not minimally encoded"));
        }
        let limit = self.max_message_bytes;
        let payload_bytes = usize::try_from(payload_bytes).unwrap_or(usize::MAX);
        let before = match opcode {
            CONTINUATION => self.parts.len(),
            TEXT => 0,
            _ if payload_bytes > MAX_CONTROL_BYTES => {
                return Err(Violation::Protocol("control frame is too long"));
            }
            _ => 0,
        };
        if before.saturating_add(payload_bytes) > limit {
            Err(Violation::TooBig { limit })
        } else {
            Ok(payload_bytes)
        }
    }

    /// Makes room for the next read. A large message gets its room as it comes, not as it is announced.
    fn make_room(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.buffer.len() - self.end >= self.read_bytes {
            return;
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.buffer.len() - self.end < self.read_bytes {
            // As a vector grows, so that a message of many reads is not moved at each of them.
            let grown = (self.end + self.read_bytes).max(2 * self.end);
            self.buffer.resize(grown, 0);
        }
    }
}

impl Violation {
    /// The code that the connection is closed with.
    pub(super) fn close_code(self) -> u16 {
        match self {
            Self::Protocol(_) => 1002,
            Self::Binary => 1003,
            Self::NotUtf8 => 1007,
            Self::TooBig { .. } => 1009,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protocol(reason) => f.write_str(reason),
            Self::Binary => f.write_str("binary frames are not supported"),
            Self::NotUtf8 => f.write_str("text frame is not UTF-8"),
            Self::TooBig { limit } => write!(f, "message is larger than {limit} bytes"),
        }
    }
}

fn text(payload: &[u8]) -> Result<Incoming<'_>, Violation> {
    match std::str::from_utf8(payload) {
        Ok(text) => Ok(Incoming::Text(text)),
        Err(_) => Err(Violation::NotUtf8),
    }
}

fn control(opcode: u8, payload: &[u8]) -> Result<Incoming<'_>, Violation> {
    match (opcode, payload) {
        (PING, _) => Ok(Incoming::Ping(payload)),
        (PONG, _) => Ok(Incoming::Pong),
        (_, []) => Ok(Incoming::Close(None)),
        (_, [high, low, reason @ ..]) => {
            let code = u16::from_be_bytes([*high, *low]);
            if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
                return Err(Violation::Protocol("invalid close code"));
            }
            match std::str::from_utf8(reason) {
                Ok(_) => Ok(Incoming::Close(Some(code))),
                Err(_) => Err(Violation::NotUtf8),
            }
        }
        _ => Err(Violation::Protocol("truncated close code")),
    }
}

fn unmask(mask: [u8; 4], payload: &mut [u8]) {
    let [a, b, c, d] = mask;
    let wide = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (eights, rest) = payload.as_chunks_mut::<8>();
    for eight in eights {
        *eight = (u64::from_ne_bytes(*eight) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
}

#[cfg(test)]
mod tests;
