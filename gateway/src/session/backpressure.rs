//! Backpressure: how much is buffered for a client, and what happens to its subscriptions when it does not read.
//!
//! A socket whose buffer stays full is stalled: what its subscriptions have not handed over goes back to their groups,
//! and nothing is leased to them until the client has read on. So no lease runs out in a buffer of ours that could have
//! gone to another member.

use super::Session;
use crate::gateway::Gateway;

/// While more than this waits to be sent, nothing is delivered and nothing is read.
pub(super) const SEND_BUFFER_BYTES: usize = 256 << 10;
/// The same once the events that wait for all clients have used up what is set aside for them.
const SCARCE_BUFFER_BYTES: usize = 16 << 10;
/// The most memory that is kept when everything was sent.
const KEPT_BYTES: usize = 128 << 10;
/// A client that has not read for so long is not leased to.
const STALLED_AFTER_MS: u64 = 500;

/// Since when a client has not read, where that is so.
#[derive(Debug, Default)]
pub(super) struct Stall {
    full_since_ms: Option<u64>,
    is_stalled: bool,
}

/// How many bytes may wait to be sent before deliveries stop.
pub(super) fn send_limit(gateway: &Gateway) -> usize {
    match gateway.bus.delivery_memory().free_bytes() {
        0 => SCARCE_BUFFER_BYTES,
        _ => SEND_BUFFER_BYTES,
    }
}

/// How much memory an empty buffer keeps.
pub(super) fn kept_bytes(gateway: &Gateway) -> usize {
    send_limit(gateway).min(KEPT_BYTES)
}

impl Session {
    /// Whether there is room for events.
    pub(super) fn has_delivery_room(&self) -> bool {
        let limit = send_limit(&self.dispatcher.gateway);
        self.waiting_bytes() < limit
    }

    /// Whether there is room for replies, so that frames can be read.
    pub(super) fn has_room(&self) -> bool {
        self.waiting_bytes() < SEND_BUFFER_BYTES
    }

    /// Tracks whether the send buffer is full.
    pub(super) fn note_room(&mut self) {
        let is_full = !self.has_delivery_room();
        let dispatcher = &mut self.dispatcher;
        dispatcher.outbound.count();
        if is_full {
            let now_ms = || dispatcher.gateway.monotonic_ms();
            self.stall.full_since_ms.get_or_insert_with(now_ms);
        } else if self.stall.full_since_ms.take().is_some()
            && std::mem::take(&mut self.stall.is_stalled)
        {
            dispatcher.subscriptions.set_stalled(false);
        }
    }

    /// Stalls the subscriptions of a client that has not read for long.
    pub(super) fn stall_if_due(&mut self, now_ms: u64) {
        if self
            .stall
            .moment_ms()
            .is_some_and(|due_ms| due_ms <= now_ms)
        {
            self.stall.is_stalled = true;
            self.dispatcher.subscriptions.set_stalled(true);
        }
    }

    fn waiting_bytes(&self) -> usize {
        self.dispatcher.outbound.waiting()
    }
}

impl Stall {
    /// When the subscriptions are stalled, should the client not read until then.
    pub(super) fn moment_ms(&self) -> Option<u64> {
        let since_ms = self.full_since_ms.filter(|_| !self.is_stalled)?;
        Some(since_ms.saturating_add(STALLED_AFTER_MS))
    }
}
