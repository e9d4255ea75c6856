//! What members send to the owner of their group. A message is put in place without waiting, and the owner takes all
//! of them at once, so a thousand acknowledgements cost one wake-up.

use super::state::{MemberId, Retry, Settled};
use crate::error::{SettleError, StepError};
use crate::memory::ByteBudget;
use crate::publish::{Published, WholeBatch};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// Beyond this many waiting messages, extensions are dropped: everything else comes at most once per lease and is
/// bounded by what is in flight.
const MAX_BEFORE_EXTENSIONS: usize = 1 << 20;

/// A lease, named by whoever holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaseName {
    pub(crate) member: MemberId,
    pub(crate) seq: u64,
    pub(crate) number: u64,
}

/// What a member tells the owner.
#[derive(Debug)]
pub(crate) enum Message {
    /// The event is done.
    Ack(LeaseName),
    /// The event failed.
    Nack(LeaseName, Box<Refusal>),
    /// It takes longer.
    Extend(LeaseName, u64),
    /// As one of the above, and the member wants to know what came of it.
    Confirm(Box<Message>, oneshot::Sender<Result<Settled, SettleError>>),
    /// Events are done and others are published, in one step.
    Step(Box<StepRequest>),
    /// The member did not look at these (position, lease number) and gives them back.
    GiveBack(MemberId, Vec<(u64, u64)>),
    /// The member wants other leases from now on.
    SetAckTimeout(MemberId, Option<u64>),
    /// The member is gone.
    Leave(MemberId),
}

/// Why an event failed and when it is to come back.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    pub(crate) retry: Retry,
}

/// Events of one member that are acknowledged in one step with publishing others.
#[derive(Debug)]
pub(crate) struct StepRequest {
    pub(crate) leases: Vec<LeaseName>,
    pub(crate) events: WholeBatch,
    pub(crate) reply: StepReply,
}

/// Where the published events lie, or why nothing of the step happened.
pub(crate) type StepResult = Result<Vec<Published>, StepError>;

/// Where the answer to a step goes.
pub(crate) type StepReply = oneshot::Sender<StepResult>;

/// The owner's inbox.
#[derive(Debug)]
pub(crate) struct Inbox {
    messages: Mutex<Messages>,
    /// Told when the first message comes in.
    arrived: Notify,
    /// Bytes of the group's events that wait in mailboxes, or are being read for them.
    pub(crate) bytes: ByteBudget,
}

#[derive(Debug, Default)]
struct Messages {
    waiting: Vec<Message>,
    /// Nobody reads any more.
    closed: bool,
}

impl Inbox {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            messages: Mutex::default(),
            arrived: Notify::new(),
            bytes: ByteBudget::new(limit_bytes),
        }
    }

    /// Leaves a message; `false` where nobody reads any more.
    pub(crate) fn push(&self, message: Message) -> bool {
        let mut messages = self.lock();
        if messages.closed {
            return false;
        }
        let was_empty = messages.waiting.is_empty();
        if messages.waiting.len() < MAX_BEFORE_EXTENSIONS || !matches!(message, Message::Extend(..))
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
    pub(crate) fn push_acks(&self, leases: impl Iterator<Item = LeaseName>) -> bool {
        let mut messages = self.lock();
        if messages.closed {
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

    /// Takes no more messages, and lets go of those that wait: their senders see that nobody reads.
    pub(crate) fn close(&self) {
        let mut messages = self.lock();
        messages.closed = true;
        messages.waiting.clear();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Waits for a message or a wake-up.
    pub(crate) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
