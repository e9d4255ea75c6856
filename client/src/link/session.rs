//! One connection: reads, writes and timers in one loop that never waits for one of them while another could go on.

use super::handshake::{Connected, auth_frame, broken, closed};
use super::requests::{Request, reply};
use super::routes::Routes;
use super::timers::{Due, Timers};
use super::{Link, Seat, SeatState, SessionEnd};
use crate::error::SettleError;
use crate::id::Id;
use crate::publish::outbox::Reply;
use crate::socket::{Broken, Incoming, Socket};
use crate::subscription::shared::{Arrived, Shared};
use crate::subscription::{AckRun, Confirm, Ended, Settle, Settling};
use crate::token::Token;
use prombus_api::frames::{
    Ack, Ids, Modack, Nack, Subscribe, write_ack, write_modack, write_nack, write_pause,
    write_resume, write_subscribe, write_unsubscribe,
};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A connection at work.
pub(super) struct Session<'a> {
    pub(super) link: &'a mut Link,
    socket: Socket,
    timers: Timers,
    pub(super) routes: Routes,
    /// Frames other than publishes that go out next, with commas between them.
    controls: Vec<u8>,
    /// Subscriptions to be looked at.
    touched: Vec<Arc<Shared>>,
    /// Subscriptions whose acknowledgements wait for others.
    lingering: Vec<Arc<Shared>>,
    confirms: VecDeque<Confirm>,
    /// Replies of one message, kept for its allocation.
    pub(super) replies: Vec<Reply>,
    /// Deliveries of one message to one subscription, kept for its allocation.
    pub(super) arriving: Vec<Arrived>,
    /// A fresh token that was asked for.
    refreshing: Option<Refreshing>,
    /// Whether the socket takes nothing at the moment.
    is_blocked: bool,
    has_begun_to_close: bool,
    has_sent_close: bool,
}

type Refreshing = Pin<Box<dyn Future<Output = Result<Option<Token>, String>> + Send>>;

/// How often the loop goes round before others get their turn.
const MAX_ROUNDS: usize = 64;

/// How many messages are read before something is written.
const MAX_READS: usize = 16;

impl<'a> Session<'a> {
    pub(super) fn new(link: &'a mut Link, connected: Connected) -> Self {
        let Connected { socket, token } = connected;
        let refresh_after = token.and_then(|token| token.refresh_after);
        let seats = link.seats.values();
        let touched = seats.map(|seat| seat.shared.clone()).collect();
        Self {
            timers: Timers::new(&link.core.options, refresh_after),
            link,
            socket,
            routes: Routes::default(),
            controls: Vec::new(),
            touched,
            lingering: Vec::new(),
            confirms: VecDeque::new(),
            replies: Vec::new(),
            arriving: Vec::new(),
            refreshing: None,
            is_blocked: false,
            has_begun_to_close: false,
            has_sent_close: false,
        }
    }

    /// Ready when the connection has ended.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<SessionEnd> {
        for _ in 0..MAX_ROUNDS {
            match self.round(context) {
                Err(end) => return Poll::Ready(end),
                Ok(true) => {}
                Ok(false) => {
                    self.link.core.bell.sleep(context.waker());
                    if self.is_blocked || !self.has_work() {
                        return Poll::Pending;
                    }
                }
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Does what can be done now; `false` where there was nothing.
    fn round(&mut self, context: &mut Context<'_>) -> Result<bool, SessionEnd> {
        let has_read = self.read(context)?;
        let has_written = self.write(context)?;
        let was_due = self.keep_time(context)?;
        Ok(has_read || has_written || was_due)
    }

    fn read(&mut self, context: &mut Context<'_>) -> Result<bool, SessionEnd> {
        for count in 0..MAX_READS {
            match self.socket.poll_message(context) {
                Poll::Pending => return Ok(count > 0),
                Poll::Ready(None) if self.has_sent_close => return Err(SessionEnd::Finished),
                Poll::Ready(None) => {
                    return Err(SessionEnd::Lost(closed(&self.link.core.endpoint)));
                }
                Poll::Ready(Some(message)) => {
                    self.timers.has_heard = true;
                    if let Incoming::Text(text) = message.map_err(|why| self.lost(&why))? {
                        self.take(text.as_str())?;
                    }
                }
            }
        }
        Ok(true)
    }

    fn write(&mut self, context: &mut Context<'_>) -> Result<bool, SessionEnd> {
        let mut has_written = false;
        self.is_blocked = false;
        loop {
            match self.socket.poll_ready(context) {
                Poll::Pending => {
                    self.is_blocked = true;
                    break;
                }
                Poll::Ready(ready) => ready.map_err(|why| self.lost(&why))?,
            }
            let Some(message) = self.next_message() else {
                break;
            };
            self.socket.send(message).map_err(|why| self.lost(&why))?;
            has_written = true;
        }
        if !self.is_blocked && self.is_finished() && !self.has_sent_close {
            self.has_sent_close = true;
            self.socket.close().map_err(|why| self.lost(&why))?;
        }
        match self.socket.poll_flush(context) {
            Poll::Ready(Ok(())) if self.has_sent_close => Err(SessionEnd::Finished),
            Poll::Ready(Err(why)) => Err(self.lost(&why)),
            Poll::Ready(Ok(())) | Poll::Pending => Ok(has_written),
        }
    }

    fn keep_time(&mut self, context: &mut Context<'_>) -> Result<bool, SessionEnd> {
        if let Some(refreshing) = &mut self.refreshing
            && let Poll::Ready(token) = refreshing.as_mut().poll(context)
        {
            self.refreshing = None;
            // A provider that fails here is asked again for the next connection, when this token has expired.
            if let Ok(Some(token)) = token {
                self.timers.refresh_after(token.refresh_after);
                self.push_control(|out| out.extend_from_slice(&auth_frame(Some(&token))));
            }
            return Ok(true);
        }
        let Poll::Ready(due) = self.timers.poll(context) else {
            return Ok(false);
        };
        match due {
            Due::Ping => self.socket.ping().map_err(|why| self.lost(&why))?,
            Due::Dead => {
                let why = "it did not answer a ping".to_owned();
                return Err(self.lost(&Broken::Gone(why)));
            }
            Due::Acks => {
                for shared in std::mem::take(&mut self.lingering) {
                    self.serve(&shared, true);
                }
            }
            Due::Token => {
                let source = self.link.core.options.token.clone();
                self.refreshing = Some(Box::pin(async move { source.token().await }));
            }
        }
        Ok(true)
    }

    fn has_work(&self) -> bool {
        let core = &self.link.core;
        !self.controls.is_empty()
            || !self.touched.is_empty()
            || core.outbox().has_queued()
            || !core.desk().is_empty()
            || (core.is_closing() && !self.has_begun_to_close)
    }

    /// What goes out next: word from subscriptions, then publishes.
    fn next_message(&mut self) -> Option<Vec<u8>> {
        self.gather();
        if !self.controls.is_empty() {
            let mut message = std::mem::take(&mut self.controls);
            message.push(b']');
            return Some(message);
        }
        let chunk = self.link.core.outbox().take_queued()?;
        let message = chunk.message();
        self.link.sent.push_back(chunk);
        Some(message)
    }

    /// Turns what subscriptions want into frames.
    fn gather(&mut self) {
        let core = self.link.core.clone();
        core.desk().take(&mut self.touched, &mut self.confirms);
        let is_closing = core.is_closing();
        if is_closing && !self.has_begun_to_close {
            self.has_begun_to_close = true;
            let seats = self.link.seats.values();
            self.touched.extend(seats.map(|seat| seat.shared.clone()));
        }
        for shared in std::mem::take(&mut self.touched) {
            self.serve(&shared, is_closing);
        }
        while let Some(confirm) = self.confirms.pop_front() {
            self.write_confirm(confirm);
        }
    }

    /// Whether the client is closing and nothing is left to do.
    fn is_finished(&self) -> bool {
        self.has_begun_to_close
            && self.controls.is_empty()
            && self.touched.is_empty()
            && self.link.requests.is_empty()
            && self.link.core.desk().is_empty()
            && self.link.core.outbox().is_empty()
    }

    /// A subscription may want something.
    pub(super) fn look_at(&mut self, shared: Arc<Shared>) {
        self.touched.push(shared);
    }

    /// Does what one subscription wants.
    fn serve(&mut self, shared: &Arc<Shared>, flush_acks: bool) {
        let seat = self
            .link
            .seats
            .entry(shared.number)
            .or_insert_with(|| Seat {
                shared: shared.clone(),
                state: SeatState::New,
                is_told_paused: false,
                was_open: false,
            });
        match seat.state {
            SeatState::New if shared.is_done() => return self.forget(shared),
            SeatState::New => {
                seat.state = SeatState::Asked;
                shared.seen();
                return self.write_subscribe(shared);
            }
            SeatState::Asked => return shared.seen(),
            SeatState::Open => {}
        }
        let wants = shared.wants(flush_acks);
        let is_told_paused = std::mem::replace(&mut seat.is_told_paused, wants.is_paused);
        let group = shared.group();
        if wants.is_paused != is_told_paused {
            let corr = self.link.requests.add(Request::Settle);
            self.push_control(|out| match wants.is_paused {
                true => write_pause(out, &shared.topic, &group, Some(&corr)),
                false => write_resume(out, &shared.topic, &group, Some(&corr)),
            });
        }
        for settling in &wants.settlings {
            let corr = self.link.requests.add(Request::Settle);
            self.push_control(|out| write_settling(out, &group, settling, Some(&corr)));
        }
        for run in wants.acks {
            self.write_acks(shared, &group, run);
        }
        if wants.has_more_acks {
            let is_same = |other: &Arc<Shared>| Arc::ptr_eq(other, shared);
            if !self.lingering.iter().any(is_same) {
                self.lingering.push(shared.clone());
            }
            self.timers.linger();
        }
        if wants.is_gone {
            let request = Request::Unsubscribe(shared.take_gone());
            let corr = self.link.requests.add(request);
            self.push_control(|out| write_unsubscribe(out, &shared.topic, &group, Some(&corr)));
            self.forget(shared);
        }
    }

    /// The subscription is over.
    pub(super) fn forget(&mut self, shared: &Shared) {
        self.link.seats.remove(&shared.number);
        self.routes.forget();
        shared.end(Ended::Unsubscribed);
    }

    fn write_subscribe(&mut self, shared: &Shared) {
        let corr = self.link.requests.add(Request::Subscribe(shared.number));
        let subscribe = Subscribe {
            topic: Cow::Borrowed(&shared.topic),
            group: shared.named_group.as_deref().map(Cow::Borrowed),
            options: Box::new(shared.options.wire(shared.start())),
        };
        self.push_control(|out| write_subscribe(out, &subscribe, Some(&corr)));
    }

    fn write_acks(&mut self, shared: &Arc<Shared>, group: &str, run: AckRun) {
        let topic = run.topic.clone();
        let ids: Vec<Id> = run.ids.clone();
        let corr = self.link.requests.add(Request::Acks(shared.clone(), run));
        let ack = Ack {
            topic: Cow::Borrowed(&topic),
            group: Cow::Borrowed(group),
            ids: Ids::Many(ids.iter().map(|id| Cow::Borrowed(id.as_str())).collect()),
            publish: Vec::new(),
        };
        self.push_control(|out| write_ack(out, &ack, Some(&corr)));
    }

    fn write_confirm(&mut self, confirm: Confirm) {
        let is_ack = matches!(confirm.settling.what, Settle::Ack);
        if !is_ack && confirm.shared.epoch() != confirm.settling.epoch {
            reply(confirm, Err(SettleError::ConnectionLost));
            return;
        }
        let group = confirm.shared.group();
        let settling = confirm.settling.clone();
        let corr = self.link.requests.add(Request::Confirm(confirm));
        self.push_control(|out| write_settling(out, &group, &settling, Some(&corr)));
    }

    /// Appends a frame to the next message.
    fn push_control(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let separator = if self.controls.is_empty() { b'[' } else { b',' };
        self.controls.push(separator);
        write(&mut self.controls);
    }

    pub(super) fn lost(&self, why: &Broken) -> SessionEnd {
        SessionEnd::Lost(broken(&self.link.core.endpoint, why))
    }
}

fn write_settling(out: &mut Vec<u8>, group: &str, settling: &Settling, corr: Option<&str>) {
    let topic = Cow::Borrowed(&*settling.topic);
    let group = Cow::Borrowed(group);
    let ids = Ids::One(Cow::Borrowed(settling.id.as_str()));
    match &settling.what {
        Settle::Ack => {
            let publish = Vec::new();
            let ack = Ack {
                topic,
                group,
                ids,
                publish,
            };
            write_ack(out, &ack, corr);
        }
        Settle::Nack { reason, delay_ms } => {
            let nack = Nack {
                topic,
                group,
                ids,
                reason: Some(Cow::Borrowed(reason)),
                delay_ms: *delay_ms,
            };
            write_nack(out, &nack, corr);
        }
        Settle::Extend { extend_ms } => {
            let extend_ms = *extend_ms;
            let modack = Modack {
                topic,
                group,
                ids,
                extend_ms,
            };
            write_modack(out, &modack, corr);
        }
    }
}
