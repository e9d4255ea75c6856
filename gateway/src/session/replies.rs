//! What a client is still to be told, in the order of its frames. Events come in between, replies never overtake each
//! other.

use super::outbound::Outbound;
use super::publishing::{Publishing, write_denied};
use super::settling::Settling;
use super::stepping::Stepping;
use super::subscriptions::Subscriptions;
use crate::denied::Denied;
use crate::gateway::Gateway;
use prombus_api::frames::write_ok;
use std::collections::VecDeque;
use std::task::{Context, Poll};

/// The most frames that may wait for their replies. Beyond it nothing more is read from the socket.
const MAX_WAITING_FRAMES: usize = 16_384;
/// The most bytes of payloads that may be on their way to the store. Beyond it nothing more is read.
const MAX_WAITING_BYTES: usize = 8 << 20;

/// The replies of one connection.
#[derive(Default)]
pub(super) struct Replies {
    waiting: VecDeque<Reply>,
    frames: usize,
    bytes: usize,
}

/// What a reply is, or what it waits for.
pub(super) enum Reply {
    Ok {
        corr: Option<Box<str>>,
    },
    Denied {
        why: Box<Denied>,
        corr: Option<Box<str>>,
    },
    Publishing(Box<Publishing>),
    Settling(Box<Settling>),
    Stepping(Box<Stepping>),
}

impl Replies {
    pub(super) fn push(&mut self, reply: Reply) {
        self.frames += reply.frames();
        self.bytes += reply.bytes();
        self.waiting.push_back(reply);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether the client has to wait before it may say more.
    pub(super) fn is_full(&self) -> bool {
        self.frames >= MAX_WAITING_FRAMES || self.bytes >= MAX_WAITING_BYTES
    }

    /// Writes the replies that are known, and says whether there were any. The next one wakes the task.
    pub(super) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        gateway: &Gateway,
        subscriptions: &mut Subscriptions,
        outbound: &mut Outbound,
    ) -> bool {
        let mut has_written = false;
        while let Some(first) = self.waiting.front_mut() {
            let ready = match first {
                Reply::Publishing(publishing) => {
                    publishing.poll_replies(context, gateway, outbound)
                }
                Reply::Settling(settling) => settling.poll(context),
                Reply::Stepping(stepping) => stepping.poll(context),
                Reply::Ok { .. } | Reply::Denied { .. } => Poll::Ready(()),
            };
            if ready.is_pending() {
                break;
            }
            if let Some(reply) = self.waiting.pop_front() {
                self.frames -= reply.frames();
                self.bytes -= reply.bytes();
                reply.write(gateway, subscriptions, outbound);
            }
            has_written = true;
        }
        if self.waiting.is_empty() && self.waiting.capacity() > KEPT_REPLIES {
            self.waiting = VecDeque::new();
        }
        has_written
    }
}

/// The most room that is kept for replies when none wait.
const KEPT_REPLIES: usize = 64;

impl Reply {
    fn frames(&self) -> usize {
        match self {
            Self::Publishing(publishing) => publishing.frames(),
            Self::Settling(settling) => settling.frames(),
            Self::Stepping(stepping) => stepping.frames(),
            Self::Ok { .. } | Self::Denied { .. } => 1,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Publishing(publishing) => publishing.bytes(),
            Self::Stepping(stepping) => stepping.bytes(),
            Self::Ok { .. } | Self::Denied { .. } | Self::Settling(_) => 0,
        }
    }

    fn write(self, gateway: &Gateway, subscriptions: &mut Subscriptions, outbound: &mut Outbound) {
        match self {
            Self::Ok { corr } => outbound.frame(|out| write_ok(out, corr.as_deref())),
            Self::Denied { why, corr } => write_denied(outbound, &why, corr.as_deref()),
            Self::Settling(settling) => {
                settling.reply(subscriptions, outbound, gateway.now_ms());
            }
            Self::Stepping(stepping) => stepping.reply(gateway, subscriptions, outbound),
            // It wrote its replies as it learned of them.
            Self::Publishing(_) => {}
        }
    }
}
