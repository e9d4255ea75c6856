//! Ack-and-publish transactions: a consumer's results and the acknowledgement of its input, both or neither.

use super::SubscriptionControl;
use super::delivery::{Delivery, Lease};
use crate::error::AckPublishError;
use crate::group::command::AckPublishByIds;
use crate::group::inbox::{AckPublishRequest, AckPublishResult, Message};
use crate::publish::{PublishBatch, Published};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// What came of a step: where the published events lie, in the order of the batch, once they are durable and the
/// acknowledged ones are settled; or why nothing of it happened. Dropping it does not undo the step.
#[must_use = "only the answer tells whether the step was made"]
pub struct AckPublishFuture(Answer);

enum Answer {
    /// Refused before it was sent.
    Refused(AckPublishError),
    Sent(oneshot::Receiver<AckPublishResult>),
}

impl Delivery {
    /// The event is done and these are its results: they are published and the event is settled atomically,
    /// also across a crash. If one event of the batch is refused, if another member has the lease or if the event is
    /// settled already, nothing happens, and where there is a lease it stays as it was.
    ///
    /// The transaction is on its way when this returns. Until its outcome is known no other member gets the event.
    /// Concurrent transactions share one write.
    ///
    /// ```
    /// # use prombus::{Bus, Delivery, PublishOptions};
    /// # async fn example(bus: Bus, delivery: Delivery) -> Result<(), Box<dyn std::error::Error>> {
    /// let doubled = delivery.value::<u64>()? * 2;
    /// let mut results = bus.batch();
    /// results.add_value("doubled", &doubled, &PublishOptions::default());
    /// let published = delivery.ack_and_publish(results).await?;
    /// # assert_eq!(published.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn ack_and_publish(self, batch: PublishBatch) -> AckPublishFuture {
        ack_publish(vec![self.lease], batch)
    }

    /// As [`Self::ack_and_publish`], for several events of one group that are settled in the same transaction: all of them,
    /// with everything in the batch, or none.
    pub fn ack_all_and_publish(
        deliveries: impl IntoIterator<Item = Delivery>,
        batch: PublishBatch,
    ) -> AckPublishFuture {
        let deliveries = deliveries.into_iter();
        ack_publish(deliveries.map(|delivery| delivery.lease).collect(), batch)
    }
}

/// A transaction that names its events by their ids.
#[derive(Debug)]
pub struct AckPublish {
    /// The events that are acknowledged.
    pub ids: Vec<String>,
    /// What is published with that.
    pub batch: PublishBatch,
}

/// What came of each of several steps, in their order.
pub trait AckPublishesFuture:
    Future<Output = Vec<Result<Vec<Published>, AckPublishError>>> + Send + 'static
{
}

impl<F> AckPublishesFuture for F where
    F: Future<Output = Vec<Result<Vec<Published>, AckPublishError>>> + Send + 'static
{
}

impl SubscriptionControl {
    /// Makes steps as [`Delivery::ack_and_publish`] does, for events of one topic that are named by their ids. Each step
    /// happens or does not whatever becomes of the others. Nothing happens before the answer is polled; it borrows
    /// nothing, so that it can be kept.
    pub fn ack_ids_and_publish(
        &self,
        topic: &str,
        ack_publishes: Vec<AckPublish>,
    ) -> impl AckPublishesFuture + use<> {
        let ack_publishes = ack_publishes.into_iter().map(AckPublish::by_ids);
        let ack_publishes: Vec<_> = ack_publishes.collect();
        let route = self.shared.route(topic);
        async move {
            match route {
                Some(route) => route.ack_publishes(ack_publishes).await,
                None => vec![Err(AckPublishError::Gone); ack_publishes.len()],
            }
        }
    }
}

impl AckPublish {
    fn by_ids(self) -> Result<AckPublishByIds, AckPublishError> {
        if self.ids.is_empty() {
            Err(AckPublishError::NotOneGroup)
        } else {
            Ok(AckPublishByIds {
                ids: self.ids,
                events: self.batch.into_atomic()?,
            })
        }
    }
}

/// Sends a step to the owner of the group that the leases are of.
fn ack_publish(leases: Vec<Lease>, batch: PublishBatch) -> AckPublishFuture {
    let sent = || {
        let first = leases.first().ok_or(AckPublishError::NotOneGroup)?;
        let is_of_another = |lease: &Lease| {
            !Arc::ptr_eq(&lease.inbox, &first.inbox) || lease.name.member != first.name.member
        };
        if leases.iter().any(is_of_another) {
            return Err(AckPublishError::NotOneGroup);
        }
        let (reply, answer) = oneshot::channel();
        let request = AckPublishRequest {
            leases: leases.iter().map(|lease| lease.name).collect(),
            events: batch.into_atomic()?,
            reply,
        };
        // An owner that is gone lets go of the reply, which says so.
        first.inbox.push(Message::AckPublish(Box::new(request)));
        Ok(answer)
    };
    AckPublishFuture(match sent() {
        Ok(answer) => Answer::Sent(answer),
        Err(error) => Answer::Refused(error),
    })
}

impl Future for AckPublishFuture {
    type Output = AckPublishResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Answer::Refused(error) => Poll::Ready(Err(error.clone())),
            Answer::Sent(answer) => {
                let answered = Pin::new(answer).poll(context);
                answered.map(|answer| answer.unwrap_or(Err(AckPublishError::Gone)))
            }
        }
    }
}

impl fmt::Debug for AckPublishFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AckPublishFuture")
    }
}
