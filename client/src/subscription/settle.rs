//! Settlements of deliveries on their way to the server.

use super::shared::Shared;
use crate::error::SettleError;
use crate::id::Id;
use prombus_interface::SettleOp;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Acknowledged events of one topic, to go out in one frame.
#[derive(Debug)]
pub(crate) struct AckRun {
    pub(crate) topic: Arc<str>,
    pub(crate) ids: Vec<Id>,
}

/// An event that is settled, and the connection that it was delivered on.
#[derive(Debug, Clone)]
pub(crate) struct PendingSettle {
    pub(crate) topic: Arc<str>,
    pub(crate) id: Id,
    pub(crate) epoch: u64,
    pub(crate) op: SettleOp,
}

/// The same with a caller that waits for the server's reply.
#[derive(Debug)]
pub(crate) struct Confirm {
    pub(crate) settle: PendingSettle,
    pub(crate) shared: Arc<Shared>,
    pub(crate) reply: oneshot::Sender<Result<(), SettleError>>,
}
