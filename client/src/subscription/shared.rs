//! What a subscription's handles and the connection's task share: deliveries that wait to be taken, answers that wait
//! to be sent, and what the subscriber wants.

mod connection;
mod resume;

use self::resume::Resume;
use super::delivery::{Context, Delivery};
use super::event::Event;
use super::partitions::{Assignment, HeldPartitions};
use super::settle::{AckRun, Confirm, PendingSettle};
use super::{Ended, Next, SubscribeOptions};
use crate::core::Core;
use crate::error::{SettleError, SubscribeError};
use crate::id::Id;
use prombus_interface::SettleOp;
use std::borrow::Borrow;
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, oneshot};

/// The shared part of a subscription.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(super) core: Arc<Core>,
    pub(crate) number: u64,
    /// A topic or a pattern.
    pub(crate) topic: Arc<str>,
    /// `None` for an ephemeral one.
    pub(crate) named_group: Option<Arc<str>>,
    pub(crate) options: SubscribeOptions,
    inner: Mutex<Inner>,
    arrived: Notify,
    /// Notified when partitions have come or gone.
    assigned: Notify,
}

#[derive(Debug)]
struct Inner {
    queue: VecDeque<QueuedDelivery>,
    /// Handed out and not settled, as far as is known here.
    handed_out: usize,
    acks: Vec<AckRun>,
    ack_count: usize,
    /// Whether the acknowledgements should go now.
    is_urgent: bool,
    settles: Vec<PendingSettle>,
    /// Events acknowledged here whose acknowledgement may not have reached the server before the connection broke.
    /// Should the server deliver them again, they are acknowledged again and not handed out.
    late: HashSet<Id>,
    is_dirty: bool,
    is_paused: bool,
    is_gone: bool,
    gone: Option<oneshot::Sender<()>>,
    ended: Option<Ended>,
    /// Counts connections.
    epoch: u64,
    /// The group as the server named it.
    group: Option<Arc<str>>,
    opened: Option<oneshot::Sender<Result<(), SubscribeError>>>,
    /// Only an ephemeral one has it.
    resume: Option<Resume>,
    partitions: HeldPartitions,
}

/// A delivery that waits to be taken.
#[derive(Debug)]
pub(crate) struct QueuedDelivery {
    pub(crate) event: Event,
    pub(crate) context: Context,
}

/// What a subscriber wants from the task.
#[derive(Debug, Default)]
pub(crate) struct PendingWork {
    pub(crate) acks: Vec<AckRun>,
    /// Whether acknowledgements were left to gather.
    pub(crate) has_more_acks: bool,
    pub(crate) settles: Vec<PendingSettle>,
    /// Partitions that the subscriber is done with, by topic.
    pub(crate) revoked: Vec<(Arc<str>, Vec<u32>)>,
    pub(crate) is_paused: bool,
    pub(crate) is_gone: bool,
}

/// The server delivered more than it was asked for.
#[derive(Debug)]
pub(crate) struct CreditExceeded;

/// A frame has at most this many acknowledgements before it is sent.
const MAX_GATHERED_ACKS: usize = 512;

impl Shared {
    pub(super) fn new(
        core: Arc<Core>,
        topic: &str,
        group: Option<&str>,
        options: SubscribeOptions,
        opened: oneshot::Sender<Result<(), SubscribeError>>,
    ) -> Self {
        let inner = Inner {
            queue: VecDeque::new(),
            handed_out: 0,
            acks: Vec::new(),
            ack_count: 0,
            is_urgent: false,
            settles: Vec::new(),
            late: HashSet::new(),
            is_dirty: false,
            is_paused: false,
            is_gone: false,
            gone: None,
            ended: None,
            epoch: 0,
            group: group.map(Arc::from),
            opened: Some(opened),
            resume: group.is_none().then(Resume::default),
            partitions: HeldPartitions::default(),
        };
        Self {
            number: core.number(),
            core,
            topic: topic.into(),
            named_group: group.map(Arc::from),
            options,
            inner: Mutex::new(inner),
            arrived: Notify::new(),
            assigned: Notify::new(),
        }
    }

    /// Marks the subscription and wakes the task.
    pub(super) fn mark_dirty(self: &Arc<Self>) {
        let mut inner = self.inner();
        self.mark_dirty_locked(&mut inner);
        drop(inner);
        self.core.task_waker.wake();
    }

    fn mark_dirty_locked(self: &Arc<Self>, inner: &mut Inner) {
        if !inner.is_dirty {
            inner.is_dirty = true;
            if !self.core.pending_ops().mark_dirty(self) {
                inner.finish(Ended::Client(self.core.end_reason()));
            }
        }
    }

    /// Waits for a delivery.
    pub(super) async fn take(self: &Arc<Self>) -> Option<Delivery> {
        loop {
            let arrived = self.arrived.notified();
            match self.try_take() {
                Ok(taken) => return taken,
                Err(NothingYet) => arrived.await,
            }
        }
    }

    fn try_take(self: &Arc<Self>) -> Result<Option<Delivery>, NothingYet> {
        let mut inner = self.inner();
        if let Some(delivery) = self.pop(&mut inner) {
            if !inner.queue.is_empty() {
                // Another one may be waiting.
                self.arrived.notify_one();
            }
            return Ok(Some(delivery));
        }
        if inner.ended.is_some() {
            self.arrived.notify_one();
            return Ok(None);
        }
        Err(NothingYet)
    }

    /// Takes up to `limit` that are there.
    pub(super) fn take_ready(self: &Arc<Self>, limit: usize, into: &mut Vec<Delivery>) {
        let mut inner = self.inner();
        let count = limit.min(inner.queue.len());
        into.reserve(count);
        into.extend((0..count).map_while(|_| self.pop(&mut inner)));
    }

    fn pop(self: &Arc<Self>, inner: &mut Inner) -> Option<Delivery> {
        let QueuedDelivery { event, context } = inner.queue.pop_front()?;
        inner.handed_out += 1;
        if let Some(resume) = &mut inner.resume {
            resume.hand_out(event.shared_topic(), event.seq(), event.ts());
        }
        Some(Delivery::new(event, context, self.clone(), inner.epoch))
    }

    /// Waits for a change to the partitions.
    pub(super) async fn next_assignment(&self) -> Option<Assignment> {
        loop {
            let assigned = self.assigned.notified();
            {
                let mut inner = self.inner();
                if let Some(assignment) = inner.partitions.take() {
                    return Some(assignment);
                }
                if inner.ended.is_some() {
                    self.assigned.notify_one();
                    return None;
                }
            }
            assigned.await;
        }
    }

    /// Waits for a change to the partitions or a delivery.
    pub(super) async fn take_in_order(self: &Arc<Self>) -> Option<Next> {
        loop {
            let (arrived, assigned) = (self.arrived.notified(), self.assigned.notified());
            if let Some(assignment) = self.inner().partitions.take() {
                return Some(Next::Assignment(assignment));
            }
            if let Ok(taken) = self.try_take_assigned() {
                return taken.map(Next::Delivery);
            }
            tokio::select! {
                () = arrived => {}
                () = assigned => {}
            }
        }
    }

    /// A delivery, unless partitions have changed since it was looked.
    fn try_take_assigned(self: &Arc<Self>) -> Result<Option<Delivery>, NothingYet> {
        if self.inner().partitions.has_changes() {
            self.assigned.notify_one();
            return Err(NothingYet);
        }
        self.try_take()
    }

    pub(super) fn confirm_revoked(self: &Arc<Self>, topic: &str, partitions: &[u32]) {
        self.inner().partitions.confirm(topic, partitions);
        self.mark_dirty();
    }

    pub(super) fn ended(&self) -> Option<Ended> {
        self.inner().ended.clone()
    }

    pub(crate) fn group(&self) -> Arc<str> {
        self.inner().group.clone().unwrap_or_else(|| "".into())
    }

    pub(super) fn is_paused(&self) -> bool {
        self.inner().is_paused
    }

    pub(super) fn set_paused(self: &Arc<Self>, is_paused: bool) {
        self.inner().is_paused = is_paused;
        self.mark_dirty();
    }

    /// The subscriber is done with it.
    pub(super) fn release(self: &Arc<Self>, gone: Option<oneshot::Sender<()>>) {
        let mut inner = self.inner();
        if inner.is_gone || inner.ended.is_some() {
            return;
        }
        inner.is_gone = true;
        inner.gone = gone;
        inner.queue.clear();
        drop(inner);
        self.mark_dirty();
    }

    /// Gathers acknowledgements. They go out when enough have come together, when nothing else is under way that
    /// could bring more, or after a short while.
    pub(super) fn ack(self: &Arc<Self>, events: impl Iterator<Item = (u64, impl Borrow<Event>)>) {
        let mut inner = self.inner();
        let mut count = 0;
        for (epoch, event) in events {
            // An id that is none cannot have come from the log; the lease runs out.
            let event = event.borrow();
            let Some(id) = event.kept_id() else { continue };
            inner.push_ack(event.shared_topic(), id);
            count += 1;
            if epoch == inner.epoch {
                inner.handed_out = inner.handed_out.saturating_sub(1);
            } else {
                inner.late.insert(id);
                inner
                    .queue
                    .retain(|arrived| arrived.event.id() != id.as_str());
            }
        }
        if inner.ended.is_some() || count == 0 {
            inner.acks.clear();
            return;
        }
        inner.ack_count += count;
        let is_full =
            inner.ack_count >= (self.options.max_in_flight / 4).clamp(1, MAX_GATHERED_ACKS);
        let is_last = inner.queue.is_empty() && inner.handed_out == 0;
        let was_known = inner.is_dirty && (inner.is_urgent || !(is_full || is_last));
        inner.is_urgent |= is_full || is_last;
        self.mark_dirty_locked(&mut inner);
        drop(inner);
        if !was_known {
            self.core.task_waker.wake();
        }
    }

    /// Brings an event back or extends its lease.
    pub(super) fn settle(self: &Arc<Self>, event: &Event, epoch: u64, op: SettleOp) {
        let mut inner = self.inner();
        let Some(id) = event.kept_id() else { return };
        if epoch != inner.epoch || inner.ended.is_some() {
            return;
        }
        if matches!(op, SettleOp::Nack(_)) {
            inner.handed_out = inner.handed_out.saturating_sub(1);
        } else if inner.settles.len() >= self.options.max_in_flight {
            // Extended again and again while nothing can be sent: one more would change nothing.
            return;
        }
        let topic = event.shared_topic().clone();
        inner.settles.push(PendingSettle {
            topic,
            id,
            epoch,
            op,
        });
        drop(inner);
        self.mark_dirty();
    }

    /// Settles an event and waits for the server's answer.
    pub(super) async fn confirm(
        self: &Arc<Self>,
        event: &Event,
        epoch: u64,
        op: SettleOp,
    ) -> Result<(), SettleError> {
        let ended = || SettleError::Ended(self.core.end_reason());
        let _room = self
            .core
            .confirm_room
            .acquire()
            .await
            .map_err(|_| ended())?;
        let Some(id) = event.kept_id() else {
            return Err(SettleError::ConnectionLost);
        };
        let (reply, answer) = oneshot::channel();
        let confirm = Confirm {
            settle: PendingSettle {
                topic: event.shared_topic().clone(),
                id,
                epoch,
                op,
            },
            shared: self.clone(),
            reply,
        };
        self.core.pending_ops().confirm(confirm);
        self.core.task_waker.wake();
        answer.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Counts events as settled by an ack-and-publish transaction.
    pub(crate) fn begin_ack_publish(&self, epoch: u64, count: usize) {
        let mut inner = self.inner();
        if epoch == inner.epoch {
            inner.handed_out = inner.handed_out.saturating_sub(count);
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nothing to take at the moment.
struct NothingYet;

impl Inner {
    fn push_ack(&mut self, topic: &Arc<str>, id: Id) {
        if let Some(run) = self.acks.last_mut()
            && run.ids.len() < MAX_GATHERED_ACKS
            && (Arc::ptr_eq(&run.topic, topic) || run.topic == *topic)
        {
            run.ids.push(id);
            return;
        }
        self.acks.push(AckRun {
            topic: topic.clone(),
            ids: vec![id],
        });
    }

    /// What was acknowledged on an earlier connection is acknowledged again and not handed out. Nor is what an
    /// ephemeral subscription handed out before a break.
    fn deliver_unless_done(&mut self, events: &mut Vec<QueuedDelivery>) {
        for arrived in events.drain(..) {
            let event = &arrived.event;
            let was_handed_out = self.resume.as_mut().is_some_and(|resume| {
                resume.arrive(event.seq(), event.ts());
                resume.was_handed_out(event.topic(), event.seq())
            });
            match event.kept_id() {
                Some(id) if was_handed_out || self.late.contains(&id) => {
                    self.push_ack(arrived.event.shared_topic(), id);
                    self.ack_count += 1;
                    self.is_urgent = true;
                }
                _ => self.queue.push_back(arrived),
            }
        }
    }

    fn finish(&mut self, why: Ended) {
        if self.ended.is_none() {
            self.ended = Some(why);
        }
        self.queue.clear();
        self.acks.clear();
        self.settles.clear();
        self.opened = None;
        self.gone = None;
    }
}
