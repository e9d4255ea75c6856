//! The commit that is under way: its messages, and those who wait for what comes of it.

use crate::message::{
    Head, Kind, Message, OVERHEAD_BYTES, Progress, RULES, RULES_WITH_EXPECTATIONS,
    RULES_WITHOUT_EXPECTATIONS, checksum_of,
};
use crate::queue::{Outcome, Queue, Waiter, Work};
use crate::shared_log::AppendError;
use bytes::Bytes;
use prombus_store::{Answer, Batch, CommitError, Durability, Receipt};
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
    /// Who waits for each batch. Nobody waits any more where this is empty.
    waiters: Vec<Vec<Waiter>>,
    /// What it takes in the queue.
    queued_bytes: usize,
    /// The append of its next message.
    pub(crate) append: Option<Answer<u64, AppendError>>,
    /// When that was sent.
    pub(crate) sent_at: Instant,
    /// Where its next message is, as the log has said.
    pub(crate) stored_at: Option<u64>,
    /// Why the log has not stored its next message, where it has said so.
    pub(crate) rejected: Option<Arc<str>>,
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
    /// Puts together what waits, as much as fits into one message, but at least one. Where others are under way, only
    /// what needs one message and no order beyond its number.
    pub(crate) fn gather(
        queue: &Queue,
        sender: Sender,
        now_ms: u64,
        is_first: bool,
        durability_of: impl Fn(&Batch) -> Durability,
    ) -> Option<Self> {
        let room = sender.max_message_bytes.saturating_sub(OVERHEAD_BYTES);
        let (mut batches, mut waiters) = (Vec::new(), Vec::new());
        let mut marked = None;
        let mut queued_bytes = 0;
        while let Some(item) = queue.pop_if(|item| match item.work {
            _ if queued_bytes == 0 && is_first => true,
            Work::Commit(_) => queued_bytes + item.bytes <= room,
            Work::Mark(..) => false,
        }) {
            queued_bytes += item.bytes;
            waiters.push(item.waiters);
            match item.work {
                Work::Commit(batch) => batches.push(batch),
                Work::Mark(kind, body) => {
                    marked = Some((kind, body));
                    break;
                }
            }
        }
        if waiters.is_empty() {
            return None;
        }
        let (kind, body, durability) = match marked {
            Some((kind, body)) => (kind, body, Durability::Fsync),
            None => {
                let is_os = |batch: &Batch| durability_of(batch) == Durability::Os;
                let durability = if batches.iter().all(is_os) {
                    Durability::Os
                } else {
                    Durability::Fsync
                };
                let mut body = Vec::with_capacity(queued_bytes);
                for batch in &batches {
                    batch.encode(&mut body);
                }
                (Kind::Batches, body, durability)
            }
        };
        let began = Instant::now();
        let mut flight = Self {
            kind,
            now_ms,
            body,
            messages: Vec::new(),
            next: 0,
            first_number: 0,
            batches,
            waiters,
            queued_bytes,
            append: None,
            sent_at: began,
            stored_at: None,
            rejected: None,
            durability,
            began,
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
        self.append = None;
        self.stored_at = None;
        self.rejected = None;
    }

    /// The number behind its last message.
    pub(crate) fn end_number(&self) -> u64 {
        self.first_number + self.messages.len() as u64
    }

    /// Whether others can be under way behind it. Behind parts none is, because a snapshot can void those that are stored,
    /// so that they need other numbers; nor behind a mark, which is rare.
    pub(crate) fn lets_others_begin(&self) -> bool {
        self.kind == Kind::Batches && self.messages.len() == 1
    }

    /// Bytes of what it commits.
    pub(crate) fn bytes(&self) -> usize {
        self.body.len()
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
        self.append = None;
        self.stored_at = None;
        self.rejected = None;
        self.next < self.messages.len()
    }

    /// Whether only its last message is missing.
    pub(crate) fn is_last(&self) -> bool {
        self.next + 1 == self.messages.len()
    }

    pub(crate) fn take_batches(&mut self) -> Vec<Batch> {
        std::mem::take(&mut self.batches)
    }

    /// Who waits for it with what came of it, and how many bytes they take in the queue; from then on nobody. Marks have
    /// no outcomes of their own.
    pub(crate) fn take_outcomes(
        &mut self,
        outcomes: Vec<Result<Receipt, CommitError>>,
    ) -> (Vec<Outcome>, usize) {
        let waiters = std::mem::take(&mut self.waiters);
        let bytes = std::mem::take(&mut self.queued_bytes);
        let mut outcomes = outcomes.into_iter();
        let mut replies = Vec::with_capacity(waiters.iter().map(Vec::len).sum());
        for waiters in waiters {
            let outcome = outcomes.next().unwrap_or_else(|| Ok(Receipt::default()));
            hand_out(waiters, outcome, &mut replies);
        }
        (replies, bytes)
    }

    /// Everyone who waits for it with this error.
    pub(crate) fn take_failed(&mut self, error: &CommitError) -> (Vec<Outcome>, usize) {
        let failed = self.waiters.iter().map(|_| Err(error.clone()));
        let failed = failed.collect();
        self.take_outcomes(failed)
    }

    pub(crate) fn is_awaited(&self) -> bool {
        !self.waiters.is_empty()
    }
}

/// Gives each of those who wait for a batch what came of its events.
fn hand_out(
    mut waiters: Vec<Waiter>,
    outcome: Result<Receipt, CommitError>,
    replies: &mut Vec<Outcome>,
) {
    match outcome {
        Ok(receipt) if waiters.len() > 1 => {
            // Only batches of nothing but events are joined.
            let mut events = receipt.events.into_iter();
            for waiter in waiters {
                let events = events.by_ref().take(waiter.events).collect();
                let versions = Vec::new();
                replies.push((waiter.reply, Ok(Receipt { events, versions })));
            }
        }
        Ok(receipt) => {
            if let Some(waiter) = waiters.pop() {
                replies.push((waiter.reply, Ok(receipt)));
            }
        }
        Err(error) => {
            let failed = waiters
                .into_iter()
                .map(|waiter| (waiter.reply, Err(error.clone())));
            replies.extend(failed);
        }
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
