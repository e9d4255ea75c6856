//! The connection's task: it connects, serves one connection after the other, and ends when it is not needed any more.

mod handshake;
mod incoming;
mod outgoing;
mod requests;
mod routes;
mod session;
mod timers;

use crate::core::{Core, Phase};
use crate::error::ConnectError;
use crate::publish::outbox::Chunk;
use crate::subscription::Ended;
use crate::subscription::shared::Shared;
use handshake::Connected;
use requests::Requests;
use session::Session;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Starts the task. What comes back is ready when the first connection is open, and fails when the client ended before.
pub(crate) fn start(runtime: &Handle, core: Arc<Core>) -> oneshot::Receiver<()> {
    let (connected, first) = oneshot::channel();
    let link = Link {
        _ending: Ending(core.clone()),
        core,
        connected: Some(connected),
        sent: VecDeque::new(),
        subscriptions: BTreeMap::new(),
        requests: Requests::default(),
        refused_token: None,
    };
    runtime.spawn(link.run());
    first
}

/// What outlives a single connection.
struct Link {
    core: Arc<Core>,
    /// Told when the first connection is open.
    connected: Option<oneshot::Sender<()>>,
    /// Publishes that were sent and are not all acknowledged.
    sent: VecDeque<Chunk>,
    /// Subscriptions by their numbers.
    subscriptions: BTreeMap<u64, SubscriptionEntry>,
    /// Frames that an answer is expected for.
    requests: Requests,
    /// A token that the server refused; the same one is not tried again.
    refused_token: Option<String>,
    /// Dropped last, whatever happens to the task, so that no caller waits for ever.
    _ending: Ending,
}

/// A subscription as this connection sees it.
struct SubscriptionEntry {
    shared: Arc<Shared>,
    state: EntryState,
    server_is_paused: bool,
    /// Whether an earlier connection had it.
    was_open: bool,
}

/// How far subscribing has come on this connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryState {
    New,
    /// The server was asked. It takes nothing else about the subscription before it has replied.
    Subscribing,
    Open,
}

/// How a connection ended.
enum SessionEnd {
    /// There is nothing left to do.
    Finished,
    /// It broke; there will be another.
    Lost(ConnectError),
    /// There is no use in another.
    Permanent(ConnectError),
}

impl Link {
    async fn run(mut self) {
        let mut phase = self.core.watch_phase();
        let close_timeout = self.core.options.close_timeout;
        let overdue = async move {
            let closing = phase
                .wait_for(|phase| *phase == Phase::Closing)
                .await
                .is_ok();
            if closing {
                tokio::time::sleep(close_timeout).await;
            }
        };
        let why = tokio::select! {
            why = self.live() => why,
            () = overdue => ConnectError::Closed,
        };
        self.end(why);
    }

    /// One connection after the other, until there is a reason to end.
    async fn live(&mut self) -> ConnectError {
        let mut failures: u32 = 0;
        loop {
            let why = match self.connect().await {
                Ok(connected) => {
                    if let Some(first) = self.connected.take() {
                        // The waiter may have gone away; then the client is closing.
                        let _ = first.send(());
                    }
                    let (end, was_useful) = self.serve(connected).await;
                    if was_useful {
                        failures = 0;
                    }
                    match end {
                        SessionEnd::Finished => return ConnectError::Closed,
                        SessionEnd::Permanent(why) => return why,
                        SessionEnd::Lost(why) => why,
                    }
                }
                Err(why) if self.is_permanent(&why) => return why,
                Err(why) => why,
            };
            failures += 1;
            let reconnect = self.core.options.reconnect;
            if reconnect.max_attempts.is_some_and(|max| failures > max) {
                return ConnectError::GaveUp {
                    attempts: failures,
                    last: Box::new(why),
                };
            }
            self.pause(reconnect.pause(failures, fastrand::f64())).await;
            if self.core.is_closing() && !self.has_unfinished() {
                return ConnectError::Closed;
            }
        }
    }

    /// Whether another attempt would end the same.
    fn is_permanent(&self, why: &ConnectError) -> bool {
        let is_first = self.connected.is_some();
        match why {
            ConnectError::Refused(_) => true,
            _ => is_first && !self.core.options.wait_for_server,
        }
    }

    /// Waits before the next attempt. Closing interrupts the wait.
    async fn pause(&self, pause: Duration) {
        let mut phase = self.core.watch_phase();
        let is_closing = self.core.is_closing();
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = phase.wait_for(|phase| *phase != Phase::Open), if !is_closing => {}
        }
    }

    /// Whether something is left that a connection is needed for.
    fn has_unfinished(&self) -> bool {
        !self.core.outbox().is_empty()
            || self
                .subscriptions
                .values()
                .any(|entry| entry.shared.has_acks())
    }

    /// Serves a connection to its end, and says whether anything came on it: a server that lets one in only to throw
    /// one out is not worth hurrying back to.
    async fn serve(&mut self, connected: Connected) -> (SessionEnd, bool) {
        let mut session = Session::new(self, connected);
        let end = std::future::poll_fn(|context| session.poll(context)).await;
        let was_useful = session.has_received;
        drop(session);
        self.disconnect();
        (end, was_useful)
    }

    /// Puts everything that the connection did not finish back to where the next one finds it.
    fn disconnect(&mut self) {
        let completed = self.core.outbox().rewind(&mut self.sent);
        self.core.complete(completed);
        let mut lost = self.requests.clear(&self.core);
        for entry in self.subscriptions.values_mut() {
            entry.state = EntryState::New;
            entry.server_is_paused = false;
            let lost = lost.remove(&entry.shared.number).unwrap_or_default();
            entry.shared.disconnect(lost);
        }
    }

    fn end(&mut self, why: ConnectError) {
        self.core.end(why);
        let why = self.core.end_reason();
        for entry in std::mem::take(&mut self.subscriptions).into_values() {
            entry.shared.end(Ended::Client(why.clone()));
        }
    }
}

/// Ends the client when the task goes away without having done so, as with its runtime.
struct Ending(Arc<Core>);

impl Drop for Ending {
    fn drop(&mut self) {
        if self.0.ended().is_none() {
            self.0.end(ConnectError::Closed);
        }
    }
}
