//! The commit that is under way: its messages, and those who wait for what comes of it.

use crate::message::{
    Head, Kind, Message, OVERHEAD_BYTES, Progress, RULES, RULES_WITH_EXPECTATIONS,
    RULES_WITHOUT_EXPECTATIONS, checksum_of,
};
use crate::queue::{Queue, Reply, Work};
use bytes::Bytes;
use prombus_store::{Batch, Durability};
use std::sync::Arc;
use tokio::time::Instant;

/// A commit under way.
pub(crate) struct Flight {
    kind: Kind,
    now_ms: u64,
    body: Vec<u8>,
    /// The messages that carry it; more than one where it is larger than the log takes.
    messages: Vec<Bytes>,
    /// Which message is to be stored next.
    next: usize,
    /// The number of its first message.
    first_number: u64,
    /// Taken when it is applied.
    batches: Vec<Batch>,
    /// Nobody waits any more where this is empty.
    replies: Vec<Reply>,
    /// How durable it has to be.
    pub(crate) durability: Durability,
    /// When it was begun.
    pub(crate) began: Instant,
    /// Whether a message may have been stored although nobody said so.
    pub(crate) is_uncertain: bool,
    /// How often its next message was sent in vain.
    pub(crate) attempts: u32,
    /// When the next message is to be sent again.
    pub(crate) resend_at: Option<Instant>,
}

/// Who sends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sender {
    pub(crate) boot: u64,
    pub(crate) last_number: u64,
    pub(crate) progress: Progress,
    pub(crate) max_message_bytes: usize,
}

impl Flight {
    /// Puts together what waits, as much as fits into one message, but at least one.
    pub(crate) fn gather(
        queue: &Queue,
        sender: Sender,
        now_ms: u64,
        durability_of: impl Fn(&Batch) -> Durability,
    ) -> Option<Self> {
        let room = sender.max_message_bytes.saturating_sub(OVERHEAD_BYTES);
        let mut body = Vec::new();
        let (mut batches, mut replies) = (Vec::new(), Vec::new());
        let mut durability = Durability::Os;
        let mut kind = Kind::Batches;
        while let Some(item) = queue.pop_if(|work| match work {
            Work::Commit(_, bytes) => body.is_empty() || body.len() + bytes.len() <= room,
            Work::Mark(..) => replies.is_empty(),
        }) {
            replies.push(item.reply);
            match item.work {
                Work::Commit(batch, bytes) => {
                    if durability == Durability::Os {
                        durability = durability_of(&batch);
                    }
                    if body.is_empty() {
                        body = bytes
                    } else {
                        body.extend_from_slice(&bytes)
                    }
                    batches.push(batch);
                }
                Work::Mark(marked, bytes) => {
                    (kind, body) = (marked, bytes);
                    durability = Durability::Fsync;
                    break;
                }
            }
        }
        if replies.is_empty() {
            return None;
        }
        let mut flight = Self {
            kind,
            now_ms,
            body,
            messages: Vec::new(),
            next: 0,
            first_number: 0,
            batches,
            replies,
            durability,
            began: Instant::now(),
            is_uncertain: false,
            attempts: 0,
            resend_at: None,
        };
        flight.number(sender);
        Some(flight)
    }

    /// Makes its messages, with the numbers behind the sender's last one.
    pub(crate) fn number(&mut self, sender: Sender) {
        let room = sender
            .max_message_bytes
            .saturating_sub(OVERHEAD_BYTES)
            .max(1);
        let parts = self.body.len().div_ceil(room).max(1) as u32;
        let rules = match self.kind {
            Kind::Batches => rules_of(&self.batches),
            _ => RULES,
        };
        let message = |part: u32| {
            let from = (part as usize - 1) * room;
            let to = self.body.len().min(from + room);
            let head = Head {
                kind: self.kind,
                rules,
                boot: sender.boot,
                number: sender.last_number + u64::from(part),
                now_ms: self.now_ms,
                part,
                parts,
                progress: sender.progress,
            };
            Message::encode(&head, &self.body[from..to])
        };
        self.first_number = sender.last_number + 1;
        self.messages = (1..=parts).map(message).collect();
        self.next = 0;
    }

    /// The message that is to be stored next.
    pub(crate) fn message(&self) -> Bytes {
        self.messages[self.next].clone()
    }

    /// How many of its messages are applied.
    pub(crate) fn applied_parts(&self) -> usize {
        self.next
    }

    /// The number of the message that is to be stored next.
    pub(crate) fn next_number(&self) -> u64 {
        self.first_number + self.next as u64
    }

    /// Whether `message` is the one that is to be stored next.
    pub(crate) fn is_next(&self, message: &Bytes) -> bool {
        let next = &self.messages[self.next];
        next.len() == message.len() && checksum_of(next) == checksum_of(message)
    }

    /// The message that was to be stored next is applied; `false` where it was the last one.
    pub(crate) fn advance(&mut self) -> bool {
        self.next += 1;
        self.attempts = 0;
        self.resend_at = None;
        self.is_uncertain = false;
        self.next < self.messages.len()
    }

    /// Whether only its last message is missing.
    pub(crate) fn is_last(&self) -> bool {
        self.next + 1 == self.messages.len()
    }

    pub(crate) fn take_batches(&mut self) -> Vec<Batch> {
        std::mem::take(&mut self.batches)
    }

    /// Who waits for it, and how many bytes they take; from then on nobody.
    pub(crate) fn take_replies(&mut self) -> (Vec<Reply>, usize) {
        let replies = std::mem::take(&mut self.replies);
        let bytes = if replies.is_empty() {
            0
        } else {
            self.body.len()
        };
        (replies, bytes)
    }

    pub(crate) fn is_awaited(&self) -> bool {
        !self.replies.is_empty()
    }
}

/// The oldest rules by which batches can be applied.
fn rules_of(batches: &[Batch]) -> u16 {
    if batches.iter().any(Batch::has_expected_positions) {
        RULES_WITH_EXPECTATIONS
    } else {
        RULES_WITHOUT_EXPECTATIONS
    }
}

/// How durable a batch has to be: the strongest of the topics it touches, and keyed records as `fsync`.
pub(crate) fn durability_of(
    batch: &Batch,
    topic_durability: impl Fn(&Arc<str>) -> Option<Durability>,
) -> Durability {
    if !batch.changes().is_empty() {
        return Durability::Fsync;
    }
    let mut last: Option<&Arc<str>> = None;
    for event in batch.events() {
        let topic = event.topic();
        if last.is_some_and(|last| Arc::ptr_eq(last, topic)) {
            continue;
        }
        last = Some(topic);
        if topic_durability(topic) != Some(Durability::Os) {
            return Durability::Fsync;
        }
    }
    Durability::Os
}
