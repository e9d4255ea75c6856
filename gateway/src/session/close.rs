//! Closes a connection: pending frames get their replies, leases are released, and a close frame with the reason is
//! sent.

use super::Session;
use super::inbound::{Inbound, Incoming, Violation};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::time::timeout;

/// How long pending frames may take. Acknowledgements must be settled before leases are released.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the client may take to read the close frame and to close its side.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum CloseReason {
    /// The client is gone.
    Gone,
    /// The client sent a close frame.
    ByClient { code: Option<u16> },
    /// The server shuts down.
    Drained,
    /// Closed by the server.
    Because { code: u16, reason: String },
}

impl CloseReason {
    pub(super) fn new(code: u16, reason: &str) -> Self {
        let reason = reason.to_owned();
        Self::Because { code, reason }
    }
}

impl From<Violation> for CloseReason {
    fn from(violation: Violation) -> Self {
        Self::new(violation.close_code(), &violation.to_string())
    }
}

impl Session {
    /// Ends the connection.
    pub(super) async fn close(mut self, reason: CloseReason) {
        tracing::debug!(peer = %self.dispatcher.peer.address, ?reason, "WebSocket closed");
        let dispatcher = &mut self.dispatcher;
        // Frames without a reply by then have an unknown outcome, as after a lost connection.
        let _ = timeout(REPLY_TIMEOUT, dispatcher.wait_for_replies()).await;
        dispatcher.subscriptions.clear(&dispatcher.gateway);
        let outbound = &mut dispatcher.outbound;
        match &reason {
            CloseReason::Gone => return,
            CloseReason::ByClient { code } => outbound.close(*code, ""),
            CloseReason::Drained => outbound.close(Some(1001), "shutting down"),
            CloseReason::Because { code, reason } => outbound.close(Some(*code), reason),
        }
        let is_by_client = matches!(reason, CloseReason::ByClient { .. });
        // The connection is dropped even if the client neither reads nor closes.
        let _ = timeout(CLOSE_TIMEOUT, self.send_close(is_by_client)).await;
    }

    async fn send_close(&mut self, is_by_client: bool) -> io::Result<()> {
        let outbound = &mut self.dispatcher.outbound;
        poll_fn(|context| outbound.poll_send(context, &mut self.stream, 0)).await?;
        poll_fn(|context| Pin::new(&mut self.stream).poll_shutdown(context)).await?;
        // Closing with unread input would send a reset, and the client would lose the close frame.
        let mut is_over = is_by_client;
        while !is_over {
            let read = poll_fn(|context| self.inbound.poll_read(context, &mut self.stream));
            is_over = read.await? == 0 || has_closed(&mut self.inbound);
        }
        Ok(())
    }
}

/// Discards input, and returns whether the client has closed.
fn has_closed(inbound: &mut Inbound) -> bool {
    loop {
        match inbound.next() {
            Ok(Some(Incoming::Close(_))) => return true,
            Ok(Some(_)) => {}
            Ok(None) => return false,
            // After a protocol violation frames cannot be told apart.
            Err(_) => {
                inbound.forget();
                return false;
            }
        }
    }
}
