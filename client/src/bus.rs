//! A server's bus as what [`prombus_interface`] knows of one: where typed topics publish and subscribe, and where the loop
//! of a [`prombus_interface::Consumer`] takes its deliveries and settles them.

use crate::client::Client;
use crate::error::{BadValue, SubscribeError};
use crate::publish::{PublishExtras, PublishFuture, PublishOptions};
use crate::subscription::{
    Delivery, Ended, LeaseHandle, SubscribeOptions, Subscription, SubscriptionControl,
};
use prombus_interface::{Delivered, Endpoint, FieldFilter, SettleOp, Subscribed};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;

/// A handler at work. Dropping it stops it at once; what it was doing comes again.
pub type Consumer = prombus_interface::Consumer<Subscription>;

/// A handler at work whose effects are not repeated. Dropping it stops it at once; what it was doing comes again.
pub type ExactlyOnce = prombus_interface::ExactlyOnce<Subscription>;

/// A stream of deliveries with their values.
pub type TypedSubscription<T> = prombus_interface::TypedSubscription<T, Subscription>;

impl Endpoint for Client {
    type PublishExtras<'a> = PublishExtras<'a>;
    type PublishFuture = PublishFuture;
    type Filter = FieldFilter;
    type SubscribeExtras = ();
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
        Self::unsubscribe(self).await;
    }
}

impl Delivered for Delivery {
    type Lease = LeaseHandle;
    type ValueError = BadValue;

    fn lease(&self) -> LeaseHandle {
        self.handle()
    }

    fn lease_ms(&self) -> u64 {
        self.context.ack_deadline_ms
    }

    fn topic(&self) -> &str {
        self.event.topic()
    }

    fn id(&self) -> Cow<'_, str> {
        Cow::Borrowed(self.event.id())
    }

    fn value<T: DeserializeOwned>(&self) -> Result<T, BadValue> {
        Self::value(self)
    }
}

impl prombus_interface::Lease for LeaseHandle {
    fn settle(&self, op: SettleOp) {
        Self::settle(self, op);
    }
}
