//! One connection: reads, writes and timers in one loop that never waits for one of them while another could go on.

use super::handshake::{Connected, auth_frame, broken, closed};
use super::routes::Routes;
use super::timers::{Due, Timers};
use super::{Link, SessionEnd};
use crate::publish::outbox::Reply;
use crate::socket::{Incoming, Socket, SocketError};
use crate::subscription::shared::{QueuedDelivery, Shared};
use crate::subscription::{AckPublish, Confirm};
use crate::token::Token;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A connection at work.
pub(super) struct Session<'a> {
    pub(super) link: &'a mut Link,
    socket: Socket,
    pub(super) timers: Timers,
    pub(super) routes: Routes,
    /// Frames other than publishes that go out next, with commas between them.
    pub(super) controls: Vec<u8>,
    /// Subscriptions to be looked at.
    pub(super) dirty: Vec<Arc<Shared>>,
    /// Subscriptions whose acknowledgements wait for others.
    pub(super) lingering: Vec<Arc<Shared>>,
    pub(super) confirms: VecDeque<Confirm>,
    pub(super) ack_publishes: VecDeque<AckPublish>,
    /// Replies of one message, kept for its allocation.
    pub(super) replies: Vec<Reply>,
    /// Deliveries of one message to one subscription, kept for its allocation.
    pub(super) arriving: Vec<QueuedDelivery>,
    /// A fresh token that was asked for.
    refreshing: Option<Refreshing>,
    /// Whether anything came on this connection.
    pub(super) has_received: bool,
    /// Whether the socket takes nothing at the moment.
    is_blocked: bool,
    pub(super) has_begun_to_close: bool,
    has_sent_close: bool,
}

type Refreshing = Pin<Box<dyn Future<Output = Result<Option<Token>, String>> + Send>>;

/// How often the loop goes round before others get their turn.
const MAX_POLLS: usize = 64;

/// How many messages are read before something is written.
const MAX_READS: usize = 16;

impl<'a> Session<'a> {
    pub(super) fn new(link: &'a mut Link, connected: Connected) -> Self {
        let Connected { socket, token } = connected;
        let refresh_after = token.and_then(|token| token.refresh_after);
        let subscriptions = link.subscriptions.values();
        let dirty = subscriptions.map(|entry| entry.shared.clone()).collect();
        Self {
            timers: Timers::new(&link.core.options, refresh_after),
            link,
            socket,
            routes: Routes::default(),
            controls: Vec::new(),
            dirty,
            lingering: Vec::new(),
            confirms: VecDeque::new(),
            ack_publishes: VecDeque::new(),
            replies: Vec::new(),
            arriving: Vec::new(),
            refreshing: None,
            has_received: false,
            is_blocked: false,
            has_begun_to_close: false,
            has_sent_close: false,
        }
    }

    /// Ready when the connection has ended.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<SessionEnd> {
        for _ in 0..MAX_POLLS {
            match self.poll_once(context) {
                Err(end) => return Poll::Ready(end),
                Ok(true) => {}
                Ok(false) => {
                    self.link.core.task_waker.register(context.waker());
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
    fn poll_once(&mut self, context: &mut Context<'_>) -> Result<bool, SessionEnd> {
        let has_read = self.read(context)?;
        let has_written = self.write(context)?;
        let was_due = self.poll_timers(context)?;
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
                    self.timers.has_received = true;
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

    fn poll_timers(&mut self, context: &mut Context<'_>) -> Result<bool, SessionEnd> {
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
                return Err(self.lost(&SocketError::Gone(why)));
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
        let has_word = !self.dirty.is_empty()
            || !self.ack_publishes.is_empty()
            || !core.pending_ops().is_empty()
            || (core.is_closing() && !self.has_begun_to_close);
        !self.controls.is_empty()
            || core.outbox().has_queued()
            || (has_word && !self.link.requests.is_full())
    }

    /// What goes out next: word from subscriptions, then publishes.
    fn next_message(&mut self) -> Option<Vec<u8>> {
        self.collect_frames();
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

    /// Whether the client is closing and nothing is left to do.
    fn is_finished(&self) -> bool {
        self.has_begun_to_close
            && self.controls.is_empty()
            && self.dirty.is_empty()
            && self.ack_publishes.is_empty()
            && self.link.requests.is_empty()
            && self.link.core.pending_ops().is_empty()
            && self.link.core.outbox().is_empty()
    }

    /// Appends a frame to the next message.
    pub(super) fn push_control(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let separator = if self.controls.is_empty() { b'[' } else { b',' };
        self.controls.push(separator);
        write(&mut self.controls);
    }

    pub(super) fn lost(&self, why: &SocketError) -> SessionEnd {
        SessionEnd::Lost(broken(&self.link.core.endpoint, why))
    }
}
