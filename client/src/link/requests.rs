//! Frames other than publishes that an answer is expected for, by the number in their `corr`.

use crate::core::Core;
use crate::error::{AckPublishError, ServerError, SettleError};
use crate::publish::Published;
use crate::subscription::shared::Shared;
use crate::subscription::{AckPublish, AckRun, Confirm};
use prombus_interface::SettleOp;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The frames that are not acknowledged yet.
#[derive(Default)]
pub(super) struct Requests {
    next: u64,
    open: HashMap<u64, Request>,
}

/// A frame that is not acknowledged yet.
pub(super) enum Request {
    Subscribe(u64),
    Unsubscribe(Option<oneshot::Sender<()>>),
    Acks(Arc<Shared>, AckRun),
    Confirm(Confirm),
    AckPublish(AckPublish),
    /// one without a waiter.
    Settle,
}

/// From this many unanswered frames on, no more are sent.
const MAX_OPEN_REQUESTS: usize = 8_192;

/// The prefix of the number.
const PREFIX: &str = "r";

impl Requests {
    /// Remembers a request and gives it its `corr`.
    pub(super) fn add(&mut self, request: Request) -> String {
        self.next += 1;
        self.open.insert(self.next, request);
        format!("{PREFIX}{}", self.next)
    }

    /// The request with this `corr`.
    pub(super) fn take(&mut self, corr: &str) -> Option<Request> {
        let number = corr.strip_prefix(PREFIX)?.parse().ok()?;
        self.open.remove(&number)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether the server owes so many answers that it should not be asked more.
    pub(super) fn is_full(&self) -> bool {
        self.open.len() >= MAX_OPEN_REQUESTS
    }

    /// The connection is gone. Acknowledgements are given back by subscription, confirmed ones wait for the next
    /// connection, and everything else is over.
    pub(super) fn clear(&mut self, core: &Core) -> BTreeMap<u64, Vec<AckRun>> {
        let mut lost: BTreeMap<u64, Vec<AckRun>> = BTreeMap::new();
        let mut open: Vec<_> = self.open.drain().collect();
        open.sort_unstable_by_key(|(number, _)| *number);
        for (_, request) in open {
            match request {
                Request::Acks(shared, run) => lost.entry(shared.number).or_default().push(run),
                Request::Confirm(confirm) if matches!(confirm.settle.op, SettleOp::Ack) => {
                    core.pending_ops().confirm(confirm);
                }
                Request::Confirm(confirm) => reply(confirm, Err(SettleError::ConnectionLost)),
                Request::AckPublish(op) => {
                    reply_ack_publish(op, Err(AckPublishError::UnknownOutcome))
                }
                Request::Unsubscribe(Some(gone)) => drop(gone.send(())),
                Request::Unsubscribe(None) | Request::Subscribe(_) | Request::Settle => {}
            }
        }
        lost
    }
}

/// Notifies the waiter for a confirmation, if they still do.
pub(super) fn reply(confirm: Confirm, result: Result<(), SettleError>) {
    let _ = confirm.reply.send(result);
}

/// Notifies the waiter for a step, if they still do, and gives its room back.
pub(super) fn reply_ack_publish(op: AckPublish, result: Result<Vec<Published>, AckPublishError>) {
    drop(op.room);
    let _ = op.reply.send(result);
}

/// Whether what was refused may be taken later.
pub(super) fn is_retryable(error: &ServerError) -> bool {
    prombus_api::Code::parse(&error.code).is_some_and(prombus_api::Code::is_retryable)
}
