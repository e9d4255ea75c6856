//! Acknowledging and publishing in one atomic batch: a consumer's results and the end of its input, both or neither.

use super::delivery::Delivery;
use super::shared::Shared;
use crate::error::AckPublishError;
use crate::id::Id;
use crate::publish::{PublishBatch, Published};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// What came of a step: where the published events are, in the order of the batch, once they are durable and the
/// acknowledged ones are settled; or why not. A step that found room is on its way already, and dropping this does not
/// undo it; one that did not waits for room while this is awaited.
#[must_use = "only the answer tells whether the step was made"]
pub struct AckPublishFuture(
    Pin<Box<dyn Future<Output = Result<Vec<Published>, AckPublishError>> + Send>>,
);

/// A step on its way to the server.
#[derive(Debug)]
pub(crate) struct AckPublish {
    pub(crate) shared: Arc<Shared>,
    pub(crate) topic: Arc<str>,
    pub(crate) ids: Vec<Id>,
    /// The connection that the events were delivered on.
    pub(crate) epoch: u64,
    /// What is published, as the frame has it.
    pub(crate) publish: Vec<u8>,
    pub(crate) reply: oneshot::Sender<Result<Vec<Published>, AckPublishError>>,
    /// The room that it takes among publishes.
    pub(crate) room: OwnedSemaphorePermit,
}

impl Delivery {
    /// The event is done and these are its results: the server publishes them and settles the event in one atomic batch.
    /// If it refuses one event of the batch, if another member has the lease or if the event is settled already,
    /// nothing happens, and where there is a lease it stays as it was.
    ///
    /// When the connection breaks before the answer came, this ends with
    /// [`AckPublishError::UnknownOutcome`]: either both have happened, or neither has and the event comes again.
    pub fn ack_and_publish(self, batch: PublishBatch) -> AckPublishFuture {
        Self::ack_all_and_publish([self], batch)
    }

    /// As [`Self::ack_and_publish`], for several events that one subscription got from one topic: all of them are
    /// settled, with everything in the batch published, or none.
    pub fn ack_all_and_publish(
        deliveries: impl IntoIterator<Item = Delivery>,
        batch: PublishBatch,
    ) -> AckPublishFuture {
        let mut deliveries = deliveries.into_iter();
        let Some(first) = deliveries.next() else {
            return AckPublishFuture::refused(AckPublishError::NotOneGroup);
        };
        let (shared, epoch) = (first.lease.shared.clone(), first.lease.epoch);
        let topic = first.event.shared_topic().clone();
        let mut ids = Vec::new();
        for delivery in std::iter::once(first).chain(deliveries) {
            let is_same = Arc::ptr_eq(&delivery.lease.shared, &shared)
                && delivery.event.shared_topic() == &topic;
            if !is_same {
                return AckPublishFuture::refused(AckPublishError::NotOneGroup);
            }
            // One of an earlier connection has lost its lease, as one whose id is none has never had any.
            match delivery.event.kept_id() {
                Some(id) if delivery.lease.epoch == epoch => ids.push(id),
                _ => return AckPublishFuture::refused(AckPublishError::ConnectionLost),
            }
        }
        let publish = match batch.into_list() {
            Ok(publish) => publish,
            Err(error) => return AckPublishFuture::refused(error),
        };
        AckPublishFuture::send(shared, topic, ids, epoch, publish)
    }
}

impl AckPublishFuture {
    fn refused(error: AckPublishError) -> Self {
        Self(Box::pin(async { Err(error) }))
    }

    /// Sends a step where there is room, or else when it is awaited.
    fn send(
        shared: Arc<Shared>,
        topic: Arc<str>,
        ids: Vec<Id>,
        epoch: u64,
        publish: Vec<u8>,
    ) -> Self {
        let (reply, answer) = oneshot::channel();
        let core = shared.core.clone();
        let units = core.options.units(publish.len());
        let ready = core.room.clone().try_acquire_many_owned(units).ok();
        let op = move |room| AckPublish {
            shared,
            topic,
            ids,
            epoch,
            publish,
            reply,
            room,
        };
        let waiting = match ready {
            Some(room) => {
                core.ack_publish(op(room));
                None
            }
            None => Some(op),
        };
        Self(Box::pin(async move {
            if let Some(op) = waiting {
                let room = core.room.clone().acquire_many_owned(units).await;
                let room = room.map_err(|_| AckPublishError::Ended(core.end_reason()))?;
                core.ack_publish(op(room));
            }
            let ended = |_| Err(AckPublishError::Ended(core.end_reason()));
            answer.await.unwrap_or_else(ended)
        }))
    }
}

impl Future for AckPublishFuture {
    type Output = Result<Vec<Published>, AckPublishError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context)
    }
}

impl fmt::Debug for AckPublishFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AckPublishFuture")
    }
}
