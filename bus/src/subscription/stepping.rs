//! Acknowledging and publishing in one step: a consumer's results and the end of its input, both or neither.

use super::SubscriptionControl;
use super::delivery::{Delivery, Lease};
use crate::error::StepError;
use crate::group::command::StepByIds;
use crate::group::inbox::{Message, StepRequest, StepResult};
use crate::publish::{PublishBatch, Published};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::oneshot;

/// What came of a step: where the published events lie, in the order of the batch, once they are durable and the
/// acknowledged ones are settled; or why nothing of it happened. Dropping it does not undo the step.
#[must_use = "only the answer tells whether the step was made"]
pub struct StepAnswer(Answer);

enum Answer {
    /// Refused before it was sent.
    Refused(StepError),
    Sent(oneshot::Receiver<StepResult>),
}

impl Delivery {
    /// The event is done and these are its results: they are published and the event is settled in one atomic step,
    /// also across a crash. If one event of the batch is refused, if another member has the lease or if the event is
    /// settled already, nothing happens, and where there is a lease it stays as it was.
    ///
    /// The step is on its way when this returns. Until its outcome is known nobody else gets the event. Steps that
    /// come at about the same time share one write.
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
    pub fn ack_and_publish(self, batch: PublishBatch) -> StepAnswer {
        step(vec![self.lease], batch)
    }

    /// As [`Self::ack_and_publish`], for several events of one group that are settled in the same step: all of them,
    /// with everything in the batch, or none.
    pub fn ack_all_and_publish(
        deliveries: impl IntoIterator<Item = Delivery>,
        batch: PublishBatch,
    ) -> StepAnswer {
        let deliveries = deliveries.into_iter();
        step(deliveries.map(|delivery| delivery.lease).collect(), batch)
    }
}

/// A step that names its events by their ids.
#[derive(Debug)]
pub struct Step {
    /// The events that are acknowledged.
    pub ids: Vec<String>,
    /// What is published with that.
    pub batch: PublishBatch,
}

/// What came of each of several steps, in their order.
pub trait StepsAnswer:
    Future<Output = Vec<Result<Vec<Published>, StepError>>> + Send + 'static
{
}

impl<F> StepsAnswer for F where
    F: Future<Output = Vec<Result<Vec<Published>, StepError>>> + Send + 'static
{
}

impl SubscriptionControl {
    /// Makes steps as [`Delivery::ack_and_publish`] does, for events of one topic that are named by their ids. Each step
    /// happens or does not whatever becomes of the others. Nothing happens before the answer is polled; it borrows
    /// nothing, so that it can be kept.
    pub fn ack_ids_and_publish(&self, topic: &str, steps: Vec<Step>) -> impl StepsAnswer + use<> {
        let count = steps.len();
        let seats = self.shared.seats();
        let stepping = seats.get(topic).map(|seat| {
            let steps = steps.into_iter().map(Step::by_ids);
            seat.steps(steps.collect())
        });
        async move {
            match stepping {
                Some(stepping) => stepping.await,
                None => vec![Err(StepError::Gone); count],
            }
        }
    }
}

impl Step {
    fn by_ids(self) -> Result<StepByIds, StepError> {
        match self.ids.is_empty() {
            true => Err(StepError::NotOneGroup),
            false => Ok(StepByIds {
                ids: self.ids,
                events: self.batch.into_whole()?,
            }),
        }
    }
}

/// Sends a step to the owner of the group that the leases are of.
fn step(leases: Vec<Lease>, batch: PublishBatch) -> StepAnswer {
    let sent = || {
        let first = leases.first().ok_or(StepError::NotOneGroup)?;
        let is_of_another = |lease: &Lease| {
            !Arc::ptr_eq(&lease.inbox, &first.inbox) || lease.name.member != first.name.member
        };
        if leases.iter().any(is_of_another) {
            return Err(StepError::NotOneGroup);
        }
        let (reply, answer) = oneshot::channel();
        let request = StepRequest {
            leases: leases.iter().map(|lease| lease.name).collect(),
            events: batch.into_whole()?,
            reply,
        };
        // An owner that is gone lets go of the reply, which says so.
        first.inbox.push(Message::Step(Box::new(request)));
        Ok(answer)
    };
    StepAnswer(match sent() {
        Ok(answer) => Answer::Sent(answer),
        Err(error) => Answer::Refused(error),
    })
}

impl Future for StepAnswer {
    type Output = StepResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Answer::Refused(error) => Poll::Ready(Err(error.clone())),
            Answer::Sent(answer) => {
                let answered = Pin::new(answer).poll(context);
                answered.map(|answer| answer.unwrap_or(Err(StepError::Gone)))
            }
        }
    }
}

impl fmt::Debug for StepAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StepAnswer")
    }
}
