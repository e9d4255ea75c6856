//! The client: the handle that everything begins with.

use crate::bus::{Consumer, ExactlyOnce};
use crate::core::{Core, Phase};
use crate::endpoint::Endpoint;
use crate::error::{ConnectError, SubscribeError};
use crate::id::IdGenerator;
use crate::link;
use crate::options::ClientOptions;
use crate::partition_hooks::{PartitionHooks, consume_partitions};
use crate::publish::{
    BatchFuture, PublishBatch, PublishFuture, PublishOptions, encode, encode_value,
};
use crate::subscription::{Delivery, SubscribeOptions, Subscription, subscribe};
use prombus_interface::Dedupe;
use serde::Serialize;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

/// A connection to a prombus server that comes back when it breaks. Cloning it is cheap. When the last clone and the
/// last subscription are gone, it sends what it has and stops; [`Client::close`] does the same and waits for it.
#[derive(Clone)]
pub struct Client {
    pub(crate) alive: Arc<Alive>,
}

/// What keeps the connection's task at work.
pub(crate) struct Alive {
    pub(crate) core: Arc<Core>,
}

impl Client {
    /// Connects to `ws://…`, `wss://…`, `http://…` or `https://…`, inside a tokio runtime that has I/O and time
    /// enabled.
    pub async fn connect(url: &str, options: ClientOptions) -> Result<Self, ConnectError> {
        let endpoint = Endpoint::parse(url)?;
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| ConnectError::NoRuntime)?;
        let mut random = [0; 12];
        if getrandom::fill(&mut random).is_err() {
            // Without the system's randomness, the standard library's is what there is.
            fastrand::fill(&mut random);
        }
        let core = Arc::new(Core::new(endpoint, options, IdGenerator::new(random)));
        let first = link::start(&runtime, core.clone());
        let alive = Arc::new(Alive { core });
        match first.await {
            Ok(()) => Ok(Self { alive }),
            Err(_) => Err((*alive.core.end_reason()).clone()),
        }
    }

    pub(crate) fn core(&self) -> &Core {
        &self.alive.core
    }

    /// Publishes a value as JSON. Where there is room the event is on its way when this returns, in the order of the
    /// calls; the answer comes when it is durable. Await it, or keep many of them and await them later.
    pub fn publish<T: Serialize + ?Sized>(
        &self,
        topic: &str,
        value: &T,
        options: &PublishOptions<'_>,
    ) -> PublishFuture {
        let core = &self.alive.core;
        let send = |frame: crate::publish::Encoded<'_>| PublishFuture::send(core, frame);
        encode_value(core, topic, value, options, send)
            .unwrap_or_else(|error| PublishFuture::refused(core, error))
    }

    /// Publishes JSON text. It is kept as it is written, without insignificant whitespace.
    pub fn publish_text(
        &self,
        topic: &str,
        payload: &str,
        options: &PublishOptions<'_>,
    ) -> PublishFuture {
        let core = &self.alive.core;
        let send = |frame: crate::publish::Encoded<'_>| PublishFuture::send(core, frame);
        encode(core, topic, payload, options, send)
            .unwrap_or_else(|error| PublishFuture::refused(core, error))
    }

    /// An empty batch to add events to.
    pub fn batch(&self) -> PublishBatch {
        PublishBatch::new(self.alive.core.clone())
    }

    /// Publishes a batch in its order, with one result for each event.
    pub fn publish_batch(&self, batch: PublishBatch) -> BatchFuture {
        batch.publish()
    }

    /// Waits until there is room for a publish. A caller that publishes without awaiting each answer and may reach
    /// [`ClientOptions::max_in_flight`] awaits this before each publish, so that none has to wait and the order of the
    /// calls is the order in the topic.
    pub async fn room(&self) -> Result<(), ConnectError> {
        let core = &self.alive.core;
        match core.room.acquire().await {
            Ok(_) => Ok(()),
            Err(_) => Err((*core.end_reason()).clone()),
        }
    }

    /// Subscribes a group to a topic, to a pattern of topics (`*` one segment, `**` any number), or to several with
    /// [`SubscribeOptions::topics`]. A group that does not exist is made. When the connection breaks, the subscription
    /// goes on with the next one.
    pub async fn subscribe(
        &self,
        topic: &str,
        group: &str,
        options: SubscribeOptions,
    ) -> Result<Subscription, SubscribeError> {
        subscribe(&self.alive, topic, Some(group), options).await
    }

    /// Subscribes without a group: one is made for it, and is gone with the subscription. After a broken connection it
    /// goes on behind the last event that came; what was delivered before and not settled does not come again.
    pub async fn subscribe_ephemeral(
        &self,
        topic: &str,
        options: SubscribeOptions,
    ) -> Result<Subscription, SubscribeError> {
        subscribe(&self.alive, topic, None, options).await
    }

    /// Subscribes a handler. Success acknowledges, an error or a panic brings the event back with its text as the
    /// reason. Up to [`SubscribeOptions::concurrency`] handlers run at a time, and the leases of those that take long
    /// are extended.
    pub async fn subscribe_with<H, F, E>(
        &self,
        topic: &str,
        group: &str,
        options: SubscribeOptions,
        handler: H,
    ) -> Result<Consumer, SubscribeError>
    where
        H: Fn(Delivery) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display + 'static,
    {
        prombus_interface::subscribe_with(self, (topic, group), options, handler).await
    }

    /// The same for a handler that is not called again for an event it succeeded on, as
    /// [`prombus_interface::ExactlyOnce`] promises. The marks are kept by the caller, best in the database that the handler
    /// writes to; their scope is `<topic>/<group>`.
    pub async fn subscribe_exactly_once<H, F, E>(
        &self,
        topic: &str,
        group: &str,
        options: SubscribeOptions,
        dedupe: Dedupe,
        handler: H,
    ) -> Result<ExactlyOnce, SubscribeError>
    where
        H: Fn(Delivery) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display + Send + 'static,
    {
        let names = (topic, group);
        prombus_interface::subscribe_exactly_once(self, names, options, dedupe, handler).await
    }

    /// Like [`Self::subscribe_with`] for a group whose members share the partitions of a topic ([`SubscribeOptions::partitioned`] is set): the
    /// hooks are called with those that this consumer has. No event of a partition is handled before `on_assigned` has returned,
    /// and another member gets a partition that is revoked after its handlers and `on_revoked` have.
    pub async fn subscribe_partitioned<H, F, E, P>(
        &self,
        topic: &str,
        group: &str,
        options: SubscribeOptions,
        hooks: P,
        handler: H,
    ) -> Result<Consumer, SubscribeError>
    where
        H: Fn(Delivery) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: fmt::Display + 'static,
        P: PartitionHooks,
    {
        let options = SubscribeOptions {
            partitioned: Some(true),
            ..options
        };
        let (concurrency, manual_ack) = (options.concurrency, options.manual_ack);
        let subscription = self.subscribe(topic, group, options).await?;
        Ok(consume_partitions(
            subscription,
            concurrency,
            manual_ack,
            hooks,
            handler,
        ))
    }

    /// Closes the client: waits for the answers of what was published, sends the acknowledgements that wait, and
    /// closes the connection; at most [`ClientOptions::close_timeout`]. An error says why the client had ended before.
    pub async fn close(&self) -> Result<(), ConnectError> {
        let core = &self.alive.core;
        core.begin_close();
        let mut phase = core.watch_phase();
        let ended = phase
            .wait_for(|phase| matches!(phase, Phase::Ended(_)))
            .await;
        match ended.as_deref() {
            Ok(Phase::Ended(error)) if **error != ConnectError::Closed => Err((**error).clone()),
            _ => Ok(()),
        }
    }

    /// Why the client ended, where it has: it was closed, the server refused its token, or it gave up reconnecting.
    pub fn ended(&self) -> Option<Arc<ConnectError>> {
        self.alive.core.ended()
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.core.begin_close();
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("server", &self.alive.core.endpoint.name())
            .finish_non_exhaustive()
    }
}
