//! What one client and the server say to each other: every frame is acted on in the order it was sent.
//!
//! Replies come in the order of the frames. Events come in between. Consecutive PUBLISH frames are stored as one
//! batch, and acknowledgements without `corr`, which get no OK, are gathered beside them. SUBSCRIBE, UNSUBSCRIBE and
//! AUTH change what the frames behind them mean, so everything before them is answered first.

use super::access::Access;
use super::asking::What;
use super::outbound::Outbound;
use super::publishing::{Gathered, MAX_BATCH_FRAMES};
use super::replies::{Replies, Reply};
use super::settling::{Acks, Settling};
use super::stepping::{Results, Steps};
use super::subscriptions::Subscriptions;
use crate::denied::Denied;
use crate::gateway::Gateway;
use crate::limits::ConnectionLimits;
use prombus_api::Code;
use prombus_api::frames::{Ack, ClientFrame, ClientFrames, GroupName, Ids, Publish, Request};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Everything that frames act on.
pub(super) struct Conversation {
    pub(super) gateway: Arc<Gateway>,
    pub(super) access: Access,
    pub(super) limits: ConnectionLimits,
    pub(super) outbound: Outbound,
    pub(super) replies: Replies,
    pub(super) subscriptions: Subscriptions,
    /// Wakes the task that this runs in.
    pub(super) task: Waker,
    /// How groups name this client.
    pub(super) peer: String,
    /// The server is going down, and nothing new begins.
    pub(super) is_draining: bool,
    /// PUBLISH frames that have not been handed to the bus.
    gathered: Option<Gathered>,
    /// ACK frames that have not been handed to the bus.
    acks: Option<Acks>,
    /// ACK frames with `publish` that have not been handed to the bus. While there are some, nothing else is gathered.
    steps: Option<Steps>,
}

impl Conversation {
    pub(super) fn new(gateway: Arc<Gateway>, access: Access, task: Waker, peer: String) -> Self {
        Self {
            limits: ConnectionLimits::new(&gateway.options.limits, gateway.now_ms()),
            outbound: Outbound::new(gateway.bus.delivery_memory()),
            gateway,
            access,
            replies: Replies::default(),
            subscriptions: Subscriptions::default(),
            task,
            peer,
            is_draining: false,
            gathered: None,
            acks: None,
            steps: None,
        }
    }

    /// Acts on all frames of a message.
    pub(super) async fn hear(&mut self, message: &str, now_ms: u64) {
        for frame in ClientFrames::new(message) {
            match frame {
                Ok(ClientFrame { corr, request }) => {
                    self.act(request, corr.as_deref(), now_ms).await;
                }
                Err(error) => {
                    let why = Denied::new(error.code, error.message);
                    self.deny(why, error.corr.as_deref());
                }
            }
        }
    }

    async fn act(&mut self, request: Request<'_>, corr: Option<&str>, now_ms: u64) {
        let done = match &request {
            Request::Publish(publish) => return self.publish(publish, corr, now_ms),
            Request::Auth(auth) => return self.authenticate(auth, corr).await,
            _ if !self.access.is_granted() => self.access.check(),
            Request::Ack(ack) if ack.publish.is_empty() => self.ack(ack, corr),
            Request::Ack(ack) => self.step(ack, corr, now_ms),
            Request::Nack(nack) => {
                let reason = nack.reason.as_deref().unwrap_or_default().to_owned();
                let delay_ms = nack.delay_ms;
                let what = What::Nack { reason, delay_ms };
                self.settle((&nack.topic, &nack.group), &nack.ids, what, corr)
            }
            Request::Modack(modack) => {
                let extend_ms = modack.extend_ms;
                let what = What::Extend { extend_ms };
                self.settle((&modack.topic, &modack.group), &modack.ids, what, corr)
            }
            Request::Pause(name) => self.pause(name, corr, true),
            Request::Resume(name) => self.pause(name, corr, false),
            Request::Subscribe(subscribe) => self.subscribe(subscribe, corr).await,
            Request::Unsubscribe(name) => self.unsubscribe(name, corr).await,
        };
        if let Err(why) = done {
            self.deny(why, corr);
        }
    }

    fn publish(&mut self, publish: &Publish<'_>, corr: Option<&str>, now_ms: u64) {
        self.flush_steps();
        let gathered = self
            .gathered
            .get_or_insert_with(|| Gathered::new(self.gateway.bus.batch()));
        let allowed = match self.is_draining {
            true => Err(shutting_down()),
            false => self.access.publish(&publish.topic),
        };
        let allowed = allowed.and_then(|topic| {
            let within = within_limits(&self.gateway, &mut self.limits, topic, 1, now_ms);
            within.map(|()| topic)
        });
        match allowed {
            Ok(topic) => gathered.add(topic, publish, corr),
            Err(why) => gathered.refuse(why, corr),
        }
        if gathered.len() >= MAX_BATCH_FRAMES {
            self.flush_publishes();
        }
    }

    fn ack(&mut self, ack: &Ack<'_>, corr: Option<&str>) -> Result<(), Denied> {
        self.flush_steps();
        // An OK has its place behind the replies to the frames before it.
        if corr.is_some() {
            self.flush_publishes();
        }
        let (member, topic) = self.subscriptions.find_for(&ack.topic, &ack.group)?;
        let Some(topic) = topic else {
            return self.settle((&ack.topic, &ack.group), &ack.ids, What::Ack, corr);
        };
        match &mut self.acks {
            Some(acks) if acks.fits(member, topic) => acks.add(member, &ack.ids, corr),
            gathered => {
                let mut acks = Acks::new(member, topic.into());
                acks.add(member, &ack.ids, corr);
                if let Some(others) = gathered.replace(acks) {
                    self.send_off(others);
                }
            }
        }
        Ok(())
    }

    /// Acknowledges events and publishes others in one step.
    fn step(&mut self, ack: &Ack<'_>, corr: Option<&str>, now_ms: u64) -> Result<(), Denied> {
        // What was sent before comes before.
        self.flush_publishes();
        self.flush_acks();
        let mut results = Results::new(self.gateway.bus.batch());
        for publish in &ack.publish {
            let topic = self.access.publish(&publish.topic)?;
            results.add(topic.clone(), publish);
        }
        let (member, topic) = self.subscriptions.find_for(&ack.topic, &ack.group)?;
        let topic = match topic {
            Some(topic) => topic.into(),
            None => member.topic_of(&ack.ids)?,
        };
        // Last, for what is refused does not count.
        for (topic, count) in results.counts() {
            within_limits(&self.gateway, &mut self.limits, topic, count, now_ms)?;
        }
        match &mut self.steps {
            Some(steps) if steps.fits(member, &topic) => {
                steps.add(member, &ack.ids, results, corr);
            }
            gathered => {
                let mut steps = Steps::new(member, topic);
                steps.add(member, &ack.ids, results, corr);
                if let Some(others) = gathered.replace(steps) {
                    self.begin(others);
                }
            }
        }
        Ok(())
    }

    /// Settles events by a frame of its own.
    fn settle(
        &mut self,
        (topic, group): (&str, &str),
        ids: &Ids<'_>,
        what: What,
        corr: Option<&str>,
    ) -> Result<(), Denied> {
        self.flush();
        let (member, topic) = self.subscriptions.find_for(topic, group)?;
        let mut settling = Settling::of_frame(member, topic, ids, what, corr);
        // It is sent by being polled; the reply waits for its turn.
        let _ = settling.poll(&mut Context::from_waker(&self.task));
        self.replies.push(Reply::Settling(Box::new(settling)));
        Ok(())
    }

    fn pause(
        &mut self,
        name: &GroupName<'_>,
        corr: Option<&str>,
        is_paused: bool,
    ) -> Result<(), Denied> {
        self.flush();
        let member = self.subscriptions.named(&name.topic, &name.group)?;
        match is_paused {
            true => member.control.pause(),
            false => member.control.resume(),
        }
        let corr = corr.map(Box::from);
        self.replies.push(Reply::Ok { corr });
        Ok(())
    }

    /// Refuses a frame.
    pub(super) fn deny(&mut self, why: Denied, corr: Option<&str>) {
        self.flush();
        let (why, corr) = (Box::new(why), corr.map(Box::from));
        self.replies.push(Reply::Denied { why, corr });
    }

    /// Hands what was gathered to the bus.
    pub(super) fn flush(&mut self) {
        self.flush_publishes();
        self.flush_acks();
        self.flush_steps();
    }

    /// Waits until all frames so far are answered.
    pub(super) async fn answer_all(&mut self) {
        self.flush();
        poll_fn(|context| {
            self.answer(context);
            match self.replies.is_empty() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    /// Writes the replies that are known, and says whether there were any.
    pub(super) fn answer(&mut self, context: &mut Context<'_>) -> bool {
        let (subscriptions, outbound) = (&mut self.subscriptions, &mut self.outbound);
        self.replies
            .poll_write(context, &self.gateway, subscriptions, outbound)
    }

    fn flush_publishes(&mut self) {
        if let Some(gathered) = self.gathered.take() {
            let publishing = gathered.publish(&self.gateway);
            self.replies.push(Reply::Publishing(Box::new(publishing)));
        }
    }

    fn flush_acks(&mut self) {
        if let Some(acks) = self.acks.take() {
            self.send_off(acks);
        }
    }

    fn flush_steps(&mut self) {
        if let Some(steps) = self.steps.take() {
            self.begin(steps);
        }
    }

    /// Sends steps to the owner of their group.
    fn begin(&mut self, steps: Steps) {
        if let Some(member) = self.subscriptions.by_number(steps.member()) {
            let mut stepping = steps.begin(member);
            // They are sent by being polled; the replies wait for their turn.
            let _ = stepping.poll(&mut Context::from_waker(&self.task));
            self.replies.push(Reply::Stepping(Box::new(stepping)));
        }
    }

    /// Sends acknowledgements to the owner of their group.
    fn send_off(&mut self, acks: Acks) {
        if let Some(member) = self.subscriptions.by_number(acks.member()) {
            let mut settling = acks.settle(member);
            // It is sent by being polled; the reply waits for its turn.
            let _ = settling.poll(&mut Context::from_waker(&self.task));
            self.replies.push(Reply::Settling(Box::new(settling)));
        }
    }
}

/// Whether so many events may be published to a topic now; then they count as published.
fn within_limits(
    gateway: &Gateway,
    limits: &mut ConnectionLimits,
    topic: &str,
    events: u32,
    now_ms: u64,
) -> Result<(), Denied> {
    let within = limits.publish(&gateway.topic_limits, topic, events, now_ms);
    within.map_err(|limited| {
        gateway.metrics.rate_limited(limited.limit).increment();
        Denied::from(limited)
    })
}

pub(super) fn shutting_down() -> Denied {
    Denied::new(Code::ShuttingDown, "the server is going down")
}
