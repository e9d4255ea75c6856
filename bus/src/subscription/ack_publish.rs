//! Ack-and-publish transactions: a consumer's results and the acknowledgement of its input, both or neither.

use super::SubscriptionControl;
use super::delivery::{Delivery, Lease};
use crate::error::AckPublishError;
use crate::group::command::AckPublishByIds;
use crate::group::inbox::{AckPublishRequest, AckPublishResult, Message};
use crate::pending::{Pending, PendingAll};
use crate::publish::PublishBatch;
use std::sync::Arc;

/// What came of a transaction: where the published events are stored, in the order of the batch, once they are durable and
/// the acknowledged ones are settled; or why nothing of it happened.
pub type AckPublishFuture = Pending<AckPublishResult>;

/// What came of each of several transactions, in their order.
pub type AckPublishesFuture = PendingAll<AckPublishResult>;

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
        ack_publish(&[self.lease], batch)
    }

    /// As [`Self::ack_and_publish`], for several events of one group that are settled in the same transaction: all of them,
    /// with everything in the batch, or none.
    pub fn ack_all_and_publish(
        deliveries: impl IntoIterator<Item = Delivery>,
        batch: PublishBatch,
    ) -> AckPublishFuture {
        let deliveries = deliveries.into_iter();
        let leases: Vec<Lease> = deliveries.map(|delivery| delivery.lease).collect();
        ack_publish(&leases, batch)
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

impl SubscriptionControl {
    /// Makes transactions as [`Delivery::ack_and_publish`] does, for events of one topic that are named by their ids. Each
    /// happens or does not whatever becomes of the others. They are sent when this returns.
    pub fn ack_ids_and_publish(
        &self,
        topic: &str,
        ack_publishes: Vec<AckPublish>,
    ) -> AckPublishesFuture {
        let ack_publishes = ack_publishes.into_iter();
        match self.shared.route(topic) {
            Some(route) => route.ack_publishes(ack_publishes.map(AckPublish::by_ids).collect()),
            None => PendingAll::new(ack_publishes.map(|_| Pending::known(gone(1))).collect()),
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

/// Sends a transaction to the owner of the group that the leases are of.
fn ack_publish(leases: &[Lease], batch: PublishBatch) -> AckPublishFuture {
    let send = || {
        let first = leases.first().ok_or(AckPublishError::NotOneGroup)?;
        let is_of_another = |lease: &Lease| {
            !Arc::ptr_eq(&lease.inbox, &first.inbox) || lease.name.member != first.name.member
        };
        if leases.iter().any(is_of_another) {
            return Err(AckPublishError::NotOneGroup);
        }
        let events = batch.into_atomic()?;
        let (reply, pending) = Pending::channel(1, gone);
        let request = AckPublishRequest {
            leases: leases.iter().map(|lease| lease.name).collect(),
            events,
            reply,
        };
        // An owner that is gone drops the reply, which resolves it.
        first.inbox.push(Message::AckPublish(Box::new(request)));
        Ok(pending)
    };
    send().unwrap_or_else(|error| Pending::known(Err(error)))
}

/// The result of an owner that is gone.
pub(super) fn gone(_: usize) -> AckPublishResult {
    Err(AckPublishError::Gone)
}
