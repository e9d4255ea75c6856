//! One WebSocket connection: a single task that reads frames, dispatches them, delivers events and writes, so that a
//! frame changes tasks nowhere between socket and bus.
//!
//! ```text
//!   socket ──▶ Inbound ──▶ Dispatcher ──▶ bus            PUBLISH in batches, ACK in batches
//!     ▲                      │  │  ▲
//!     └──── Outbound ◀── Replies  Subscriptions ◀── bus    replies in order, events as there is room
//! ```
//!
//! Pending replies, the send buffer and each read are bounded. A client that does not read is not read from and not
//! delivered to.

mod access;
mod ack_publish;
mod backpressure;
mod close;
mod correlation_ids;
mod dispatcher;
mod inbound;
mod outbound;
mod own_commit;
mod publish_batch;
mod replies;
mod settle;
mod settle_batch;
mod subscribe;
mod subscriptions;
mod timers;
mod upgrade;
mod waker;

pub(crate) use upgrade::{NextSession, is_upgrade, upgrade};

use crate::api_error::ApiError;
use crate::auth::{AuthError, Grant};
use crate::gateway::Gateway;
use crate::in_flight::Now;
use crate::peer::Peer;
use crate::transport::Transport;
use access::Access;
use backpressure::{Stall, kept_bytes, send_limit};
use close::CloseReason;
use dispatcher::Dispatcher;
use inbound::{Inbound, Incoming};
use prombus_api::Code;
use publish_batch::write_api_error;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use subscriptions::Delivered;
use timers::{Due, Timers};

/// What is read before it is stored and deliveries have their turn. A client that has much in flight gets its first
/// replies while the rest is still being read, so that both sides are at work all the time.
const BURST_BYTES: usize = 64 << 10;
/// How often deliveries have their turn before other connections do.
const TURNS: usize = 8;
/// The largest message before authentication.
const UNAUTHENTICATED_MESSAGE_BYTES: usize = 64 << 10;
/// How long a draining server waits for acknowledgements.
const DRAIN_ACKS_MS: u64 = 1_000;

/// One connection.
pub(crate) struct Session {
    stream: Transport,
    inbound: Inbound,
    dispatcher: Dispatcher,
    timers: Timers,
    /// Resolves when the server shuts down.
    drained: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Complete messages may be in the read buffer.
    has_unread_messages: bool,
    /// Whether messages may be as large as they may be at all.
    is_authenticated: bool,
    /// When an unauthenticated client is disconnected.
    token_due_ms: Option<u64>,
    /// Until when deliveries are throttled.
    throttled_until_ms: Option<u64>,
    /// Whether the client reads what it is sent.
    stall: Stall,
    /// Once the server shuts down: until when acknowledgements are waited for.
    drained_by_ms: Option<u64>,
}

/// What there is to do.
enum Turn {
    Read,
    Due(Due),
    Drain,
    End(CloseReason),
}

impl Session {
    /// Serves a connection to its end. `read_already` was read behind the request for the upgrade.
    pub(crate) async fn serve(
        gateway: Arc<Gateway>,
        stream: Transport,
        peer: Peer,
        read_already: &[u8],
        grant: Option<Grant>,
    ) {
        let _counted = Counted::new(gateway.clone());
        let task = poll_fn(|context| Poll::Ready(context.waker().clone())).await;
        let now_ms = gateway.monotonic_ms();
        let token_due_ms = match grant {
            Some(_) => None,
            None => Some(now_ms + gateway.options.request_timeout_ms),
        };
        let stopping = gateway.clone();
        let access = Access::new(grant);
        let mut session = Self {
            stream,
            inbound: Inbound::new(read_already, UNAUTHENTICATED_MESSAGE_BYTES),
            dispatcher: Dispatcher::new(gateway, access, task, peer),
            timers: Timers::new(now_ms),
            drained: Box::pin(async move { stopping.drained().await }),
            has_unread_messages: !read_already.is_empty(),
            is_authenticated: false,
            token_due_ms,
            throttled_until_ms: None,
            stall: Stall::default(),
            drained_by_ms: None,
        };
        session.lift_message_limit();
        let reason = session.run().await;
        session.close(reason).await;
    }

    async fn run(&mut self) -> CloseReason {
        loop {
            let end = match poll_fn(|context| self.poll_turn(context)).await {
                Turn::Read => self.read().await.err(),
                Turn::Due(due) => self.take_due(due),
                Turn::Drain => {
                    self.begin_drain();
                    None
                }
                Turn::End(reason) => Some(reason),
            };
            if let Some(end) = end {
                return end;
            }
        }
    }

    /// Flushes until there is nothing to send, then waits for input or a timer.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Turn> {
        if self.drained_by_ms.is_none() && self.drained.as_mut().poll(context).is_ready() {
            return Poll::Ready(Turn::Drain);
        }
        if let Poll::Ready(due) = self.poll_due(context) {
            return Poll::Ready(due);
        }
        for turn in 1.. {
            let is_moving = match self.flush(context) {
                Ok(is_moving) => is_moving,
                Err(_) => return Poll::Ready(Turn::End(CloseReason::Gone)),
            };
            if let Poll::Ready(turn) = self.poll_read(context) {
                return Poll::Ready(turn);
            }
            if !is_moving {
                break;
            }
            if turn >= TURNS {
                context.waker().wake_by_ref();
                break;
            }
        }
        if self.is_drained() {
            Poll::Ready(Turn::End(CloseReason::Drained))
        } else {
            // Flushing may have set an earlier deadline.
            self.poll_due(context)
        }
    }

    fn poll_due(&mut self, context: &mut Context<'_>) -> Poll<Turn> {
        let moment_ms = self.moment_ms();
        let gateway = &self.dispatcher.gateway;
        let due = self.timers.poll_due(context, gateway, moment_ms);
        due.map(Turn::Due)
    }

    /// Writes and sends replies and events, and returns whether there may be more at once.
    fn flush(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let has_answered = self.dispatcher.poll_replies(context);
        let mut has_more = false;
        if self.drained_by_ms.is_none() && self.throttled_until_ms.is_none() {
            has_more = self.deliver();
        }
        let kept_bytes = kept_bytes(&self.dispatcher.gateway);
        let outbound = &mut self.dispatcher.outbound;
        let sent_before = outbound.sent_total();
        if let Poll::Ready(sent) = outbound.poll_send(context, &mut self.stream, kept_bytes) {
            sent?;
        }
        let is_ping_sent = outbound.is_ping_sent();
        if outbound.sent_total() > sent_before {
            let now_ms = self.dispatcher.gateway.monotonic_ms();
            self.timers
                .note_sent(&self.dispatcher.gateway, now_ms, is_ping_sent);
        }
        self.note_room();
        // Only now, for sending may have made the room that was missing.
        let is_moving = has_answered || (has_more && self.has_delivery_room());
        Ok(is_moving && self.has_room())
    }

    fn deliver(&mut self) -> bool {
        let Dispatcher {
            gateway,
            limits,
            outbound,
            subscriptions,
            ..
        } = &mut self.dispatcher;
        let limit_bytes = send_limit(gateway);
        match subscriptions.deliver(gateway, limits, outbound, limit_bytes) {
            Delivered::All => false,
            Delivered::More => true,
            Delivered::Throttled { again_ms } => {
                self.throttled_until_ms = Some(again_ms);
                false
            }
        }
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Turn> {
        if self.dispatcher.replies.is_full() || !self.has_room() {
            return Poll::Pending;
        }
        if !self.has_unread_messages && ready!(self.stream.poll_read_ready(context)).is_err() {
            return Poll::Ready(Turn::End(CloseReason::Gone));
        }
        Poll::Ready(Turn::Read)
    }

    /// Reads a burst and dispatches its messages.
    async fn read(&mut self) -> Result<(), CloseReason> {
        let Now {
            wall_ms,
            monotonic_ms: now_ms,
        } = self.dispatcher.gateway.now();
        if self.dispatcher.access.is_expired(wall_ms) {
            return Err(self.expire());
        }
        let mut burst = 0;
        loop {
            self.handle_messages(now_ms).await?;
            if self.has_unread_messages || burst >= BURST_BYTES {
                break;
            }
            // Its waker is the task's own, so that waiting for the socket goes on where this leaves off.
            let mut context = Context::from_waker(&self.dispatcher.task);
            match self.inbound.poll_read(&mut context, &mut self.stream) {
                Poll::Ready(Ok(read)) if read > 0 => burst += read,
                Poll::Ready(_) => return Err(CloseReason::Gone),
                Poll::Pending => break,
            }
        }
        if burst > 0 {
            self.timers.note_received(now_ms);
        }
        self.dispatcher.flush();
        self.inbound.shrink();
        Ok(())
    }

    /// Dispatches the messages in the read buffer, as long as there is room for replies.
    async fn handle_messages(&mut self, now_ms: u64) -> Result<(), CloseReason> {
        self.has_unread_messages = false;
        while let Some(incoming) = self.inbound.next()? {
            match incoming {
                Incoming::Text(text) => self.dispatcher.handle_message(text, now_ms).await,
                Incoming::Ping(payload) => self.dispatcher.outbound.pong(payload),
                Incoming::Pong => {}
                Incoming::Close(code) => return Err(CloseReason::ByClient { code }),
            }
            if !self.is_authenticated {
                self.lift_message_limit();
            }
            if self.dispatcher.replies.is_full() || !self.has_room() {
                self.has_unread_messages = true;
                break;
            }
        }
        Ok(())
    }

    /// After authentication, messages may be as large as `max_message_bytes`.
    fn lift_message_limit(&mut self) {
        if self.dispatcher.access.is_granted() {
            let limits = &self.dispatcher.gateway.options.limits;
            self.inbound.set_max_message_bytes(limits.max_message_bytes);
            self.is_authenticated = true;
            self.token_due_ms = None;
        }
    }

    /// The next moment at which the session acts by itself.
    fn moment_ms(&self) -> Option<u64> {
        let now = self.dispatcher.gateway.now();
        // Tokens expire by the wall clock, which may have been set since the last look.
        let expires_at_ms = self.dispatcher.access.expires_at_ms().map(|at_ms| {
            let left_ms = at_ms.saturating_sub(now.wall_ms);
            now.monotonic_ms.saturating_add(left_ms)
        });
        let moments = [
            expires_at_ms,
            self.token_due_ms,
            self.throttled_until_ms,
            self.drained_by_ms,
            self.stall.moment_ms(),
        ];
        moments.into_iter().flatten().min()
    }

    fn take_due(&mut self, due: Due) -> Option<CloseReason> {
        let Now {
            wall_ms,
            monotonic_ms: now_ms,
        } = self.dispatcher.gateway.now();
        self.dispatcher.subscriptions.expire(now_ms);
        self.stall_if_due(now_ms);
        match due {
            Due::Ping => {
                self.dispatcher.outbound.ping();
                self.inbound.rest();
                self.dispatcher.outbound.rest();
            }
            Due::Unanswered => {
                return Some(CloseReason::new(1002, "pong timeout"));
            }
            Due::Other if self.dispatcher.access.is_expired(wall_ms) => {
                return Some(self.expire());
            }
            Due::Other if self.token_due_ms.is_some_and(|due_ms| due_ms <= now_ms) => {
                let outbound = &mut self.dispatcher.outbound;
                write_api_error(outbound, &AuthError::Missing.into(), None);
                return Some(CloseReason::new(1008, "authentication timeout"));
            }
            Due::Other => {
                let is_over = |until_ms: &u64| *until_ms <= now_ms;
                if self.throttled_until_ms.as_ref().is_some_and(is_over) {
                    self.throttled_until_ms = None;
                }
                if self.drained_by_ms.as_ref().is_some_and(is_over) {
                    return Some(CloseReason::Drained);
                }
            }
        }
        None
    }

    fn expire(&mut self) -> CloseReason {
        let error = ApiError::new(Code::TokenExpired, "token expired");
        write_api_error(&mut self.dispatcher.outbound, &error, None);
        CloseReason::new(1008, "token expired")
    }

    /// Stops taking new work, and returns undelivered events to their groups.
    fn begin_drain(&mut self) {
        self.dispatcher.is_draining = true;
        for member in self.dispatcher.subscriptions.iter() {
            member.control.pause();
        }
        let gateway = &self.dispatcher.gateway;
        let wait_ms = DRAIN_ACKS_MS.min(gateway.options.drain_timeout_ms / 2);
        self.drained_by_ms = Some(gateway.monotonic_ms() + wait_ms);
    }

    /// Whether everything was replied to and acknowledged, once the server shuts down.
    fn is_drained(&self) -> bool {
        self.drained_by_ms.is_some()
            && self.dispatcher.replies.is_empty()
            && self.dispatcher.subscriptions.is_settled()
    }
}

/// Counts a connection for as long as it lives.
struct Counted(Arc<Gateway>);

impl Counted {
    fn new(gateway: Arc<Gateway>) -> Self {
        gateway.metrics.connections.add(1);
        Self(gateway)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.metrics.connections.sub(1);
    }
}
