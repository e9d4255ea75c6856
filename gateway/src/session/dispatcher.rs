//! Dispatches the frames of one client, in the order they were sent.
//!
//! Replies keep the order of the frames; events are interleaved. Consecutive PUBLISH frames become one batch, and so
//! do ACK frames without `corr`, which get no OK. SUBSCRIBE, UNSUBSCRIBE and AUTH change how later frames are
//! interpreted, so all earlier frames are completed first.

use super::access::Access;
use super::ack_publish::{AckPublishBatch, AckPublishEvents};
use super::outbound::Outbound;
use super::own_commit::PendingCommit;
use super::publish_batch::{MAX_BATCH_FRAMES, PublishFrames};
use super::replies::{Replies, Reply};
use super::settle_batch::{AckBatch, PendingSettle};
use super::subscriptions::Subscriptions;
use crate::also_publish::{self, Versions};
use crate::api_error::ApiError;
use crate::error_log::ErrorSource;
use crate::gateway::Gateway;
use crate::limits::ConnectionLimits;
use crate::peer::Peer;
use prombus::SettleOp;
use prombus_api::Code;
use prombus_api::frames::{
    Ack, ClientFrame, ClientFrames, GroupName, Ids, Partitions, Publish, Request,
};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The state that frames act on.
pub(super) struct Dispatcher {
    pub(super) gateway: Arc<Gateway>,
    pub(super) access: Access,
    pub(super) limits: ConnectionLimits,
    pub(super) outbound: Outbound,
    pub(super) replies: Replies,
    pub(super) subscriptions: Subscriptions,
    /// Wakes the session's task.
    pub(super) task: Waker,
    /// The name of this client in groups.
    pub(super) peer: Peer,
    /// The server is draining: no new publishes or subscriptions.
    pub(super) is_draining: bool,
    /// PUBLISH frames that were not sent to the bus yet.
    publishes: Option<PublishFrames>,
    /// ACK frames that were not sent to the bus yet.
    acks: Option<AckBatch>,
    /// ACK frames with `publish` that were not sent to the bus yet. While there are some, no other batch is open.
    ack_publishes: Option<AckPublishBatch>,
}

impl Dispatcher {
    pub(super) fn new(gateway: Arc<Gateway>, access: Access, task: Waker, peer: Peer) -> Self {
        Self {
            limits: ConnectionLimits::new(&gateway.options.limits, gateway.monotonic_ms()),
            outbound: Outbound::new(gateway.bus.delivery_memory()),
            gateway,
            access,
            replies: Replies::default(),
            subscriptions: Subscriptions::default(),
            task,
            peer,
            is_draining: false,
            publishes: None,
            acks: None,
            ack_publishes: None,
        }
    }

    /// Dispatches all frames of a message.
    pub(super) async fn handle_message(&mut self, message: &str, now_ms: u64) {
        for frame in ClientFrames::new(message) {
            match frame {
                Ok(ClientFrame { corr, request }) => {
                    self.dispatch(request, corr.as_deref(), now_ms).await;
                }
                Err(mut error) => {
                    let corr = error.corr.take();
                    self.reply_error(error.into(), corr.as_deref());
                }
            }
        }
    }

    async fn dispatch(&mut self, request: Request<'_>, corr: Option<&str>, now_ms: u64) {
        let done = match &request {
            Request::Publish(publish) => return self.publish(publish, corr, now_ms),
            Request::Auth(auth) => return self.authenticate(auth, corr).await,
            _ if !self.access.is_granted() => self.access.check(),
            Request::Ack(ack) if ack.publish.is_empty() => self.ack(ack, corr),
            Request::Ack(ack) => self.ack_publish(ack, corr, now_ms),
            Request::Nack(nack) => {
                let reason = nack.reason.as_deref().unwrap_or_default();
                let op = SettleOp::nack(reason, nack.delay_ms);
                self.settle((&nack.topic, &nack.group), &nack.ids, op, corr)
            }
            Request::Modack(modack) => {
                let extend_ms = modack.extend_ms;
                let op = SettleOp::Extend { extend_ms };
                self.settle((&modack.topic, &modack.group), &modack.ids, op, corr)
            }
            Request::Pause(name) => self.pause(name, corr, true),
            Request::Resume(name) => self.pause(name, corr, false),
            Request::Revoked(revoked) => self.confirm_revoked(revoked, corr).await,
            Request::Subscribe(subscribe) => self.subscribe(subscribe, corr).await,
            Request::Unsubscribe(name) => self.unsubscribe(name, corr).await,
        };
        if let Err(error) = done {
            self.reply_error(error, corr);
        }
    }

    fn publish(&mut self, publish: &Publish<'_>, corr: Option<&str>, now_ms: u64) {
        if publish.options.needs_own_commit() {
            return self.publish_by_itself(publish, corr, now_ms);
        }
        self.flush_ack_publishes();
        let publishes = self
            .publishes
            .get_or_insert_with(|| PublishFrames::new(self.gateway.bus.batch()));
        let allowed = if self.is_draining {
            Err(shutting_down())
        } else {
            self.access.publish(&publish.topic)
        };
        let allowed = allowed.and_then(|topic| {
            let within = within_limits(&self.gateway, &mut self.limits, topic, 1, now_ms);
            within.map(|()| topic)
        });
        match allowed {
            Ok(topic) => {
                #[cfg(feature = "otlp")]
                publishes.trace(&self.gateway, topic, publish);
                publishes.add(topic, publish, corr);
            }
            Err(error) => publishes.reject(error, corr),
        }
        if publishes.len() >= MAX_BATCH_FRAMES {
            self.flush_publishes();
        }
    }

    /// PUBLISH of an event that is to be published later, or with other versions of itself.
    fn publish_by_itself(&mut self, publish: &Publish<'_>, corr: Option<&str>, now_ms: u64) {
        self.flush();
        match self.own_commit(publish, corr, now_ms) {
            Ok(mut pending) => {
                // The commit of a single event begins with its first poll; its reply is written in its turn.
                pending.begin(&mut Context::from_waker(&self.task));
                self.replies.push(Reply::OwnCommit(Box::new(pending)));
            }
            Err(error) => self.reply_error(error, corr),
        }
    }

    fn own_commit(
        &mut self,
        publish: &Publish<'_>,
        corr: Option<&str>,
        now_ms: u64,
    ) -> Result<PendingCommit, ApiError> {
        if self.is_draining {
            return Err(shutting_down());
        }
        let options = &publish.options;
        let topic = self.access.publish(&publish.topic)?.clone();
        let mut also = Vec::with_capacity(options.also_publish.len());
        for other in &options.also_publish {
            also.push(self.access.publish(&other.topic)?.clone());
        }
        if !also.is_empty() {
            also_publish::check(options)?;
        }
        for topic in [&topic].into_iter().chain(&also) {
            within_limits(&self.gateway, &mut self.limits, topic, 1, now_ms)?;
        }
        if also.is_empty() {
            return Ok(PendingCommit::schedule(&self.gateway, topic, publish, corr));
        }
        let versions = Versions::new(&self.gateway, (topic, publish.payload), options, also);
        Ok(PendingCommit::publish(self.gateway.clone(), versions, corr))
    }

    fn ack(&mut self, ack: &Ack<'_>, corr: Option<&str>) -> Result<(), ApiError> {
        self.flush_ack_publishes();
        // The OK must come after the replies to earlier frames.
        if corr.is_some() {
            self.flush_publishes();
        }
        let (member, topic) = self.subscriptions.find_for(&ack.topic, &ack.group)?;
        let Some(topic) = topic else {
            return self.settle((&ack.topic, &ack.group), &ack.ids, SettleOp::Ack, corr);
        };
        match &mut self.acks {
            Some(acks) if acks.fits(member, topic) => acks.add(member, &ack.ids, corr),
            gathered => {
                let mut acks = AckBatch::new(member, topic.into());
                acks.add(member, &ack.ids, corr);
                if let Some(others) = gathered.replace(acks) {
                    self.send_acks(others);
                }
            }
        }
        Ok(())
    }

    /// ACK with `publish`: acknowledges events and publishes others atomically.
    fn ack_publish(
        &mut self,
        ack: &Ack<'_>,
        corr: Option<&str>,
        now_ms: u64,
    ) -> Result<(), ApiError> {
        // Earlier frames are sent first.
        self.flush_publishes();
        self.flush_acks();
        let mut events = AckPublishEvents::new(self.gateway.bus.batch());
        for publish in &ack.publish {
            let topic = self.access.publish(&publish.topic)?;
            events.add(&self.gateway, topic.clone(), publish)?;
        }
        let (member, topic) = self.subscriptions.find_for(&ack.topic, &ack.group)?;
        let topic = match topic {
            Some(topic) => topic.into(),
            None => member.topic_of(&ack.ids)?,
        };
        // Checked last: a rejected frame must not take tokens from the bucket.
        for (topic, count) in events.counts() {
            within_limits(&self.gateway, &mut self.limits, topic, count, now_ms)?;
        }
        match &mut self.ack_publishes {
            Some(batch) if batch.fits(member, &topic) => {
                batch.add(member, &ack.ids, events, corr);
            }
            gathered => {
                let mut batch = AckPublishBatch::new(member, topic);
                batch.add(member, &ack.ids, events, corr);
                if let Some(others) = gathered.replace(batch) {
                    self.send_ack_publishes(others);
                }
            }
        }
        Ok(())
    }

    /// Settles the events of one frame, without batching.
    fn settle(
        &mut self,
        (topic, group): (&str, &str),
        ids: &Ids<'_>,
        op: SettleOp,
        corr: Option<&str>,
    ) -> Result<(), ApiError> {
        self.flush();
        let (member, topic) = self.subscriptions.find_for(topic, group)?;
        let pending = PendingSettle::of_frame(member, topic, ids, op, corr);
        self.replies.push(Reply::Settle(Box::new(pending)));
        Ok(())
    }

    fn pause(
        &mut self,
        name: &GroupName<'_>,
        corr: Option<&str>,
        is_paused: bool,
    ) -> Result<(), ApiError> {
        self.flush();
        let member = self.subscriptions.named(&name.topic, &name.group)?;
        if is_paused {
            member.control.pause()
        } else {
            member.control.resume()
        }
        let corr = corr.map(Box::from);
        self.replies.push(Reply::Ok { corr });
        Ok(())
    }

    /// REVOKED: the client is done with partitions. What it settled of them before counts first; a transaction only counts
    /// when it is written, so the replies are waited for.
    async fn confirm_revoked(
        &mut self,
        revoked: &Partitions<'_>,
        corr: Option<&str>,
    ) -> Result<(), ApiError> {
        self.wait_for_replies().await;
        let (member, _) = self
            .subscriptions
            .find_for(&revoked.topic, &revoked.group)?;
        let partitions = revoked.partitions.clone();
        member.control.confirm_revoked(&revoked.topic, partitions);
        let corr = corr.map(Box::from);
        self.replies.push(Reply::Ok { corr });
        Ok(())
    }

    /// Logs an error if operators should know of it.
    pub(super) fn log_error(&self, error: &ApiError) {
        let source = ErrorSource {
            peer: &self.peer,
            path: "/ws",
            subject: self.access.subject(),
        };
        self.gateway.log_error(error, &source);
    }

    /// Replies to a frame with an error.
    pub(super) fn reply_error(&mut self, error: ApiError, corr: Option<&str>) {
        self.log_error(&error);
        self.flush();
        let (error, corr) = (Box::new(error), corr.map(Box::from));
        self.replies.push(Reply::Error { error, corr });
    }

    /// Sends the open batches to the bus.
    pub(super) fn flush(&mut self) {
        self.flush_publishes();
        self.flush_acks();
        self.flush_ack_publishes();
    }

    /// Waits until all frames so far have their replies.
    pub(super) async fn wait_for_replies(&mut self) {
        self.flush();
        poll_fn(|context| {
            self.poll_replies(context);
            if self.replies.is_empty() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Writes the replies that are ready, and returns whether there were any.
    pub(super) fn poll_replies(&mut self, context: &mut Context<'_>) -> bool {
        let source = ErrorSource {
            peer: &self.peer,
            path: "/ws",
            subject: self.access.subject(),
        };
        let (subscriptions, outbound) = (&mut self.subscriptions, &mut self.outbound);
        self.replies
            .poll_write(context, (&self.gateway, &source), subscriptions, outbound)
    }

    fn flush_publishes(&mut self) {
        if let Some(publishes) = self.publishes.take() {
            let pending = publishes.publish(&self.gateway);
            self.replies.push(Reply::Publish(Box::new(pending)));
        }
    }

    fn flush_acks(&mut self) {
        if let Some(acks) = self.acks.take() {
            self.send_acks(acks);
        }
    }

    fn flush_ack_publishes(&mut self) {
        if let Some(batch) = self.ack_publishes.take() {
            self.send_ack_publishes(batch);
        }
    }

    /// Sends ACKs with `publish` to the owner of their group.
    fn send_ack_publishes(&mut self, batch: AckPublishBatch) {
        if let Some(member) = self.subscriptions.by_number(batch.member()) {
            let pending = batch.send(member);
            self.replies.push(Reply::AckPublish(Box::new(pending)));
        }
    }

    /// Sends acknowledgements to the owner of their group.
    fn send_acks(&mut self, acks: AckBatch) {
        if let Some(member) = self.subscriptions.by_number(acks.member()) {
            let pending = acks.settle(member);
            self.replies.push(Reply::Settle(Box::new(pending)));
        }
    }
}

/// Takes `events` tokens from the buckets for publishing to a topic.
fn within_limits(
    gateway: &Gateway,
    limits: &mut ConnectionLimits,
    topic: &str,
    events: u32,
    now_ms: u64,
) -> Result<(), ApiError> {
    let within = limits.publish(&gateway.topic_limits, topic, events, now_ms);
    within.map_err(|limited| {
        gateway.metrics.rate_limited(limited.limit).increment();
        ApiError::from(limited)
    })
}

pub(super) fn shutting_down() -> ApiError {
    ApiError::new(Code::ShuttingDown, "server is shutting down")
}
