//! The sending half of a WebSocket: frames are written one behind the other into one buffer, and the socket takes
//! many of them at once. Frames of a server are not masked, so a message is its head and its text.

use prombus::{BudgetHold, ByteBudget};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// An array of frames is sent when it has grown to this.
const ARRAY_BYTES: usize = 64 << 10;
/// What was sent is cut off the front of the buffer when there is this much of it.
const CUT_BYTES: usize = 256 << 10;
/// The longest reason that fits a close.
const MAX_REASON_BYTES: usize = 123;
/// More than the fields around an event take, with its topic and group.
const FRAME_BYTES: usize = 512;
/// Buffers up to this are not worth counting.
const UNCOUNTED_BYTES: usize = 4 << 10;
/// Room for the head of a message of up to 65535 bytes. Shorter ones are moved to the front, longer ones to the back.
const HEAD_BYTES: usize = 4;

const LAST_TEXT: u8 = 0x81;
const LAST_CLOSE: u8 = 0x88;
const LAST_PING: u8 = 0x89;
const LAST_PONG: u8 = 0x8A;

/// What a client has not been sent yet.
#[derive(Debug)]
pub(super) struct Outbound {
    buffer: Vec<u8>,
    /// Its memory, as the server's budget knows of it.
    counted: BudgetHold,
    /// Everything before this offset has been sent.
    sent: usize,
    /// How many bytes were ever sent.
    sent_total: u64,
    /// The total at which the last ping is sent.
    ping_ends_at: u64,
    /// Whether the client takes arrays of frames.
    takes_arrays: bool,
    /// Where the array begins that frames are being added to.
    array_at: Option<usize>,
}

impl Outbound {
    /// An empty buffer whose memory counts against a budget.
    pub(super) fn new(memory: &Arc<ByteBudget>) -> Self {
        Self {
            buffer: Vec::new(),
            counted: memory.hold(0),
            sent: 0,
            sent_total: 0,
            ping_ends_at: 0,
            takes_arrays: false,
            array_at: None,
        }
    }

    pub(super) fn take_arrays(&mut self, takes_arrays: bool) {
        self.seal();
        self.takes_arrays = takes_arrays;
    }

    /// Adds a frame that `write` appends to the buffer.
    pub(super) fn frame(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.takes_arrays {
            let at = self.begin();
            write(&mut self.buffer);
            return self.end(at);
        }
        match self.array_at {
            Some(_) => self.buffer.push(b','),
            None => {
                self.array_at = Some(self.begin());
                self.buffer.push(b'[');
            }
        }
        write(&mut self.buffer);
        if self
            .array_at
            .is_some_and(|at| self.buffer.len() - at >= ARRAY_BYTES)
        {
            self.seal();
        }
    }

    /// Makes room for a frame of about so many bytes. Beyond [`CUT_BYTES`] the buffer grows by what it needs and no more:
    /// doubling would take twice the memory for a client that may never read it.
    pub(super) fn reserve(&mut self, bytes: usize) {
        let needed = self.buffer.len() + bytes + FRAME_BYTES;
        let capacity = self.buffer.capacity();
        if needed > capacity {
            let wanted = needed.max((capacity * 2).min(CUT_BYTES));
            self.buffer.reserve_exact(wanted - self.buffer.len());
        }
    }

    /// Tells the budget how much memory the buffer takes now.
    pub(super) fn count(&mut self) {
        let capacity = self.buffer.capacity();
        let is_large = capacity > UNCOUNTED_BYTES;
        self.counted.set(if is_large { capacity } else { 0 });
    }

    pub(super) fn ping(&mut self) {
        self.control(LAST_PING, &[]);
        self.ping_ends_at = self.sent_total + self.waiting() as u64;
    }

    pub(super) fn pong(&mut self, payload: &[u8]) {
        self.control(LAST_PONG, payload);
    }

    /// Says why the connection ends. Nothing may follow.
    pub(super) fn close(&mut self, code: Option<u16>, reason: &str) {
        let mut payload = Vec::new();
        if let Some(code) = code {
            payload.extend_from_slice(&code.to_be_bytes());
            // Reasons are ours and short; one that is not is better left out than cut.
            let reason = Some(reason).filter(|reason| reason.len() <= MAX_REASON_BYTES);
            payload.extend_from_slice(reason.unwrap_or_default().as_bytes());
        }
        self.control(LAST_CLOSE, &payload);
    }

    /// How many bytes wait to be sent.
    pub(super) fn waiting(&self) -> usize {
        self.buffer.len() - self.sent
    }

    /// Sends as much as the socket takes now; ready when that was everything. Then `kept_bytes` of memory are kept.
    pub(super) fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut (impl AsyncWrite + Unpin),
        kept_bytes: usize,
    ) -> Poll<io::Result<()>> {
        self.seal();
        while self.sent < self.buffer.len() {
            let unsent = &self.buffer[self.sent..];
            match Pin::new(&mut *stream).poll_write(context, unsent) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(sent)) => {
                    self.sent += sent;
                    self.sent_total += sent as u64;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    if self.sent >= CUT_BYTES {
                        self.buffer.drain(..self.sent);
                        self.sent = 0;
                    }
                    return Poll::Pending;
                }
            }
        }
        // TLS may still hold the last record.
        ready!(Pin::new(stream).poll_flush(context))?;
        self.sent = 0;
        self.buffer.clear();
        if self.buffer.capacity() > kept_bytes {
            self.buffer.shrink_to(kept_bytes);
        }
        Poll::Ready(Ok(()))
    }

    /// How many bytes were ever sent.
    pub(super) fn sent_total(&self) -> u64 {
        self.sent_total
    }

    /// Whether the last ping was written to the socket.
    pub(super) fn is_ping_sent(&self) -> bool {
        self.sent_total >= self.ping_ends_at
    }

    /// Frees memory that is not in use.
    pub(super) fn rest(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = Vec::new();
        }
    }

    /// Ends the array that is being written.
    fn seal(&mut self) {
        if let Some(at) = self.array_at.take() {
            self.buffer.push(b']');
            self.end(at);
        }
    }

    fn begin(&mut self) -> usize {
        let at = self.buffer.len();
        self.buffer.extend_from_slice(&[0; HEAD_BYTES]);
        at
    }

    /// Writes the head of the message that began at `at`.
    fn end(&mut self, at: usize) {
        let bytes = self.buffer.len() - at - HEAD_BYTES;
        if let Ok(short @ 0..=125) = u8::try_from(bytes) {
            let head = [LAST_TEXT, short];
            self.buffer.splice(at..at + HEAD_BYTES, head);
        } else if let Ok(middle) = u16::try_from(bytes) {
            let [high, low] = middle.to_be_bytes();
            self.buffer[at..at + HEAD_BYTES].copy_from_slice(&[LAST_TEXT, 126, high, low]);
        } else {
            let mut head = [LAST_TEXT, 127, 0, 0, 0, 0, 0, 0, 0, 0];
            head[2..].copy_from_slice(&(bytes as u64).to_be_bytes());
            self.buffer.splice(at..at + HEAD_BYTES, head);
        }
    }

    fn control(&mut self, first: u8, payload: &[u8]) {
        self.seal();
        self.buffer.extend_from_slice(&[first, payload.len() as u8]);
        self.buffer.extend_from_slice(payload);
    }
}

#[cfg(test)]
mod tests;
