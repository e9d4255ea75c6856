//! Publishes on their way: written into chunks by their publishers, sent by the connection's task, kept until they
//! are acknowledged. Answers come in the order of sending.

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
    /// Where the first frame begins that is not acknowledged.
    from: usize,
}

/// A publish that is not acknowledged yet.
#[derive(Debug, Clone, Copy)]
struct InFlight {
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

/// All publishes that are not acknowledged, and the replies that were not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    next: u64,
    /// Not sent yet.
    queued: VecDeque<Chunk>,
    /// In the order of their numbers: those of sent chunks, then those of queued ones.
    in_flight: VecDeque<InFlight>,
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
pub(crate) struct Completed {
    pub(crate) units: usize,
    pub(crate) wakers: Vec<Waker>,
}

/// A reply came that answers no publish, or not the next one.
#[derive(Debug)]
pub(crate) struct UnexpectedReply;

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
        self.in_flight.push_back(InFlight {
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

    /// Whether everything was acknowledged.
    pub(crate) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// The next chunk to send. Its sender keeps it in `sent` until it is acknowledged.
    pub(crate) fn take_queued(&mut self) -> Option<Chunk> {
        self.queued.pop_front()
    }

    /// Whether the publish that is acknowledged next may be sent again.
    pub(crate) fn next_may_be_sent_again(&self, number: u64) -> bool {
        let publish = self
            .in_flight
            .front()
            .filter(|publish| publish.number == number);
        publish.is_some_and(|publish| publish.safety != Safety::Once)
    }

    /// Puts replies in their places and forgets the chunks that are acknowledged as a whole.
    pub(crate) fn complete(
        &mut self,
        sent: &mut VecDeque<Chunk>,
        replies: impl Iterator<Item = Reply>,
    ) -> Result<Completed, UnexpectedReply> {
        let mut completed = Completed::default();
        for Reply { number, outcome } in replies {
            let publish = self.in_flight.front().copied();
            let (Some(publish), Some(chunk)) = (publish, sent.front_mut()) else {
                return Err(UnexpectedReply);
            };
            if publish.number != number {
                return Err(UnexpectedReply);
            }
            self.in_flight.pop_front();
            chunk.from = publish.end + 1;
            if chunk.last == number
                && let Some(mut chunk) = sent.pop_front()
            {
                chunk.text.clear();
                self.spare = chunk.text;
            }
            completed.units += publish.units as usize;
            let outcome = outcome.map(|mut published| {
                if publish.safety == Safety::GeneratedId && publish.sent_before {
                    published.duplicate = false;
                }
                published
            });
            completed
                .wakers
                .extend(self.slots.complete(publish.slot, outcome));
        }
        Ok(completed)
    }

    /// The connection is gone: what was sent and can be sent again is queued again, before everything else; what
    /// cannot is acknowledged with its unknown outcome.
    pub(crate) fn rewind(&mut self, sent: &mut VecDeque<Chunk>) -> Completed {
        let mut completed = Completed::default();
        let mut again: VecDeque<Chunk> = VecDeque::new();
        let mut in_flight: VecDeque<InFlight> = VecDeque::with_capacity(self.in_flight.len());
        for chunk in sent.drain(..) {
            let mut from = chunk.from;
            while self
                .in_flight
                .front()
                .is_some_and(|publish| publish.number <= chunk.last)
                && let Some(mut publish) = self.in_flight.pop_front()
            {
                let frame = &chunk.text[from..publish.end];
                from = publish.end + 1;
                if publish.safety == Safety::Once {
                    completed.units += publish.units as usize;
                    let unknown = Err(PublishError::UnknownOutcome);
                    completed
                        .wakers
                        .extend(self.slots.complete(publish.slot, unknown));
                    continue;
                }
                if again.back().is_none_or(Chunk::is_full) {
                    again.push_back(Chunk::default());
                }
                if let Some(chunk) = again.back_mut() {
                    chunk.separate();
                    chunk.text.extend_from_slice(frame);
                    chunk.last = publish.number;
                    publish.end = chunk.text.len();
                }
                publish.sent_before = true;
                in_flight.push_back(publish);
            }
        }
        in_flight.append(&mut self.in_flight);
        self.in_flight = in_flight;
        again.append(&mut self.queued);
        self.queued = again;
        completed
    }

    /// The client ended: everything is acknowledged with that, also what comes later.
    pub(crate) fn end(&mut self, error: &PublishError) -> Completed {
        self.ended = Some(error.clone());
        let mut completed = Completed::default();
        self.queued.clear();
        for publish in std::mem::take(&mut self.in_flight) {
            completed.units += publish.units as usize;
            completed
                .wakers
                .extend(self.slots.complete(publish.slot, Err(error.clone())));
        }
        completed
    }
}

impl Chunk {
    /// The message for it: what is not acknowledged, as an array.
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
        let id = Id::from_client("id").unwrap();
        let outcome = Ok(Published {
            id,
            seq: number,
            due: None,
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
            push(&mut outbox, text, Safety::GeneratedId);
        }
        let first = send(&mut outbox, &mut sent);
        assert_eq!(
            first,
            r#"[{"a":1,"corr":"1"},{"b":1,"corr":"2"},{"c":1,"corr":"3"}]"#
        );
        let completed = outbox.complete(&mut sent, [published(1)].into_iter());
        assert_eq!(completed.unwrap().units, 1);
        push(&mut outbox, "{\"d\":1", Safety::GeneratedId);
        assert_eq!(outbox.rewind(&mut sent).units, 0);
        let second = send(&mut outbox, &mut sent);
        assert_eq!(
            second,
            r#"[{"b":1,"corr":"2"},{"c":1,"corr":"3"}][{"d":1,"corr":"4"}]"#
        );
        let replies = [published(2), published(3), published(4)];
        assert_eq!(
            outbox
                .complete(&mut sent, replies.into_iter())
                .unwrap()
                .units,
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
        let too_early = outbox.complete(&mut sent, [published(1)].into_iter());
        assert!(too_early.is_err(), "it was not sent yet");
        send(&mut outbox, &mut sent);
        assert!(
            outbox
                .complete(&mut sent, [published(2)].into_iter())
                .is_err()
        );
        assert!(
            outbox
                .complete(&mut sent, [published(1)].into_iter())
                .is_ok()
        );
        assert!(
            outbox
                .complete(&mut sent, [published(1)].into_iter())
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
            actual: None,
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
