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
}

impl Conversation {
    pub(super) fn new(gateway: Arc<Gateway>, access: Access, task: Waker, peer: String) -> Self {
        Self {
            limits: ConnectionLimits::new(&gateway.options.limits, gateway.now_ms()),
            gateway,
            access,
            outbound: Outbound::default(),
            replies: Replies::default(),
            subscriptions: Subscriptions::default(),
            task,
            peer,
            is_draining: false,
            gathered: None,
            acks: None,
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
            Request::Ack(ack) => self.ack(ack, corr),
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
        let gathered = self
            .gathered
            .get_or_insert_with(|| Gathered::new(self.gateway.bus.batch()));
        let allowed = match self.is_draining {
            true => Err(shutting_down()),
            false => self.access.publish(&publish.topic),
        };
        let allowed = allowed.and_then(|topic| {
            let limits = &self.gateway.topic_limits;
            let within = self.limits.publish(limits, topic, 1, now_ms);
            within.map(|()| topic).map_err(|limited| {
                self.gateway.metrics.rate_limited(limited.limit).increment();
                Denied::from(limited)
            })
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
        if !ack.publish.is_empty() {
            let why = "publish: acknowledging and publishing in one step is not supported yet";
            return Err(Denied::new(Code::BadFrame, why));
        }
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
        if let Some(acks) = self.acks.take() {
            self.send_off(acks);
        }
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

pub(super) fn shutting_down() -> Denied {
    Denied::new(Code::ShuttingDown, "the server is going down")
}
