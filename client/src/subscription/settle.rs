//! Answers to deliveries on their way to the server.

use super::shared::Shared;
use crate::error::SettleError;
use crate::id::Id;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Acknowledged events of one topic, to go out in one frame.
#[derive(Debug)]
pub(crate) struct AckRun {
    pub(crate) topic: Arc<str>,
    pub(crate) ids: Vec<Id>,
}

/// What becomes of an event other than a plain acknowledgement.
#[derive(Debug, Clone)]
pub(crate) enum SettleOp {
    Ack,
    Nack {
        reason: String,
        delay_ms: Option<u64>,
    },
    Extend {
        extend_ms: u64,
    },
}

/// An event that is settled, and the connection that it was delivered on.
#[derive(Debug, Clone)]
pub(crate) struct PendingSettle {
    pub(crate) topic: Arc<str>,
    pub(crate) id: Id,
    pub(crate) epoch: u64,
    pub(crate) op: SettleOp,
}

/// The same with somebody who waits for the server's answer.
#[derive(Debug)]
pub(crate) struct Confirm {
    pub(crate) settle: PendingSettle,
    pub(crate) shared: Arc<Shared>,
    pub(crate) reply: oneshot::Sender<Result<(), SettleError>>,
}
