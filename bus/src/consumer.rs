//! Handlers on a bus in process: how the loop of [`prombus_consume::Consumer`] takes and settles its deliveries.

use crate::error::InvalidPayload;
use crate::group::Ended;
use crate::subscription::{Delivery, Lease, Subscription, SubscriptionControl};
use prombus_consume::{Delivered, SettleOp, Subscribed};
use serde::de::DeserializeOwned;
use std::borrow::Cow;

/// A handler at work. Dropping it stops it at once; what it was doing comes again.
pub type Consumer = prombus_consume::Consumer<Subscription>;

impl Subscribed for Subscription {
    type Delivery = Delivery;
    type Control = SubscriptionControl;
    type Ended = Ended;

    async fn next(&self) -> Option<Delivery> {
        Self::next(self).await
    }

    fn control(&self) -> SubscriptionControl {
        Self::control(self)
    }

    fn ended(&self) -> Option<Ended> {
        Self::ended(self)
    }

    async fn unsubscribe(self) {
        // Letting go of it frees its leases.
    }
}

impl Delivered for Delivery {
    type Lease = Lease;
    type ValueError = InvalidPayload;

    fn lease(&self) -> Lease {
        self.lease.clone()
    }

    fn lease_ms(&self) -> u64 {
        self.context.ack_deadline_ms
    }

    fn topic(&self) -> &str {
        self.event.topic()
    }

    fn id(&self) -> Cow<'_, str> {
        self.event.id()
    }

    fn value<T: DeserializeOwned>(&self) -> Result<T, InvalidPayload> {
        Self::value(self)
    }
}

impl prombus_consume::Lease for Lease {
    fn settle(&self, op: SettleOp) {
        Self::settle(self, op);
    }
}
