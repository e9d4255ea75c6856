//! A bus in process as what [`prombus_interface`] knows of one: where typed topics publish and subscribe, and where the
//! loop of a [`prombus_interface::Consumer`] takes its deliveries and settles them.

use crate::bus::Bus;
use crate::error::{InvalidPayload, SubscribeError};
use crate::filter::Filter;
use crate::group::Ended;
use crate::publish::{PublishFuture, PublishOptions};
use crate::subscription::{
    Delivery, Lease, SubscribeExtras, SubscribeOptions, Subscription, SubscriptionControl,
};
use prombus_interface::{Delivered, Endpoint, SettleOp, Subscribed};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;

/// A handler at work. Dropping it stops it at once; what it was doing comes again.
pub type Consumer = prombus_interface::Consumer<Subscription>;

/// A handler at work whose effects are not repeated. Dropping it stops it at once; what it was doing comes again.
pub type ExactlyOnce = prombus_interface::ExactlyOnce<Subscription>;

/// A stream of deliveries with their values.
pub type TypedSubscription<T> = prombus_interface::TypedSubscription<T, Subscription>;

impl Endpoint for Bus {
    type PublishExtras<'a> = ();
    type PublishFuture = PublishFuture;
    type Filter = Filter;
    type SubscribeExtras = SubscribeExtras;
    type Subscription = Subscription;
    type SubscribeError = SubscribeError;

    fn publish<T: Serialize + ?Sized>(
        &self,
        topic: &str,
        value: &T,
        options: &PublishOptions<'_>,
    ) -> PublishFuture {
        Self::publish(self, topic, value, options)
    }

    async fn subscribe(
        &self,
        topic: &str,
        group: &str,
        options: SubscribeOptions,
    ) -> Result<Subscription, SubscribeError> {
        Self::subscribe(self, topic, group, options).await
    }
}

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

impl prombus_interface::Lease for Lease {
    fn settle(&self, op: SettleOp) {
        Self::settle(self, op);
    }
}
