//! The end of a connection: what was said is answered, leases are freed, and the client is told why.

use super::Session;
use super::inbound::{Inbound, Incoming, Violation};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::time::timeout;

/// How long the last frames get to be answered. What was acknowledged has to be settled before leases are freed.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// How long the client gets to take the last words and to close its side.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum End {
    /// The client is gone.
    Gone,
    /// The client said so.
    ByClient { code: Option<u16> },
    /// The server goes down.
    Drained,
    /// The client did something that cannot go on.
    Because { code: u16, reason: String },
}

impl End {
    pub(super) fn because(code: u16, reason: &str) -> Self {
        let reason = reason.to_owned();
        Self::Because { code, reason }
    }
}

impl From<Violation> for End {
    fn from(violation: Violation) -> Self {
        Self::because(violation.close_code(), &violation.to_string())
    }
}

impl Session {
    /// Ends the connection.
    pub(super) async fn close(mut self, end: End) {
        tracing::debug!(peer = self.conversation.peer, ?end, "a socket ends");
        let conversation = &mut self.conversation;
        // Whoever did not get an answer by then does not know what became of the frame, as after any cut.
        let _ = timeout(LAST_ANSWERS, conversation.answer_all()).await;
        conversation.subscriptions.clear(&conversation.gateway);
        let outbound = &mut conversation.outbound;
        match &end {
            End::Gone => return,
            End::ByClient { code } => outbound.close(*code, ""),
            End::Drained => outbound.close(Some(1001), "shutting down"),
            End::Because { code, reason } => outbound.close(Some(*code), reason),
        }
        let is_asked_for = matches!(end, End::ByClient { .. });
        // A client that neither reads nor closes is let go all the same.
        let _ = timeout(LAST_WORDS, self.say_goodbye(is_asked_for)).await;
    }

    async fn say_goodbye(&mut self, is_asked_for: bool) -> io::Result<()> {
        while !self.conversation.outbound.send(&self.stream, 0)? {
            self.stream.writable().await?;
        }
        poll_fn(|context| Pin::new(&mut self.stream).poll_shutdown(context)).await?;
        // To go while something is unread would take the last words back from a client that has not read them.
        let mut is_over = is_asked_for;
        while !is_over {
            let read = poll_fn(|context| self.inbound.poll_read(context, &mut self.stream));
            is_over = read.await? == 0 || has_closed(&mut self.inbound);
        }
        Ok(())
    }
}

/// Passes over what a client still sends, and says whether it has closed.
fn has_closed(inbound: &mut Inbound) -> bool {
    loop {
        match inbound.next() {
            Ok(Some(Incoming::Close(_))) => return true,
            Ok(Some(_)) => {}
            Ok(None) => return false,
            // After a violation nothing can be told apart any more.
            Err(_) => {
                inbound.forget();
                return false;
            }
        }
    }
}
