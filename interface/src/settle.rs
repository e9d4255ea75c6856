//! How an event is settled: the one description of it on the way from a consumer to the owner of the group.

use serde::{Deserialize, Serialize};

/// What is to become of a leased event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettleOp {
    /// The event is done.
    Ack,
    /// The event failed and is delivered again. Boxed, so that a queue of acknowledgements stays small.
    Nack(Box<Nack>),
    /// The deadline moves to `max(1000, extend_ms)` from now; without a time, to as long as leases of the group are.
    Extend {
        /// Milliseconds from now.
        extend_ms: Option<u64>,
    },
}

/// Why an event failed, and when it is delivered again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nack {
    /// The reason, which the dead letter shows.
    pub reason: String,
    /// When it is delivered again.
    pub retry: Retry,
}

/// When a failed event is delivered again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// After a delay that doubles with each failure.
    Backoff,
    /// After this long.
    After {
        /// Milliseconds.
        delay_ms: u64,
    },
    /// Now: its member left the group, and others can take it.
    AtOnce,
}

impl SettleOp {
    /// A negative acknowledgement; the event is delivered again after `delay_ms`, or after a backoff.
    pub fn nack(reason: impl Into<String>, delay_ms: Option<u64>) -> Self {
        Self::Nack(Box::new(Nack {
            reason: reason.into(),
            retry: delay_ms.map_or(Retry::Backoff, |delay_ms| Retry::After { delay_ms }),
        }))
    }

    /// An extension of the lease by this long.
    pub fn extend(extend_ms: u64) -> Self {
        let extend_ms = Some(extend_ms);
        Self::Extend { extend_ms }
    }

    /// Whether the event stays leased.
    pub fn is_extension(&self) -> bool {
        matches!(self, Self::Extend { .. })
    }
}

impl Nack {
    /// The delay that was asked for; none is a backoff.
    pub fn delay_ms(&self) -> Option<u64> {
        match self.retry {
            Retry::Backoff => None,
            Retry::After { delay_ms } => Some(delay_ms),
            Retry::AtOnce => Some(0),
        }
    }
}
