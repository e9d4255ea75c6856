//! Publishes on their way: written into chunks by their publishers, sent by the connection's task, kept until they
//! are answered. Answers come in the order of sending.

use super::Published;
use super::encode::{Encoded, Safety};
use super::slots::{SlotNumber, Slots};
use crate::error::PublishError;
use std::collections::VecDeque;
use std::task::Waker;

/// A message with publishes is closed when it has this many bytes, so that the server can begin with one while the
/// next is still written.
const CHUNK_BYTES: usize = 48 << 10;

/// Publishes that go out as one message.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// Frames with commas between them.
    text: Vec<u8>,
    /// The number of its last publish.
    last: u64,
    /// Where the first frame begins that is not answered.
    from: usize,
}

/// A publish that is not answered yet.
#[derive(Debug, Clone, Copy)]
struct Flight {
    number: u64,
    slot: SlotNumber,
    /// The room it takes.
    units: u32,
    /// Where its frame ends in its chunk.
    end: usize,
    safety: Safety,
    /// Whether an earlier connection sent it too.
    sent_before: bool,
}

/// All publishes that are not answered, and the answers that nobody took yet.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    next: u64,
    /// Not sent yet.
    queued: VecDeque<Chunk>,
    /// In the order of their numbers: those of sent chunks, then those of queued ones.
    flights: VecDeque<Flight>,
    pub(super) slots: Slots,
    /// A buffer that was used up.
    spare: Vec<u8>,
    /// Why nothing is taken in any more.
    ended: Option<PublishError>,
}

/// A reply to a publish, as it came.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) number: u64,
    pub(crate) outcome: Result<Published, PublishError>,
}

/// What replies freed and whom they wake.
#[derive(Debug, Default)]
pub(crate) struct Answered {
    pub(crate) units: usize,
    pub(crate) wakers: Vec<Waker>,
}

/// A reply came that answers no publish, or not the next one.
#[derive(Debug)]
pub(crate) struct OutOfOrder;

impl Outbox {
    /// Takes a publish in.
    pub(crate) fn push(
        &mut self,
        frame: &Encoded<'_>,
        units: u32,
    ) -> Result<SlotNumber, PublishError> {
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }
        self.next += 1;
        let number = self.next;
        let slot = self.slots.reserve();
        if self.queued.back().is_none_or(Chunk::is_full) {
            let text = std::mem::take(&mut self.spare);
            self.queued.push_back(Chunk {
                text,
                ..Chunk::default()
            });
        }
        let Some(chunk) = self.queued.back_mut() else {
            return Ok(slot);
        };
        chunk.separate();
        chunk.text.extend_from_slice(frame.text);
        chunk.text.extend_from_slice(b",\"corr\":\"");
        push_decimal(&mut chunk.text, number);
        chunk.text.extend_from_slice(b"\"}");
        chunk.last = number;
        self.flights.push_back(Flight {
            number,
            slot,
            units,
            end: chunk.text.len(),
            safety: frame.safety,
            sent_before: false,
        });
        Ok(slot)
    }

    /// Whether there is something to send.
    pub(crate) fn has_queued(&self) -> bool {
        !self.queued.is_empty()
    }

    /// Whether everything was answered.
    pub(crate) fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// The next chunk to send. Its sender keeps it in `sent` until it is answered.
    pub(crate) fn take_queued(&mut self) -> Option<Chunk> {
        self.queued.pop_front()
    }

    /// Whether the publish that is answered next may be sent again.
    pub(crate) fn next_may_be_sent_again(&self, number: u64) -> bool {
        let flight = self
            .flights
            .front()
            .filter(|flight| flight.number == number);
        flight.is_some_and(|flight| flight.safety != Safety::Once)
    }

    /// Puts replies in their places and forgets the chunks that are answered as a whole.
    pub(crate) fn answer(
        &mut self,
        sent: &mut VecDeque<Chunk>,
        replies: impl Iterator<Item = Reply>,
    ) -> Result<Answered, OutOfOrder> {
        let mut answered = Answered::default();
        for Reply { number, outcome } in replies {
            let flight = self.flights.front().copied();
            let (Some(flight), Some(chunk)) = (flight, sent.front_mut()) else {
                return Err(OutOfOrder);
            };
            if flight.number != number {
                return Err(OutOfOrder);
            }
            self.flights.pop_front();
            chunk.from = flight.end + 1;
            if chunk.last == number
                && let Some(mut chunk) = sent.pop_front()
            {
                chunk.text.clear();
                self.spare = chunk.text;
            }
            answered.units += flight.units as usize;
            let outcome = outcome.map(|mut published| {
                if flight.safety == Safety::MadeId && flight.sent_before {
                    published.duplicate = false;
                }
                published
            });
            answered
                .wakers
                .extend(self.slots.answer(flight.slot, outcome));
        }
        Ok(answered)
    }

    /// The connection is gone: what was sent and can be sent again is queued again, before everything else; what
    /// cannot is answered with its unknown outcome.
    pub(crate) fn rewind(&mut self, sent: &mut VecDeque<Chunk>) -> Answered {
        let mut answered = Answered::default();
        let mut again: VecDeque<Chunk> = VecDeque::new();
        let mut flights: VecDeque<Flight> = VecDeque::with_capacity(self.flights.len());
        for chunk in sent.drain(..) {
            let mut from = chunk.from;
            while self
                .flights
                .front()
                .is_some_and(|flight| flight.number <= chunk.last)
                && let Some(mut flight) = self.flights.pop_front()
            {
                let frame = &chunk.text[from..flight.end];
                from = flight.end + 1;
                if flight.safety == Safety::Once {
                    answered.units += flight.units as usize;
                    let unknown = Err(PublishError::UnknownOutcome);
                    answered
                        .wakers
                        .extend(self.slots.answer(flight.slot, unknown));
                    continue;
                }
                if again.back().is_none_or(Chunk::is_full) {
                    again.push_back(Chunk::default());
                }
                if let Some(chunk) = again.back_mut() {
                    chunk.separate();
                    chunk.text.extend_from_slice(frame);
                    chunk.last = flight.number;
                    flight.end = chunk.text.len();
                }
                flight.sent_before = true;
                flights.push_back(flight);
            }
        }
        flights.append(&mut self.flights);
        self.flights = flights;
        again.append(&mut self.queued);
        self.queued = again;
        answered
    }

    /// The client ended: everything is answered with that, also what comes later.
    pub(crate) fn end(&mut self, error: &PublishError) -> Answered {
        self.ended = Some(error.clone());
        let mut answered = Answered::default();
        self.queued.clear();
        for flight in std::mem::take(&mut self.flights) {
            answered.units += flight.units as usize;
            answered
                .wakers
                .extend(self.slots.answer(flight.slot, Err(error.clone())));
        }
        answered
    }
}

impl Chunk {
    /// The message for it: what is not answered, as an array.
    pub(crate) fn message(&self) -> Vec<u8> {
        let frames = self.text.get(self.from..).unwrap_or_default();
        let mut message = Vec::with_capacity(frames.len() + 2);
        message.push(b'[');
        message.extend_from_slice(frames);
        message.push(b']');
        message
    }

    fn is_full(&self) -> bool {
        self.text.len() >= CHUNK_BYTES
    }

    fn separate(&mut self) {
        if !self.text.is_empty() {
            self.text.push(b',');
        }
    }
}

/// Appends a number without going through the formatter.
fn push_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ServerError;
    use crate::id::Id;

    fn push(outbox: &mut Outbox, text: &str, safety: Safety) -> SlotNumber {
        let text = text.as_bytes();
        outbox.push(&Encoded { text, safety }, 1).unwrap()
    }

    fn published(number: u64) -> Reply {
        let id = Id::new("id").unwrap();
        let outcome = Ok(Published {
            id,
            seq: number,
            duplicate: true,
        });
        Reply { number, outcome }
    }

    /// Sends everything that is queued, as one text.
    fn send(outbox: &mut Outbox, sent: &mut VecDeque<Chunk>) -> String {
        let mut text = String::new();
        while let Some(chunk) = outbox.take_queued() {
            text += &String::from_utf8(chunk.message()).unwrap();
            sent.push_back(chunk);
        }
        text
    }

    #[test]
    fn what_is_not_answered_is_sent_again_before_what_is_new() {
        let (mut outbox, mut sent) = (Outbox::default(), VecDeque::new());
        for text in ["{\"a\":1", "{\"b\":1", "{\"c\":1"] {
            push(&mut outbox, text, Safety::MadeId);
        }
        let first = send(&mut outbox, &mut sent);
        assert_eq!(
            first,
            r#"[{"a":1,"corr":"1"},{"b":1,"corr":"2"},{"c":1,"corr":"3"}]"#
        );
        let answered = outbox.answer(&mut sent, [published(1)].into_iter());
        assert_eq!(answered.unwrap().units, 1);
        push(&mut outbox, "{\"d\":1", Safety::MadeId);
        assert_eq!(outbox.rewind(&mut sent).units, 0);
        let second = send(&mut outbox, &mut sent);
        assert_eq!(
            second,
            r#"[{"b":1,"corr":"2"},{"c":1,"corr":"3"}][{"d":1,"corr":"4"}]"#
        );
        let replies = [published(2), published(3), published(4)];
        assert_eq!(
            outbox.answer(&mut sent, replies.into_iter()).unwrap().units,
            3
        );
        assert!(outbox.is_empty() && sent.is_empty());
    }

    #[test]
    fn what_has_no_id_is_not_sent_again() {
        let (mut outbox, mut sent) = (Outbox::default(), VecDeque::new());
        push(&mut outbox, "{\"a\":1", Safety::Once);
        push(&mut outbox, "{\"b\":1", Safety::OwnId);
        push(&mut outbox, "{\"c\":1", Safety::Once);
        send(&mut outbox, &mut sent);
        // This one was never sent, so its outcome is known.
        push(&mut outbox, "{\"d\":1", Safety::Once);
        assert_eq!(outbox.rewind(&mut sent).units, 2);
        let again = send(&mut outbox, &mut sent);
        assert_eq!(again, r#"[{"b":1,"corr":"2"}][{"d":1,"corr":"4"}]"#);
    }

    #[test]
    fn replies_that_are_not_in_their_order_are_noticed() {
        let (mut outbox, mut sent) = (Outbox::default(), VecDeque::new());
        push(&mut outbox, "{\"a\":1", Safety::Once);
        push(&mut outbox, "{\"b\":1", Safety::Once);
        let too_early = outbox.answer(&mut sent, [published(1)].into_iter());
        assert!(too_early.is_err(), "it was not sent yet");
        send(&mut outbox, &mut sent);
        assert!(
            outbox
                .answer(&mut sent, [published(2)].into_iter())
                .is_err()
        );
        assert!(outbox.answer(&mut sent, [published(1)].into_iter()).is_ok());
        assert!(
            outbox
                .answer(&mut sent, [published(1)].into_iter())
                .is_err()
        );
    }

    #[test]
    fn after_the_end_everything_is_refused_with_the_reason() {
        let mut outbox = Outbox::default();
        push(&mut outbox, "{\"a\":1", Safety::Once);
        let error = PublishError::Refused(ServerError {
            code: "over".to_owned(),
            message: "it is over".to_owned(),
            retry_after_ms: None,
        });
        assert_eq!(outbox.end(&error).units, 1);
        assert!(outbox.is_empty() && !outbox.has_queued());
        let text = b"{\"b\":1";
        let safety = Safety::Once;
        let refused = outbox.push(&Encoded { text, safety }, 1);
        assert_eq!(refused.unwrap_err(), error);
    }

    #[test]
    fn a_chunk_that_is_full_is_followed_by_another() {
        let (mut outbox, mut sent) = (Outbox::default(), VecDeque::new());
        let text = format!("{{\"a\":\"{}\"", "x".repeat(CHUNK_BYTES));
        push(&mut outbox, &text, Safety::Once);
        push(&mut outbox, &text, Safety::Once);
        send(&mut outbox, &mut sent);
        assert_eq!(sent.len(), 2);
    }
}
