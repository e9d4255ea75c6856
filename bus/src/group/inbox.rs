//! The one input of a group's owner: messages of members and commands of the bus, in the order in which they were sent.
//! Sending never waits, and the owner takes all of them at once, so a thousand acknowledgements cost one wake-up.

use super::command::Command;
use super::state::{MemberId, Settled};
use crate::error::{AckPublishError, AlreadySettled, SettleError};
use crate::memory::ByteBudget;
use crate::publish::{AtomicBatch, Published};
use prombus_interface::SettleOp;
use prombus_store::LockExt;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};

/// Beyond this many waiting messages, extensions are dropped. Everything else is bounded by its senders: a settlement
/// comes at most once per lease, and a command has a caller that waits for its reply.
const MAX_MESSAGES_WITH_EXTENSIONS: usize = 1 << 20;

/// A lease, named by the member that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaseId {
    pub(crate) member: MemberId,
    pub(crate) seq: u64,
    pub(crate) number: u64,
}

/// What the owner is sent.
pub(crate) enum Message {
    /// Settles the event of a lease, or extends the lease.
    Settle(SettleLease),
    /// Events are done and others are published, in one transaction.
    AckPublish(Box<AckPublishRequest>),
    /// The member did not look at these (position, lease number) and gives them back.
    Release(MemberId, Vec<(u64, u64)>),
    /// The member wants other leases from now on.
    SetAckTimeout(MemberId, Option<u64>),
    /// The member is done with partitions that were revoked.
    ConfirmRevoked(MemberId, Vec<u32>),
    /// The member is gone.
    Leave(MemberId),
    /// A request of the bus. Boxed, so that a queue of acknowledgements stays small.
    Command(Box<Command>),
}

/// An event to settle by its lease.
pub(crate) struct SettleLease {
    pub(crate) lease: LeaseId,
    pub(crate) op: SettleOp,
    /// Where the result goes, if the member waits for it.
    pub(crate) reply: Option<SettleReply>,
}

/// Where the result of a settlement goes.
pub(crate) type SettleReply = oneshot::Sender<Result<Settled, SettleError>>;

/// Events of one member that are acknowledged in one transaction with publishing others.
pub(crate) struct AckPublishRequest {
    pub(crate) leases: Vec<LeaseId>,
    pub(crate) events: AtomicBatch,
    pub(crate) reply: AckPublishReply,
}

/// Where the published events are stored, or why nothing of the transaction happened.
pub(crate) type AckPublishResult = Result<Vec<Published>, AckPublishError>;

/// Where the result of a transaction goes.
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
    waiting: VecDeque<Message>,
    /// How many of them are commands.
    commands: usize,
    reader: Reader,
    /// The owner takes no more commands: it is not, or no longer, in the registry.
    is_delisted: bool,
}

/// Whether the owner reads the messages of members.
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

    /// Sends a message of a member; `false` where the inbox is closed to them.
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
        if messages.waiting.len() < MAX_MESSAGES_WITH_EXTENSIONS || !message.is_plain_extension() {
            messages.waiting.push_back(message);
        }
        drop(messages);
        if was_empty {
            self.arrived.notify_one();
        }
        true
    }

    /// Sends an acknowledgement for each lease, with one wake-up.
    pub(crate) fn push_acks(&self, leases: impl Iterator<Item = LeaseId>) -> bool {
        let mut messages = self.lock();
        if messages.reader != Reader::Reading {
            return false;
        }
        messages.waiting.extend(leases.map(Message::ack));
        drop(messages);
        self.arrived.notify_one();
        true
    }

    /// Sends a command, which is given back where the owner takes none any more.
    pub(crate) fn push_command(&self, command: Box<Command>) -> Result<(), Box<Command>> {
        let mut messages = self.lock();
        if messages.is_delisted {
            return Err(command);
        }
        let was_empty = messages.waiting.is_empty();
        messages.commands += 1;
        messages.waiting.push_back(Message::Command(command));
        drop(messages);
        if was_empty {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Wakes the owner without a message.
    pub(crate) fn wake(&self) {
        self.arrived.notify_one();
    }

    /// Moves all messages behind those that were taken before.
    pub(crate) fn take(&self, taken: &mut VecDeque<Message>) {
        let mut messages = self.lock();
        messages.commands = 0;
        if taken.is_empty() {
            std::mem::swap(&mut messages.waiting, taken);
        } else {
            taken.append(&mut messages.waiting);
        }
    }

    /// Takes no more messages of members, and drops those that wait: their replies resolve to `Gone`. Commands wait on.
    pub(crate) fn close(&self) {
        let mut messages = self.lock();
        messages.reader = Reader::Gone;
        messages.waiting.retain(Message::is_command);
    }

    /// Takes no more messages of members, because everything is settled that they could be about.
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

    /// Takes nothing any more, and drops what waits: callers of commands send them to the next owner.
    pub(crate) fn end(&self) {
        let mut messages = self.lock();
        if messages.reader == Reader::Reading {
            messages.reader = Reader::Gone;
        }
        messages.is_delisted = true;
        messages.commands = 0;
        let waiting = std::mem::take(&mut messages.waiting);
        drop(messages);
        drop(waiting);
    }

    /// Takes no more commands; those that wait are still the owner's.
    pub(crate) fn delist(&self) {
        self.lock().is_delisted = true;
        self.arrived.notify_one();
    }

    /// Takes no more commands, unless one waits; `false` in that case.
    pub(crate) fn delist_if_idle(&self) -> bool {
        let mut messages = self.lock();
        let is_idle = messages.commands == 0;
        messages.is_delisted |= is_idle;
        is_idle
    }

    pub(crate) fn is_delisted(&self) -> bool {
        self.lock().is_delisted
    }

    pub(crate) fn has_commands(&self) -> bool {
        self.lock().commands > 0
    }

    /// Whether members cannot send any more.
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
    /// An acknowledgement that its member does not wait for.
    pub(crate) fn ack(lease: LeaseId) -> Self {
        Self::settle(lease, SettleOp::Ack)
    }

    /// A settlement that its member does not wait for.
    pub(crate) fn settle(lease: LeaseId, op: SettleOp) -> Self {
        let reply = None;
        Self::Settle(SettleLease { lease, op, reply })
    }

    pub(crate) fn is_command(&self) -> bool {
        matches!(self, Self::Command(_))
    }

    fn is_plain_extension(&self) -> bool {
        matches!(self, Self::Settle(settle) if settle.reply.is_none() && settle.op.is_extension())
    }

    /// Replies as an owner does that finds the event settled.
    fn reply_settled(self) {
        // The caller may have gone away.
        match self {
            Self::Settle(SettleLease { op, reply, .. }) => {
                let settled = if op.is_extension() {
                    Settled::Unknown
                } else {
                    Settled::Already
                };
                if let Some(reply) = reply {
                    let _ = reply.send(Ok(settled));
                }
            }
            Self::AckPublish(request) => {
                let seq = request.leases.first().map_or(0, |lease| lease.seq);
                let _ = request.reply.send(Err(AlreadySettled { seq }.into()));
            }
            Self::Release(..)
            | Self::ConfirmRevoked(..)
            | Self::SetAckTimeout(..)
            | Self::Leave(_)
            | Self::Command(_) => {}
        }
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Message")
    }
}
