//! Subscriptions: a stream of deliveries from one topic or many, each to be acknowledged.

mod ack_publish;
mod delivery;
mod event;
mod options;
mod partitions;
pub(crate) mod pending_ops;
mod settle;
pub(crate) mod shared;

pub(crate) use ack_publish::AckPublish;
pub use ack_publish::AckPublishFuture;
pub(crate) use delivery::LeaseHandle;
pub use delivery::{Context, Delivery};
pub use event::Event;
pub use options::SubscribeOptions;
pub(crate) use options::to_wire;
pub use partitions::Assignment;
pub(crate) use settle::{AckRun, Confirm, PendingSettle};

use crate::client::Alive;
use crate::error::{ConnectError, ServerError, SubscribeError};
use futures_core::Stream;
use shared::Shared;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as TaskContext, Poll, ready};
use tokio::sync::oneshot;

/// A stream of deliveries. Letting go of it frees its leases; what it handed out and what is not settled comes again.
///
/// Also a [`Stream`](futures_core::Stream) of them.
pub struct Subscription {
    control: SubscriptionControl,
    /// What [`Stream::poll_next`] waits for between two polls.
    polled: Mutex<Option<NextDelivery>>,
    _alive: Arc<Alive>,
}

type NextDelivery = Pin<Box<dyn Future<Output = Option<Delivery>> + Send>>;

/// A handle to a subscription that can be given to others: it pauses and resumes. It does not keep the subscription
/// alive.
#[derive(Clone)]
pub struct SubscriptionControl {
    shared: Arc<Shared>,
}

/// What comes next where partitions matter.
pub(crate) enum Next {
    Assignment(Assignment),
    Delivery(Delivery),
}

/// Why no more deliveries come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The subscription was let go of.
    Unsubscribed,
    /// The server refused it after a reconnect.
    Refused(ServerError),
    /// The client ended.
    Client(Arc<ConnectError>),
}

/// Subscribes; without a group the subscription is ephemeral.
pub(crate) async fn subscribe(
    alive: &Arc<Alive>,
    topic: &str,
    group: Option<&str>,
    options: SubscribeOptions,
) -> Result<Subscription, SubscribeError> {
    options.check()?;
    let (opened, opening) = oneshot::channel();
    let core = &alive.core;
    let shared = Arc::new(Shared::new(core.clone(), topic, group, options, opened));
    // A caller that stops waiting drops the subscription too.
    let subscription = Subscription {
        control: SubscriptionControl {
            shared: shared.clone(),
        },
        polled: Mutex::new(None),
        _alive: alive.clone(),
    };
    shared.mark_dirty();
    match opening.await {
        Ok(Ok(())) => Ok(subscription),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(SubscribeError::Ended(core.end_reason())),
    }
}

impl Subscription {
    /// The next delivery; `None` when no more will come, see [`Self::ended`]. Several tasks may wait at a time.
    pub async fn next(&self) -> Option<Delivery> {
        self.control.shared.take().await
    }

    /// The next change to its partitions where there is one, else the next delivery: no event of a partition comes before
    /// its assignment was taken.
    pub(crate) async fn next_in_order(&self) -> Option<Next> {
        self.control.shared.take_in_order().await
    }

    /// Waits for a delivery and takes up to `limit` that are there.
    pub async fn next_batch(&self, limit: usize) -> Vec<Delivery> {
        let Some(first) = self.next().await else {
            return Vec::new();
        };
        let mut batch = vec![first];
        let more = limit.saturating_sub(1);
        self.control.shared.take_ready(more, &mut batch);
        batch
    }

    /// The next change to the partitions that a partitioned subscription has; `None` when no more will come. Who is done
    /// with partitions that were revoked says so with [`SubscriptionControl::confirm_revoked`]; the next member gets them
    /// then, or as long after as a lease is. A [`Consumer`](crate::Consumer) with hooks does all this by itself.
    pub async fn next_assignment(&self) -> Option<Assignment> {
        self.control.shared.next_assignment().await
    }

    /// Why no more deliveries come, where that is so.
    pub fn ended(&self) -> Option<Ended> {
        self.control.shared.ended()
    }

    /// The group, also one that was made for it. An ephemeral one changes when the connection does.
    pub fn group(&self) -> Arc<str> {
        self.control.shared.group()
    }

    /// A handle for others.
    pub fn control(&self) -> SubscriptionControl {
        self.control.clone()
    }

    /// Asks the server for no new events until [`Self::resume`]. What was delivered already is still handed out.
    pub fn pause(&self) {
        self.control.pause();
    }

    /// Takes events again.
    pub fn resume(&self) {
        self.control.resume();
    }

    /// Ends the subscription and waits until the server has let go of it. Acknowledgements made before go first.
    pub async fn unsubscribe(self) {
        let (done, gone) = oneshot::channel();
        self.control.shared.release(Some(done));
        // Where the client ends first, the subscription has ended with it.
        let _ = gone.await;
    }
}

impl Stream for Subscription {
    type Item = Delivery;

    fn poll_next(self: Pin<&mut Self>, context: &mut TaskContext<'_>) -> Poll<Option<Delivery>> {
        let this = self.get_mut();
        let polled = this
            .polled
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        let shared = &this.control.shared;
        let next = polled.get_or_insert_with(|| {
            let shared = shared.clone();
            Box::pin(async move { shared.take().await })
        });
        let delivery = ready!(next.as_mut().poll(context));
        *polled = None;
        Poll::Ready(delivery)
    }
}

impl SubscriptionControl {
    /// See [`Subscription::pause`].
    pub fn pause(&self) {
        self.shared.set_paused(true);
    }

    /// See [`Subscription::resume`].
    pub fn resume(&self) {
        self.shared.set_paused(false);
    }

    /// Whether it is paused.
    pub fn is_paused(&self) -> bool {
        self.shared.is_paused()
    }

    /// Done with partitions that were revoked: their next member gets them at once, and with them what is not settled.
    pub fn confirm_revoked(&self, topic: &str, partitions: &[u32]) {
        self.shared.confirm_revoked(topic, partitions);
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.control.shared.release(None);
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.control.fmt(f)
    }
}

impl fmt::Debug for SubscriptionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("topic", &self.shared.topic)
            .field("group", &self.shared.group())
            .finish_non_exhaustive()
    }
}
