//! The bus: the handle that everything begins with.

mod admin;
mod dedupe;
mod group_metrics;
mod groups;
mod groups_elsewhere;
mod open_url;

pub use group_metrics::GroupMetrics;

use crate::core::Core;
use crate::endpoint::{Consumer, ExactlyOnce};
use crate::error::{NotPublished, OpenError, SubscribeError};
use crate::group::ownership::Nodes;
use crate::group::registry::Registry;
use crate::group::relay::{self, NodeDialer, NodeLink};
use crate::group::{NodeInfo, NodeProbe, UnwrittenGroups};
use crate::memory::ByteBudget;
use crate::options::BusOptions;
use crate::publish::{BatchFuture, PublishBatch, PublishFuture, PublishOptions, Published};
use crate::schedule::Scheduler;
use crate::state::Snapshotter;
use crate::subscription::{Delivery, SubscribeOptions, Subscription, subscribe};
use crate::topics::Topics;
use group_metrics::GroupMetricsCache;
use prombus_interface::Dedupe;
use prombus_store::{CommitError, ReadError, Store, StoreFailed};
use serde::Serialize;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

/// A durable event bus on a store. Cloning it is cheap; when the last clone is gone, its tasks write down what they
/// have and stop. [`Bus::close`] does the same and waits for it.
#[derive(Clone)]
pub struct Bus {
    core: Arc<Core>,
    registry: Arc<Registry>,
    /// Makes snapshots until the last clone of the bus is dropped.
    snapshotter: Arc<Snapshotter>,
    /// Publishes what is due until then.
    scheduler: Arc<Scheduler>,
    /// What looking at all groups remembers from one time to the next.
    group_metrics: Arc<GroupMetricsCache>,
}

impl Bus {
    /// Opens a bus on a store, inside a tokio runtime that has its timers enabled.
    pub fn open(store: Arc<dyn Store>, options: BusOptions) -> Result<Self, OpenError> {
        options.check()?;
        let defaults = options.compiled_defaults()?;
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| OpenError::NoRuntime)?;
        let topics = Topics::new(store.clone(), options.auto_create_topics, defaults);
        let nodes = Nodes::start(&store, &options.clock, &runtime);
        let core = Arc::new(Core::new(store, options, topics, nodes));
        let snapshotter = Arc::new(Snapshotter::start(&core, &runtime));
        let scheduler = Arc::new(Scheduler::start(&core, &runtime));
        let registry = Registry::new(core.clone(), runtime);
        Ok(Self {
            core,
            registry,
            snapshotter,
            scheduler,
            group_metrics: Arc::default(),
        })
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Groups whose records the store did not take: their members' acknowledgements would not survive a restart.
    pub fn unwritten_groups(&self) -> UnwrittenGroups {
        self.core.unwritten.status()
    }

    /// Learns of changes to that.
    pub fn watch_unwritten_groups(&self) -> tokio::sync::watch::Receiver<UnwrittenGroups> {
        self.core.unwritten.watch()
    }

    /// Tells the other nodes that share the store where this one is reached, and how to find out whether one of them is
    /// gone. Does nothing on a store that this process has for itself.
    pub fn introduce_node(&self, url: impl Into<String>, probe: Arc<dyn NodeProbe>) {
        if let Some(nodes) = &self.core.nodes {
            nodes.introduce(url.into(), probe);
        }
    }

    /// Relays members of this node to the nodes that serve their groups, over links that `dialer` opens. Where the store has
    /// no secret yet that nodes know each other by, `fresh_secret` is it. Does nothing on a store that this process has for
    /// itself.
    pub fn link_nodes(&self, dialer: Arc<dyn NodeDialer>, fresh_secret: impl Into<String>) {
        if let Some(nodes) = &self.core.nodes {
            nodes.link(dialer, fresh_secret.into());
        }
    }

    /// What a node has to show before [`Self::serve_node_link`]; `None` where there is nothing to link.
    pub async fn node_secret(&self) -> Option<String> {
        self.core.nodes.as_ref()?.secret().await
    }

    /// Serves the members behind a link of another node, until it is over.
    pub async fn serve_node_link(&self, link: NodeLink) {
        relay::serve(self.core.clone(), self.registry.clone(), link).await;
    }

    /// The nodes that share the store, as far as this one knows; none where this process has it for itself.
    pub async fn nodes(&self) -> Result<Vec<NodeInfo>, ReadError> {
        match &self.core.nodes {
            Some(nodes) => nodes.list().await,
            None => Ok(Vec::new()),
        }
    }

    /// The store that the bus is on, for reading.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.core.store
    }

    /// The bytes of events that wait in memory to be delivered. A gateway, which passes events on, counts what
    /// waits there too.
    pub fn delivery_memory(&self) -> &Arc<ByteBudget> {
        &self.core.memory
    }

    /// Publishes a value as JSON. The event is on its way when this returns, in the order of the calls; the answer
    /// comes when it is durable.
    pub fn publish<T: Serialize + ?Sized>(
        &self,
        topic: &str,
        value: &T,
        options: &PublishOptions<'_>,
    ) -> PublishFuture {
        let mut batch = self.batch();
        batch.add_value(topic, value, options);
        batch.publish().into()
    }

    /// Publishes JSON text. It is kept as it is written, without insignificant whitespace.
    pub fn publish_text(
        &self,
        topic: &str,
        payload: &str,
        options: &PublishOptions<'_>,
    ) -> PublishFuture {
        let mut batch = self.batch();
        batch.add(topic, payload, options);
        batch.publish().into()
    }

    /// An empty batch to add events to.
    pub fn batch(&self) -> PublishBatch {
        PublishBatch::new(self.core.clone())
    }

    /// Publishes a batch in its order, with one wait for all of it and one result for each event.
    pub fn publish_batch(&self, batch: PublishBatch) -> BatchFuture {
        batch.publish()
    }

    /// The same for a caller that does nothing else until it has the answer. Where that is quicker the events are
    /// stored on its own thread, which then waits for the disk; other tasks of the runtime go on, but not what the same
    /// task would do meanwhile. Not for use inside a `LocalSet`.
    pub fn publish_batch_inline(&self, batch: PublishBatch) -> BatchFuture {
        batch.publish_inline()
    }

    /// Publishes all events of a batch or none, to one topic or several, also across a crash. An event sees those before
    /// it in the batch where it expects a position; one that is refused refuses all, and the error says which.
    pub async fn publish_atomic(
        &self,
        batch: PublishBatch,
    ) -> Result<Vec<Published>, NotPublished> {
        batch.publish_atomic().await
    }

    /// Subscribes a group to a topic, to a pattern of topics (`*` one segment, `**` any number), or to several with
    /// [`SubscribeOptions::topics`]. A group that does not exist is made.
    pub async fn subscribe(
        &self,
        topic: &str,
        group: &str,
        options: SubscribeOptions,
    ) -> Result<Subscription, SubscribeError> {
        subscribe(&self.core, &self.registry, topic, Some(group), options).await
    }

    /// Subscribes without a group: one is made for it, and is gone with the subscription. An event whose last attempt
    /// fails here is dropped without a dead letter.
    pub async fn subscribe_ephemeral(
        &self,
        topic: &str,
        options: SubscribeOptions,
    ) -> Result<Subscription, SubscribeError> {
        subscribe(&self.core, &self.registry, topic, None, options).await
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
    /// [`prombus_interface::ExactlyOnce`] promises. The scope of the marks is `<topic>/<group>`.
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

    /// Closes the bus: nothing new is taken in or leased, groups are written down, tasks stop, and the store is
    /// closed. Fails where a group could not be written, though all is closed then too. Closing twice is fine.
    pub async fn close(&self) -> Result<(), CommitError> {
        self.core.close();
        self.snapshotter.stop().await;
        self.scheduler.stop().await;
        self.registry.close().await;
        if let Some(nodes) = &self.core.nodes {
            nodes.leave().await;
        }
        match self.core.store.close().await {
            Ok(()) | Err(CommitError::Closed) => match self.unwritten_groups().latest {
                Some(cause) => Err(CommitError::StoreFailed(StoreFailed { cause })),
                None => Ok(()),
            },
            Err(error) => Err(error),
        }
    }
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus").finish_non_exhaustive()
    }
}
