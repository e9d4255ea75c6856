//! A bus as the endpoint of typed topics; see [`prombus_consume::Topic`].

use crate::bus::Bus;
use crate::error::{InvalidField, SubscribeError};
use crate::publish::{PublishFuture, PublishOptions};
use crate::subscription::{SubscribeOptions, Subscription};
use prombus_consume::{Endpoint, MANUAL_ACK_REASON};
use serde::Serialize;

/// A stream of deliveries with their values.
pub type TypedSubscription<T> = prombus_consume::TypedSubscription<T, Subscription>;

impl Endpoint for Bus {
    type PublishOptions<'a> = PublishOptions<'a>;
    type PublishFuture = PublishFuture;
    type SubscribeOptions = SubscribeOptions;
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

    fn concurrency_and_manual_ack(options: &SubscribeOptions) -> (usize, bool) {
        (options.concurrency, options.manual_ack)
    }

    fn refuse_manual_ack() -> SubscribeError {
        InvalidField::new("manual_ack", MANUAL_ACK_REASON).into()
    }
}
