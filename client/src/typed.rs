//! Typed topics: a topic and the type of its payloads, declared once and used to publish and to subscribe.

use crate::client::Client;
use crate::consumer::Consumer;
use crate::error::SubscribeError;
use crate::publish::{PublishFuture, PublishOptions};
use crate::subscription::{Delivery, SubscribeOptions, Subscription, SubscriptionControl};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

/// A topic with the type of its payloads.
///
/// ```
/// # use prombus_client::Topic;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Serialize, Deserialize)]
/// struct Heartbeat {
///     host: String,
///     pid: u32,
/// }
///
/// const BEATS: Topic<Heartbeat> = Topic::new("heartbeat.received");
/// # assert_eq!(BEATS.name(), "heartbeat.received");
/// ```
pub struct Topic<T> {
    name: &'static str,
    payload: PhantomData<fn() -> T>,
}

/// A stream of deliveries with their values.
#[derive(Debug)]
pub struct TypedSubscription<T> {
    subscription: Subscription,
    payload: PhantomData<fn() -> T>,
}

impl<T> Topic<T> {
    /// Declares it. The name is checked when it is used.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            payload: PhantomData,
        }
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl<T: Serialize> Topic<T> {
    /// Publishes a value.
    pub fn publish(
        &self,
        client: &Client,
        value: &T,
        options: &PublishOptions<'_>,
    ) -> PublishFuture {
        client.publish(self.name, value, options)
    }
}

impl<T: DeserializeOwned + Send + 'static> Topic<T> {
    /// Subscribes a group. An event whose payload is no `T` is refused with the reason and never shown.
    pub async fn subscribe(
        &self,
        client: &Client,
        group: &str,
        options: SubscribeOptions,
    ) -> Result<TypedSubscription<T>, SubscribeError> {
        Ok(TypedSubscription {
            subscription: client.subscribe(self.name, group, options).await?,
            payload: PhantomData,
        })
    }

    /// Subscribes a handler of values; see [`Client::subscribe_with`].
    pub async fn subscribe_with<H, F, E>(
        &self,
        client: &Client,
        group: &str,
        options: SubscribeOptions,
        handler: H,
    ) -> Result<Consumer, SubscribeError>
    where
        H: Fn(T, Delivery) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display + 'static,
    {
        let handler = Arc::new(handler);
        let decode_and_handle = move |delivery: Delivery| {
            let handler = handler.clone();
            async move {
                let value = delivery.value::<T>().map_err(|error| error.to_string())?;
                handler(value, delivery)
                    .await
                    .map_err(|error| error.to_string())
            }
        };
        client
            .subscribe_with(self.name, group, options, decode_and_handle)
            .await
    }
}

impl<T: DeserializeOwned> TypedSubscription<T> {
    /// The next value with its delivery; `None` when no more will come.
    pub async fn next(&self) -> Option<(T, Delivery)> {
        loop {
            let delivery = self.subscription.next().await?;
            match delivery.value::<T>() {
                Ok(value) => return Some((value, delivery)),
                Err(error) => delivery.nack(error.to_string()),
            }
        }
    }

    /// A handle for others.
    pub fn control(&self) -> SubscriptionControl {
        self.subscription.control()
    }
}

impl<T> Clone for Topic<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Topic<T> {}

impl<T> fmt::Debug for Topic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Topic({})", self.name)
    }
}
