//! Typed topics: a topic and the type of its payloads, declared once and used to publish and to subscribe, in process or
//! over the network.

use crate::consumer::Consumer;
use crate::dedupe::Dedupe;
use crate::delivered::{Delivered, Lease as _, Subscribed};
use crate::exactly_once::ExactlyOnce;
use crate::invalid_field::InvalidField;
use crate::publish::PublishOptions;
use crate::settle::SettleOp;
use crate::subscribe::SubscribeOptions;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

/// Where events are published and groups subscribe: a bus in process, or the client of a server.
pub trait Endpoint {
    /// What a publisher may say about an event beyond what is the same everywhere.
    type PublishExtras<'a>;
    /// The position of a published event, once it is durable.
    type PublishFuture;
    /// Which events a group wants.
    type Filter: Send;
    /// What a subscriber may ask for beyond what is the same everywhere.
    type SubscribeExtras: Send;
    /// A stream of deliveries.
    type Subscription: Subscribed;
    /// Why a subscription failed.
    type SubscribeError: From<InvalidField>;

    /// Publishes a value as JSON.
    fn publish<T: Serialize + ?Sized>(
        &self,
        topic: &str,
        value: &T,
        options: &PublishOptions<'_, Self::PublishExtras<'_>>,
    ) -> Self::PublishFuture;

    /// Subscribes a group.
    fn subscribe(
        &self,
        topic: &str,
        group: &str,
        options: SubscribeOptionsOf<Self>,
    ) -> impl Future<Output = Result<Self::Subscription, Self::SubscribeError>> + Send;
}

/// What a subscriber may ask of an endpoint.
pub type SubscribeOptionsOf<B> =
    SubscribeOptions<<B as Endpoint>::Filter, <B as Endpoint>::SubscribeExtras>;

/// What the subscriptions of an endpoint bring.
pub type DeliveryOf<B> = <<B as Endpoint>::Subscription as Subscribed>::Delivery;

/// Subscribes a handler at an endpoint: its result settles each delivery.
pub async fn subscribe_with<B, H, F, E>(
    endpoint: &B,
    (topic, group): (&str, &str),
    options: SubscribeOptionsOf<B>,
    handler: H,
) -> Result<Consumer<B::Subscription>, B::SubscribeError>
where
    B: Endpoint,
    H: Fn(DeliveryOf<B>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: fmt::Display + 'static,
{
    let (concurrency, manual_ack) = (options.concurrency, options.manual_ack);
    let subscription = endpoint.subscribe(topic, group, options).await?;
    Ok(Consumer::start(
        subscription,
        concurrency,
        manual_ack,
        handler,
    ))
}

/// Subscribes a handler at an endpoint whose effects are not repeated.
pub async fn subscribe_exactly_once<B, H, F, E>(
    endpoint: &B,
    (topic, group): (&str, &str),
    options: SubscribeOptionsOf<B>,
    dedupe: Dedupe,
    handler: H,
) -> Result<ExactlyOnce<B::Subscription>, B::SubscribeError>
where
    B: Endpoint,
    H: Fn(DeliveryOf<B>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: fmt::Display + Send + 'static,
{
    if options.manual_ack {
        let reason = "an exactly-once handler acknowledges by itself";
        return Err(InvalidField::new("manual_ack", reason).into());
    }
    let concurrency = options.concurrency;
    let subscription = endpoint.subscribe(topic, group, options).await?;
    Ok(ExactlyOnce::start(
        subscription,
        group,
        concurrency,
        dedupe,
        handler,
    ))
}

/// A topic with the type of its payloads.
///
/// ```
/// # use prombus_interface::Topic;
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
pub struct TypedSubscription<T, S> {
    subscription: S,
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
    pub fn publish<B: Endpoint>(
        &self,
        endpoint: &B,
        value: &T,
        options: &PublishOptions<'_, B::PublishExtras<'_>>,
    ) -> B::PublishFuture {
        endpoint.publish(self.name, value, options)
    }
}

impl<T: DeserializeOwned + Send + 'static> Topic<T> {
    /// Subscribes a group. An event whose payload is no `T` is nacked with the reason and never shown.
    pub async fn subscribe<B: Endpoint>(
        &self,
        endpoint: &B,
        group: &str,
        options: SubscribeOptionsOf<B>,
    ) -> Result<TypedSubscription<T, B::Subscription>, B::SubscribeError> {
        Ok(TypedSubscription {
            subscription: endpoint.subscribe(self.name, group, options).await?,
            payload: PhantomData,
        })
    }

    /// Subscribes a handler of values; its result settles each delivery.
    pub async fn subscribe_with<B, H, F, E>(
        &self,
        endpoint: &B,
        group: &str,
        options: SubscribeOptionsOf<B>,
        handler: H,
    ) -> Result<Consumer<B::Subscription>, B::SubscribeError>
    where
        B: Endpoint,
        H: Fn(T, DeliveryOf<B>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display + 'static,
    {
        let handler = Arc::new(handler);
        let decode_and_handle = move |delivery: DeliveryOf<B>| {
            let handler = handler.clone();
            async move {
                let value = delivery.value::<T>().map_err(|error| error.to_string())?;
                handler(value, delivery)
                    .await
                    .map_err(|error| error.to_string())
            }
        };
        subscribe_with(endpoint, (self.name, group), options, decode_and_handle).await
    }
}

impl<T: DeserializeOwned, S: Subscribed> TypedSubscription<T, S> {
    /// The next value with its delivery; `None` when no more will come.
    pub async fn next(&self) -> Option<(T, S::Delivery)> {
        loop {
            let delivery = self.subscription.next().await?;
            match delivery.value::<T>() {
                Ok(value) => return Some((value, delivery)),
                Err(error) => {
                    let nack = SettleOp::nack(error.to_string(), None);
                    delivery.lease().settle(nack);
                }
            }
        }
    }

    /// A handle for others.
    pub fn control(&self) -> S::Control {
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
