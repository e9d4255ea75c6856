//! The messages of members to the owner of their group. Sending never waits, and the owner takes all
//! of them at once, so a thousand acknowledgements cost one wake-up.

use super::state::{MemberId, Retry, Settled};
use crate::error::{AckPublishError, AlreadySettled, SettleError};
use crate::memory::ByteBudget;
use crate::publish::{AtomicBatch, Published};
use prombus_store::LockExt;
use std::sync::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};

/// Beyond this many waiting messages, extensions are dropped: everything else comes at most once per lease and is
/// bounded by what is in flight.
const MAX_MESSAGES_WITH_EXTENSIONS: usize = 1 << 20;

/// A lease, named by whoever holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaseId {
    pub(crate) member: MemberId,
    pub(crate) seq: u64,
    pub(crate) number: u64,
}

/// What a member tells the owner.
#[derive(Debug)]
pub(crate) enum Message {
    /// The event is done.
    Ack(LeaseId),
    /// The event failed.
    Nack(LeaseId, Box<Nack>),
    /// It takes longer.
    Extend(LeaseId, u64),
    /// As one of the above, and the member wants to know what came of it.
    Confirm(Box<Message>, oneshot::Sender<Result<Settled, SettleError>>),
    /// Events are done and others are published, in one step.
    AckPublish(Box<AckPublishRequest>),
    /// The member did not look at these (position, lease number) and gives them back.
    Release(MemberId, Vec<(u64, u64)>),
    /// The member wants other leases from now on.
    SetAckTimeout(MemberId, Option<u64>),
    /// The member is done with partitions that were revoked.
    ConfirmRevoked(MemberId, Vec<u32>),
    /// The member is gone.
    Leave(MemberId),
}

/// Why an event failed and when it is to come back.
#[derive(Debug)]
pub(crate) struct Nack {
    pub(crate) reason: String,
    pub(crate) retry: Retry,
}

/// Events of one member that are acknowledged in one step with publishing others.
#[derive(Debug)]
pub(crate) struct AckPublishRequest {
    pub(crate) leases: Vec<LeaseId>,
    pub(crate) events: AtomicBatch,
    pub(crate) reply: AckPublishReply,
}

/// Where the published events lie, or why nothing of the step happened.
pub(crate) type AckPublishResult = Result<Vec<Published>, AckPublishError>;

/// Where the answer to a step goes.
pub(crate) type AckPublishReply = oneshot::Sender<AckPublishResult>;

/// The owner's inbox.
#[derive(Debug)]
pub(crate) struct Inbox {
    messages: Mutex<Messages>,
    /// Notified by the first message.
    arrived: Notify,
    /// Bytes of the group's events that wait in mailboxes, or are being read for them.
    pub(crate) bytes: ByteBudget,
}

#[derive(Debug, Default)]
struct Messages {
    waiting: Vec<Message>,
    reader: Reader,
}

/// Whether the owner reads.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Reader {
    #[default]
    Reading,
    /// It does not any more.
    Gone,
    /// It ended after everything that it had given out was settled, with the cursor here.
    Dormant {
        cursor: u64,
        incarnation: Option<u64>,
    },
}

impl Inbox {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            messages: Mutex::default(),
            arrived: Notify::new(),
            bytes: ByteBudget::new(limit_bytes),
        }
    }

    /// Sends a message; `false` where the inbox is closed.
    pub(crate) fn push(&self, message: Message) -> bool {
        let mut messages = self.lock();
        match messages.reader {
            Reader::Reading => {}
            Reader::Gone => return false,
            Reader::Dormant { .. } => {
                drop(messages);
                message.reply_settled();
                return false;
            }
        }
        let was_empty = messages.waiting.is_empty();
        if messages.waiting.len() < MAX_MESSAGES_WITH_EXTENSIONS
            || !matches!(message, Message::Extend(..))
        {
            messages.waiting.push(message);
        }
        drop(messages);
        if was_empty {
            self.arrived.notify_one();
        }
        true
    }

    /// Leaves an acknowledgement for each lease, with one wake-up.
    pub(crate) fn push_acks(&self, leases: impl Iterator<Item = LeaseId>) -> bool {
        let mut messages = self.lock();
        if messages.reader != Reader::Reading {
            return false;
        }
        messages.waiting.extend(leases.map(Message::Ack));
        drop(messages);
        self.arrived.notify_one();
        true
    }

    /// Wakes the owner without a message.
    pub(crate) fn wake(&self) {
        self.arrived.notify_one();
    }

    /// Takes all messages in exchange for an empty list.
    pub(crate) fn swap(&self, empty: &mut Vec<Message>) {
        std::mem::swap(&mut self.lock().waiting, empty);
    }

    /// Takes no more messages, and drops those that wait: their replies resolve to `Gone`.
    pub(crate) fn close(&self) {
        let mut messages = self.lock();
        messages.reader = Reader::Gone;
        messages.waiting.clear();
    }

    /// Takes no more messages, because everything is settled that they could be about.
    pub(crate) fn sleep(&self, cursor: u64, incarnation: Option<u64>) {
        let mut messages = self.lock();
        messages.reader = Reader::Dormant {
            cursor,
            incarnation,
        };
        let waiting = std::mem::take(&mut messages.waiting);
        drop(messages);
        waiting.into_iter().for_each(Message::reply_settled);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().reader != Reader::Reading
    }

    /// The incarnation of the topic and the cursor of a group whose owner ended because there was nothing to do.
    pub(crate) fn dormant_at(&self) -> Option<(u64, u64)> {
        match self.lock().reader {
            Reader::Dormant {
                cursor,
                incarnation,
            } => Some((incarnation?, cursor)),
            Reader::Reading | Reader::Gone => None,
        }
    }

    /// Waits for a message or a wake-up.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Messages> {
        self.messages.guard()
    }
}

impl Message {
    /// Replies as an owner does that finds the event settled.
    fn reply_settled(self) {
        // The caller may have gone away.
        match self {
            Self::Confirm(message, reply) => {
                let settled = match *message {
                    Self::Extend(..) => Settled::Unknown,
                    _ => Settled::Already,
                };
                let _ = reply.send(Ok(settled));
            }
            Self::AckPublish(request) => {
                let seq = request.leases.first().map_or(0, |lease| lease.seq);
                let _ = request.reply.send(Err(AlreadySettled { seq }.into()));
            }
            Self::Ack(_)
            | Self::Nack(..)
            | Self::Extend(..)
            | Self::Release(..)
            | Self::ConfirmRevoked(..)
            | Self::SetAckTimeout(..)
            | Self::Leave(_) => {}
        }
    }
}
