//! One WebSocket connection: a single task that reads frames, acts on them, delivers events and writes, so that nothing
//! on its way from the socket to the bus and back has to change tasks.
//!
//! ```text
//!   socket ──▶ Inbound ──▶ Conversation ──▶ bus            PUBLISH in batches, ACK in batches
//!     ▲                      │  │  ▲
//!     └──── Outbound ◀── Replies  Subscriptions ◀── bus    replies in order, events as there is room
//! ```
//!
//! Everything has a limit: what may wait for replies, what may wait to be sent, what is read before others have their
//! turn. A client that does not read stops being read from and delivered to, and costs others nothing.

mod access;
mod asking;
mod bell;
mod closing;
mod conversation;
mod corrs;
mod entering;
mod flight;
mod inbound;
mod outbound;
mod publishing;
mod replies;
mod room;
mod settling;
mod stepping;
mod subscriptions;
mod timing;
mod upgrade;

pub(crate) use upgrade::{NextSession, is_upgrade, upgrade};

use crate::auth::{AuthError, Grant};
use crate::denied::Denied;
use crate::gateway::Gateway;
use access::Access;
use closing::End;
use conversation::Conversation;
use inbound::{Inbound, Incoming};
use prombus_api::Code;
use publishing::write_denied;
use room::{Stall, kept_bytes, send_limit};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use subscriptions::Delivered;
use timing::{Due, Timing};
use tokio::net::TcpStream;

/// What is read before it is stored and deliveries have their turn. A client that has much in flight gets its first
/// replies while the rest is still being read, so that both sides are at work all the time.
const BURST_BYTES: usize = 64 << 10;
/// How often deliveries have their turn before other connections do.
const TURNS: usize = 8;
/// The largest message of a client that has shown no token.
const STRANGER_MESSAGE_BYTES: usize = 64 << 10;
/// How long a client has to acknowledge what it holds when the server goes down.
const LAST_ACKS_MS: u64 = 1_000;

/// One connection.
pub(crate) struct Session {
    stream: TcpStream,
    inbound: Inbound,
    conversation: Conversation,
    timing: Timing,
    /// Resolves when the server goes down.
    told_to_stop: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Whole messages may have been read that nobody has heard.
    is_unheard: bool,
    /// Whether messages may be as large as they may be at all.
    is_trusted: bool,
    /// When a client without a token is sent away.
    token_due_ms: Option<u64>,
    /// Until when the rate limit holds deliveries back.
    slowed_until_ms: Option<u64>,
    /// Whether the client reads what it is sent.
    stall: Stall,
    /// Once the server goes down: until when acknowledgements are waited for.
    drained_by_ms: Option<u64>,
}

/// What there is to do.
enum Turn {
    Read,
    Due(Due),
    Drain,
    End(End),
}

impl Session {
    /// Serves a connection to its end. `read_already` was read behind the request for the upgrade.
    pub(crate) async fn serve(
        gateway: Arc<Gateway>,
        stream: TcpStream,
        read_already: &[u8],
        grant: Option<Grant>,
    ) {
        let _counted = Counted::new(gateway.clone());
        let task = poll_fn(|context| Poll::Ready(context.waker().clone())).await;
        let peer = stream.peer_addr().map(|address| address.to_string());
        let now_ms = gateway.now_ms();
        let token_due_ms = match grant {
            Some(_) => None,
            None => Some(now_ms + gateway.options.request_timeout_ms),
        };
        let stopping = gateway.clone();
        let access = Access::new(grant);
        let mut session = Self {
            stream,
            inbound: Inbound::new(read_already, STRANGER_MESSAGE_BYTES),
            conversation: Conversation::new(gateway, access, task, peer.unwrap_or_default()),
            timing: Timing::new(now_ms),
            told_to_stop: Box::pin(async move { stopping.told_to_stop().await }),
            is_unheard: !read_already.is_empty(),
            is_trusted: false,
            token_due_ms,
            slowed_until_ms: None,
            stall: Stall::default(),
            drained_by_ms: None,
        };
        session.trust();
        let end = session.run().await;
        session.close(end).await;
    }

    async fn run(&mut self) -> End {
        loop {
            let end = match poll_fn(|context| self.poll_turn(context)).await {
                Turn::Read => self.read().await.err(),
                Turn::Due(due) => self.take_due(due),
                Turn::Drain => {
                    self.begin_drain();
                    None
                }
                Turn::End(end) => Some(end),
            };
            if let Some(end) = end {
                return end;
            }
        }
    }

    /// Answers, delivers and sends until that leads no further, and waits for something to do.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Turn> {
        if self.drained_by_ms.is_none() && self.told_to_stop.as_mut().poll(context).is_ready() {
            return Poll::Ready(Turn::Drain);
        }
        if let Poll::Ready(due) = self.poll_due(context) {
            return Poll::Ready(due);
        }
        for turn in 1.. {
            let is_moving = match self.talk(context) {
                Ok(is_moving) => is_moving,
                Err(_) => return Poll::Ready(Turn::End(End::Gone)),
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
        match self.is_drained() {
            true => Poll::Ready(Turn::End(End::Drained)),
            // Talking may have set a moment that is earlier than the one that is waited for.
            false => self.poll_due(context),
        }
    }

    fn poll_due(&mut self, context: &mut Context<'_>) -> Poll<Turn> {
        let moment_ms = self.moment_ms();
        let gateway = &self.conversation.gateway;
        let due = self.timing.poll_due(context, gateway, moment_ms);
        due.map(Turn::Due)
    }

    /// Writes replies and events and sends them, and says whether there may be more at once.
    fn talk(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let has_answered = self.conversation.answer(context);
        let mut has_more = false;
        if self.drained_by_ms.is_none() && self.slowed_until_ms.is_none() {
            has_more = self.deliver();
        }
        let kept_bytes = kept_bytes(&self.conversation.gateway);
        while !self.conversation.outbound.send(&self.stream, kept_bytes)? {
            if self.stream.poll_write_ready(context)?.is_pending() {
                break;
            }
        }
        self.note_room();
        // Only now, for sending may have made the room that was missing.
        let is_moving = has_answered || (has_more && self.has_delivery_room());
        Ok(is_moving && self.has_room())
    }

    fn deliver(&mut self) -> bool {
        let Conversation {
            gateway,
            limits,
            outbound,
            subscriptions,
            ..
        } = &mut self.conversation;
        let limit_bytes = send_limit(gateway);
        match subscriptions.deliver(gateway, limits, outbound, limit_bytes) {
            Delivered::All => false,
            Delivered::More => true,
            Delivered::Slowed { again_ms } => {
                self.slowed_until_ms = Some(again_ms);
                false
            }
        }
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Turn> {
        if self.conversation.replies.is_full() || !self.has_room() {
            return Poll::Pending;
        }
        if !self.is_unheard && ready!(self.stream.poll_read_ready(context)).is_err() {
            return Poll::Ready(Turn::End(End::Gone));
        }
        Poll::Ready(Turn::Read)
    }

    /// Reads a burst and acts on what it brings.
    async fn read(&mut self) -> Result<(), End> {
        let now_ms = self.conversation.gateway.now_ms();
        if self.conversation.access.is_expired(now_ms) {
            return Err(self.expire());
        }
        let mut burst = 0;
        loop {
            self.hear(now_ms).await?;
            if self.is_unheard || burst >= BURST_BYTES {
                break;
            }
            // Its waker is the task's own, so that waiting for the socket goes on where this leaves off.
            let mut context = Context::from_waker(&self.conversation.task);
            match self.inbound.poll_read(&mut context, &mut self.stream) {
                Poll::Ready(Ok(read)) if read > 0 => burst += read,
                Poll::Ready(_) => return Err(End::Gone),
                Poll::Pending => break,
            }
        }
        if burst > 0 {
            self.timing.hear(now_ms);
        }
        self.conversation.flush();
        self.inbound.shrink();
        Ok(())
    }

    /// Acts on the messages that have been read, as long as their replies find room.
    async fn hear(&mut self, now_ms: u64) -> Result<(), End> {
        self.is_unheard = false;
        while let Some(incoming) = self.inbound.next()? {
            match incoming {
                Incoming::Text(text) => self.conversation.hear(text, now_ms).await,
                Incoming::Ping(payload) => self.conversation.outbound.pong(payload),
                Incoming::Pong => {}
                Incoming::Close(code) => return Err(End::ByClient { code }),
            }
            if !self.is_trusted {
                self.trust();
            }
            if self.conversation.replies.is_full() || !self.has_room() {
                self.is_unheard = true;
                break;
            }
        }
        Ok(())
    }

    /// Lets a client that has shown a token send as much as is allowed.
    fn trust(&mut self) {
        if self.conversation.access.is_granted() {
            let limits = &self.conversation.gateway.options.limits;
            self.inbound.set_max_message_bytes(limits.max_message_bytes);
            self.is_trusted = true;
            self.token_due_ms = None;
        }
    }

    /// The next moment at which the session acts by itself.
    fn moment_ms(&self) -> Option<u64> {
        let expires_at_ms = self.conversation.access.expires_at_ms();
        let moments = [
            expires_at_ms,
            self.token_due_ms,
            self.slowed_until_ms,
            self.drained_by_ms,
            self.stall.moment_ms(),
        ];
        moments.into_iter().flatten().min()
    }

    fn take_due(&mut self, due: Due) -> Option<End> {
        let now_ms = self.conversation.gateway.now_ms();
        self.conversation.subscriptions.expire(now_ms);
        self.stall_if_due(now_ms);
        match due {
            Due::Ping => {
                self.conversation.outbound.ping();
                self.inbound.rest();
                self.conversation.outbound.rest();
            }
            Due::Unanswered => {
                return Some(End::because(1002, "a ping was not answered"));
            }
            Due::Other if self.conversation.access.is_expired(now_ms) => {
                return Some(self.expire());
            }
            Due::Other if self.token_due_ms.is_some_and(|due_ms| due_ms <= now_ms) => {
                let outbound = &mut self.conversation.outbound;
                write_denied(outbound, &AuthError::Missing.into(), None);
                return Some(End::because(1008, "no token came in time"));
            }
            Due::Other => {
                let is_over = |until_ms: &u64| *until_ms <= now_ms;
                if self.slowed_until_ms.as_ref().is_some_and(is_over) {
                    self.slowed_until_ms = None;
                }
                if self.drained_by_ms.as_ref().is_some_and(is_over) {
                    return Some(End::Drained);
                }
            }
        }
        None
    }

    fn expire(&mut self) -> End {
        let why = Denied::new(Code::TokenExpired, "the token has expired");
        write_denied(&mut self.conversation.outbound, &why, None);
        End::because(1008, "the token has expired")
    }

    /// Takes nothing new, and gives back what the client has not seen.
    fn begin_drain(&mut self) {
        self.conversation.is_draining = true;
        for member in self.conversation.subscriptions.iter() {
            member.control.pause();
        }
        let gateway = &self.conversation.gateway;
        let wait_ms = LAST_ACKS_MS.min(gateway.options.drain_timeout_ms / 2);
        self.drained_by_ms = Some(gateway.now_ms() + wait_ms);
    }

    /// Whether everything was answered and acknowledged, once the server goes down.
    fn is_drained(&self) -> bool {
        self.drained_by_ms.is_some()
            && self.conversation.replies.is_empty()
            && self.conversation.subscriptions.is_settled()
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
