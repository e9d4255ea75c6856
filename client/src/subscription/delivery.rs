//! One delivered event, and the ways to settle it.

use super::event::Event;
use super::shared::Shared;
use crate::error::{BadValue, SettleError};
use prombus_interface::{EventFields, SettleOp};
use serde::Deserialize;
use std::fmt;
use std::sync::Arc;

/// An event that was leased to this subscription. Unless it is settled, its lease runs out and it comes again.
///
/// It may be settled after the connection broke: an acknowledgement is sent with the next connection, for the server takes
/// it if no other member has the event by then. Everything else is left undone, because the event comes again anyway.
#[must_use = "a delivery that is not settled comes again"]
pub struct Delivery {
    /// The event.
    pub event: Event,
    /// The circumstances.
    pub context: Context,
    pub(super) lease: Lease,
}

/// The circumstances of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    /// The number of this delivery of the event, from 1.
    pub attempt: u32,
    /// After how many failed deliveries it is a dead letter, where the server says so.
    pub max_attempts: Option<u32>,
    /// How long the lease was when it was given.
    pub ack_deadline_ms: u64,
    /// The group is a shadow, which is fed what another group gets.
    pub shadow: bool,
}

/// Who has the lease, and on which connection it came.
#[derive(Clone)]
pub(super) struct Lease {
    pub(super) shared: Arc<Shared>,
    pub(super) epoch: u64,
}

impl Delivery {
    pub(super) fn new(event: Event, context: Context, shared: Arc<Shared>, epoch: u64) -> Self {
        let lease = Lease { shared, epoch };
        Self {
            event,
            context,
            lease,
        }
    }

    /// The payload as a value.
    pub fn value<'a, T: Deserialize<'a>>(&'a self) -> Result<T, BadValue> {
        self.event.value()
    }

    /// What its publisher said about it: headers, tags and the like.
    pub fn fields(&self) -> EventFields {
        self.event.fields()
    }

    /// The event is done. Acknowledgements are gathered into few frames.
    pub fn ack(self) {
        self.handle().settle(SettleOp::Ack);
    }

    /// Acknowledges several at once.
    pub fn ack_all(deliveries: impl IntoIterator<Item = Delivery>) {
        let mut deliveries = deliveries.into_iter().peekable();
        while let Some(first) = deliveries.next() {
            let shared = first.lease.shared.clone();
            let is_next = |next: &Delivery| Arc::ptr_eq(&next.lease.shared, &shared);
            let run =
                std::iter::once(first).chain(std::iter::from_fn(|| deliveries.next_if(is_next)));
            shared.ack(run.map(|delivery| (delivery.lease.epoch, delivery.event)));
        }
    }

    /// The event is done, and this says whether that counted.
    pub async fn ack_confirmed(self) -> Result<(), SettleError> {
        self.handle().confirm(SettleOp::Ack).await
    }

    /// The event failed; it comes again after a backoff.
    pub fn nack(self, reason: impl Into<String>) {
        self.handle().settle(SettleOp::nack(reason, None));
    }

    /// The event failed; it comes again after `delay_ms`.
    pub fn nack_after(self, reason: impl Into<String>, delay_ms: u64) {
        self.handle().settle(SettleOp::nack(reason, Some(delay_ms)));
    }

    /// The event failed, and this says whether that counted.
    pub async fn nack_confirmed(self, reason: impl Into<String>) -> Result<(), SettleError> {
        self.handle().confirm(SettleOp::nack(reason, None)).await
    }

    /// It takes longer: the deadline moves to `max(1000, extend_ms)` from now.
    pub fn extend(&self, extend_ms: u64) {
        self.handle().settle(SettleOp::extend(extend_ms));
    }

    /// It takes longer, and this says whether there was still a lease to extend.
    pub async fn extend_confirmed(&self, extend_ms: u64) -> Result<(), SettleError> {
        self.handle().confirm(SettleOp::extend(extend_ms)).await
    }

    /// What is needed to settle it while a handler has the delivery.
    pub(crate) fn handle(&self) -> LeaseHandle {
        LeaseHandle {
            event: self.event.clone(),
            lease: self.lease.clone(),
        }
    }
}

/// Settles a delivery that somebody else has.
pub struct LeaseHandle {
    event: Event,
    lease: Lease,
}

impl LeaseHandle {
    pub(crate) fn settle(&self, op: SettleOp) {
        let Lease { shared, epoch } = &self.lease;
        match op {
            SettleOp::Ack => shared.ack(std::iter::once((*epoch, &self.event))),
            op => shared.settle(&self.event, *epoch, op),
        }
    }

    async fn confirm(&self, op: SettleOp) -> Result<(), SettleError> {
        let Lease { shared, epoch } = &self.lease;
        shared.confirm(&self.event, *epoch, op).await
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delivery")
            .field("event", &self.event)
            .field("context", &self.context)
            .finish_non_exhaustive()
    }
}
