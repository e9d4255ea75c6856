//! One delivered event, and the ways to settle it.

use crate::error::{InvalidPayload, LeaseLost, SettleError, UnknownId};
use crate::group::inbox::{Inbox, LeaseId, Message, SettleLease};
use crate::group::state::Settled;
use crate::group::subscriber::TakenEvent;
use prombus_interface::{EventFields, SettleOp};
use prombus_store::StoredEvent;
use serde::Deserialize;
use std::sync::Arc;
use tokio::sync::oneshot;

/// An event that was leased to this subscription. Unless it is settled, its lease runs out and it comes again.
#[derive(Debug)]
#[must_use = "a delivery that is not settled comes again"]
pub struct Delivery {
    /// The event.
    pub event: StoredEvent,
    /// The circumstances.
    pub context: Context,
    pub(crate) lease: Lease,
}

/// The circumstances of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// The number of this delivery of the event, from 1.
    pub attempt: u32,
    /// After how many failed deliveries it is a dead letter.
    pub max_attempts: u32,
    /// How long the lease was when it was given.
    pub ack_deadline_ms: u64,
    /// The group is a shadow, which is fed what another group gets.
    pub shadow: bool,
}

/// The lease of a delivery, without its event.
#[derive(Debug, Clone)]
pub struct Lease {
    pub(super) inbox: Arc<Inbox>,
    pub(super) name: LeaseId,
}

impl Delivery {
    pub(crate) fn new(taken: TakenEvent) -> Self {
        let name = taken.name();
        Self {
            context: Context {
                attempt: taken.leased.attempt,
                max_attempts: taken.leased.max_attempts,
                ack_deadline_ms: taken.leased.timeout_ms,
                shadow: false,
            },
            event: taken.leased.event,
            lease: Lease {
                inbox: taken.inbox,
                name,
            },
        }
    }

    /// The payload as a value.
    pub fn value<'a, T: Deserialize<'a>>(&'a self) -> Result<T, InvalidPayload> {
        serde_json::from_str(self.event.payload()).map_err(|error| InvalidPayload {
            reason: error.to_string(),
        })
    }

    /// What its publisher said about it: headers, tags and the like.
    pub fn fields(&self) -> EventFields {
        EventFields::of(&self.event)
    }

    /// The event is done.
    pub fn ack(self) {
        self.lease.settle(SettleOp::Ack);
    }

    /// Acknowledges several at once, with one wake-up for each group they came from.
    pub fn ack_all(deliveries: impl IntoIterator<Item = Delivery>) {
        let mut leases: Vec<Lease> = deliveries
            .into_iter()
            .map(|delivery| delivery.lease)
            .collect();
        leases.sort_by_key(|lease| Arc::as_ptr(&lease.inbox));
        for run in leases.chunk_by(|one, other| Arc::ptr_eq(&one.inbox, &other.inbox)) {
            if let Some(first) = run.first() {
                first.inbox.push_acks(run.iter().map(|lease| lease.name));
            }
        }
    }

    /// The event is done, and this says whether that counted.
    pub async fn ack_confirmed(self) -> Result<(), SettleError> {
        self.lease.confirm(SettleOp::Ack, &self.event).await
    }

    /// The event failed; it comes again after a backoff.
    pub fn nack(self, reason: impl Into<String>) {
        self.lease.settle(SettleOp::nack(reason, None));
    }

    /// The event failed; it comes again after `delay_ms`.
    pub fn nack_after(self, reason: impl Into<String>, delay_ms: u64) {
        self.lease.settle(SettleOp::nack(reason, Some(delay_ms)));
    }

    /// The event failed, and this says whether that counted.
    pub async fn nack_confirmed(self, reason: impl Into<String>) -> Result<(), SettleError> {
        let op = SettleOp::nack(reason, None);
        self.lease.confirm(op, &self.event).await
    }

    /// It takes longer: the deadline moves to `max(1000, extend_ms)` from now.
    pub fn extend(&self, extend_ms: u64) {
        self.lease.settle(SettleOp::extend(extend_ms));
    }

    /// It takes longer, and this says whether there was still a lease to extend.
    pub async fn extend_confirmed(&self, extend_ms: u64) -> Result<(), SettleError> {
        let op = SettleOp::extend(extend_ms);
        self.lease.confirm(op, &self.event).await
    }
}

impl Lease {
    /// An owner that is gone settles nothing, and the event is delivered again when there is a new one.
    pub(crate) fn settle(&self, op: SettleOp) {
        self.inbox.push(Message::settle(self.name, op));
    }

    async fn confirm(&self, op: SettleOp, event: &StoredEvent) -> Result<(), SettleError> {
        let (reply, answer) = oneshot::channel();
        let (lease, reply) = (self.name, Some(reply));
        self.inbox
            .push(Message::Settle(SettleLease { lease, op, reply }));
        match answer.await {
            Ok(Ok(Settled::Done | Settled::Already)) => Ok(()),
            Ok(Ok(Settled::LeaseLost)) => Err(LeaseLost { seq: self.name.seq }.into()),
            Ok(Err(error)) => Err(error),
            Ok(Ok(Settled::Unknown)) => {
                Err(UnknownId::new(&event.topic().into(), &event.id()).into())
            }
            Err(_) => Err(SettleError::Gone),
        }
    }
}
