//! A client as the endpoint of typed topics; see [`prombus_consume::Topic`].

use crate::client::Client;
use crate::error::SubscribeError;
use crate::publish::{PublishFuture, PublishOptions};
use crate::subscription::{SubscribeOptions, Subscription};
use prombus_consume::{Endpoint, MANUAL_ACK_REASON};
use serde::Serialize;

/// A stream of deliveries with their values.
pub type TypedSubscription<T> = prombus_consume::TypedSubscription<T, Subscription>;

impl Endpoint for Client {
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
        SubscribeError::BadOption {
            name: "manual_ack",
            why: MANUAL_ACK_REASON,
        }
    }
}
