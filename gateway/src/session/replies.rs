//! The replies of a connection, in the order of its frames. Events are interleaved.

use super::ack_publish::PendingAckPublish;
use super::outbound::Outbound;
use super::own_commit::PendingCommit;
use super::publish_batch::{PendingPublish, write_api_error};
use super::settle_batch::PendingSettle;
use super::subscriptions::Subscriptions;
use crate::api_error::ApiError;
use crate::error_log::ErrorSource;
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
    Error {
        error: Box<ApiError>,
        corr: Option<Box<str>>,
    },
    Publish(Box<PendingPublish>),
    Settle(Box<PendingSettle>),
    AckPublish(Box<PendingAckPublish>),
    OwnCommit(Box<PendingCommit>),
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

    /// Whether reading must pause.
    pub(super) fn is_full(&self) -> bool {
        self.frames >= MAX_WAITING_FRAMES || self.bytes >= MAX_WAITING_BYTES
    }

    /// Writes the replies that are ready, and returns whether there were any. The next one wakes the task.
    pub(super) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        (gateway, source): (&Gateway, &ErrorSource<'_>),
        subscriptions: &mut Subscriptions,
        outbound: &mut Outbound,
    ) -> bool {
        let mut has_written = false;
        while let Some(first) = self.waiting.front_mut() {
            let ready = match first {
                Reply::Publish(pending) => {
                    pending.poll_replies(context, (gateway, source), outbound)
                }
                Reply::Settle(pending) => {
                    pending.poll_replies(context, gateway, subscriptions, outbound)
                }
                Reply::AckPublish(pending) => {
                    pending.poll_replies(context, (gateway, source), subscriptions, outbound)
                }
                Reply::OwnCommit(pending) => {
                    pending.poll_reply(context, (gateway, source), outbound)
                }
                Reply::Ok { corr } => {
                    outbound.frame(|out| write_ok(out, corr.as_deref()));
                    Poll::Ready(())
                }
                Reply::Error { error, corr } => {
                    write_api_error(outbound, error, corr.as_deref());
                    Poll::Ready(())
                }
            };
            if ready.is_pending() {
                break;
            }
            if let Some(reply) = self.waiting.pop_front() {
                self.frames -= reply.frames();
                self.bytes -= reply.bytes();
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
            Self::Publish(pending) => pending.frames(),
            Self::Settle(pending) => pending.frames(),
            Self::AckPublish(pending) => pending.frames(),
            Self::Ok { .. } | Self::Error { .. } | Self::OwnCommit(_) => 1,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Publish(pending) => pending.bytes(),
            Self::AckPublish(pending) => pending.bytes(),
            Self::OwnCommit(pending) => pending.bytes(),
            Self::Ok { .. } | Self::Error { .. } | Self::Settle(_) => 0,
        }
    }
}
