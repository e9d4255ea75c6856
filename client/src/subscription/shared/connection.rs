//! What only the connection's task calls: deliveries in, answers out, connections that come and go.

use super::{CreditExceeded, Inner, PendingWork, QueuedDelivery, Shared};
use crate::error::ServerError;
use crate::id::Id;
use crate::subscription::{AckRun, Ended};
use prombus_interface::StartAt;
use std::sync::Arc;
use tokio::sync::oneshot;

impl Shared {
    /// Puts deliveries in the queue, in their order.
    pub(crate) fn deliver(
        self: &Arc<Self>,
        events: &mut Vec<QueuedDelivery>,
    ) -> Result<(), CreditExceeded> {
        let mut inner = self.inner();
        if inner.is_gone || inner.ended.is_some() {
            events.clear();
            return Ok(());
        }
        if inner.late.is_empty() && inner.resume.is_none() {
            inner.queue.extend(events.drain(..));
        } else {
            inner.deliver_unless_done(events);
            if inner.is_urgent {
                self.mark_dirty_locked(&mut inner);
                self.core.task_waker.wake();
            }
        }
        let is_too_many = inner.queue.len() > self.options.max_in_flight;
        drop(inner);
        self.arrived.notify_one();
        if is_too_many {
            Err(CreditExceeded)
        } else {
            Ok(())
        }
    }

    /// Partitions come to the subscription.
    pub(crate) fn assign(&self, topic: &str, partitions: &[u32]) {
        self.inner().partitions.assign(topic, partitions);
        self.assigned.notify_one();
    }

    /// Partitions go. What waits of their events is not handed out any more: their next member gets it.
    pub(crate) fn revoke(self: &Arc<Self>, topic: &str, partitions: &[u32]) {
        let mut inner = self.inner();
        inner.queue.retain(|queued| {
            let partition = queued.event.fields().partition;
            queued.event.topic() != topic
                || partition.is_none_or(|partition| !partitions.contains(&partition))
        });
        inner.partitions.revoke(topic, partitions);
        drop(inner);
        self.assigned.notify_one();
        self.mark_dirty();
    }

    /// Takes what the subscriber wants; acknowledgements only where they should go now.
    pub(crate) fn take_work(&self, flush_acks: bool) -> PendingWork {
        let mut inner = self.inner();
        inner.is_dirty = false;
        let mut work = PendingWork {
            settles: std::mem::take(&mut inner.settles),
            revoked: inner.partitions.take_confirmed(),
            is_paused: inner.is_paused,
            is_gone: inner.is_gone,
            ..PendingWork::default()
        };
        // Who gets a partition next must not get what was acknowledged of it.
        let hands_over = !work.revoked.is_empty();
        if flush_acks || inner.is_urgent || inner.is_gone || hands_over {
            inner.is_urgent = false;
            inner.ack_count = 0;
            work.acks = std::mem::take(&mut inner.acks);
        }
        work.has_more_acks = !inner.acks.is_empty();
        work
    }

    /// The task has seen that there is something, and comes back to it.
    pub(crate) fn clear_dirty(&self) {
        self.inner().is_dirty = false;
    }

    /// Whether it was let go of and has nothing left to send.
    pub(crate) fn is_done(&self) -> bool {
        let inner = self.inner();
        inner.is_gone && (inner.acks.is_empty() || self.named_group.is_none())
    }

    /// The server has the subscription.
    pub(crate) fn open(&self, group: Option<&str>) {
        let mut inner = self.inner();
        if let Some(group) = group {
            inner.group = Some(group.into());
        }
        if let Some(opened) = inner.opened.take() {
            // The waiter may have gone away; then the subscription has been let go of.
            let _ = opened.send(Ok(()));
        }
    }

    /// The server refused the subscription.
    pub(crate) fn refuse(&self, error: ServerError) {
        let opened = self.inner().opened.take();
        if let Some(opened) = opened {
            let _ = opened.send(Err(error.clone().into()));
        }
        self.end(Ended::Refused(error));
    }

    /// The connection is gone, and with it the leases. `lost` are acknowledgements that it may not have delivered.
    pub(crate) fn disconnect(&self, lost: Vec<AckRun>) {
        let mut inner = self.inner();
        inner.epoch += 1;
        let Inner { queue, resume, .. } = &mut *inner;
        if let Some(resume) = resume {
            resume.disconnect(queue.iter().map(|queued| queued.event.ts()));
        }
        inner.queue.clear();
        inner.settles.clear();
        inner.handed_out = 0;
        inner.partitions.lose_all();
        self.assigned.notify_one();
        if self.named_group.is_none() {
            // The group is gone too.
            inner.acks.clear();
            inner.ack_count = 0;
            return;
        }
        for run in &lost {
            inner.late.extend(run.ids.iter().copied());
        }
        let waiting = std::mem::replace(&mut inner.acks, lost);
        for run in &waiting {
            inner.late.extend(run.ids.iter().copied());
        }
        inner.acks.extend(waiting);
        inner.ack_count = inner.acks.iter().map(|run| run.ids.len()).sum();
        inner.is_urgent = inner.ack_count > 0;
    }

    /// The server has taken these acknowledgements.
    pub(crate) fn acknowledged(&self, ids: &[Id]) {
        let mut inner = self.inner();
        if !inner.late.is_empty() {
            for id in ids {
                inner.late.remove(id);
            }
        }
    }

    /// Acknowledgements that have to be sent once more.
    pub(crate) fn ack_again(self: &Arc<Self>, run: AckRun) {
        let mut inner = self.inner();
        inner.ack_count += run.ids.len();
        inner.acks.push(run);
        self.mark_dirty_locked(&mut inner);
    }

    /// The number of the connection that deliveries come on.
    pub(crate) fn epoch(&self) -> u64 {
        self.inner().epoch
    }

    /// Whether acknowledgements wait to be sent.
    pub(crate) fn has_acks(&self) -> bool {
        !self.inner().acks.is_empty()
    }

    /// Who waits for the subscription to be gone.
    pub(crate) fn take_gone(&self) -> Option<oneshot::Sender<()>> {
        self.inner().gone.take()
    }

    /// Where to subscribe from. A durable group has its cursor. One that is made anew for each connection goes on
    /// behind what was handed out.
    pub(crate) fn start(&self) -> StartAt {
        let from = &self.options.from;
        match &self.inner().resume {
            Some(resume) if self.is_single_topic() => resume.start_in(&self.topic, from),
            Some(resume) => resume.start(from),
            None => from.clone(),
        }
    }

    /// Nothing more will come.
    pub(crate) fn end(&self, why: Ended) {
        self.inner().finish(why);
        self.arrived.notify_one();
        self.assigned.notify_one();
    }

    fn is_single_topic(&self) -> bool {
        !self.topic.contains('*') && self.options.topics.is_empty()
    }
}
