//! What a subscriber may ask for.

use crate::error::SubscribeError;
use prombus_api::options::{Filter, Ordering, Position, SubscribeOptions as WireOptions};

/// What a subscriber may ask for. What is `None` is as the group has it, or the server's default for a new group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscribeOptions {
    /// Where a new group begins. An existing one goes on from its cursor.
    pub from: Position,
    /// The most events that the server hands over at a time.
    pub batch_size: usize,
    /// The most events that are delivered and not settled.
    pub max_in_flight: usize,
    /// How long a lease is; 30000 for a new group.
    pub ack_timeout_ms: Option<u64>,
    /// After how many failed deliveries an event is dead; 5 for a new group.
    pub max_attempts: Option<u32>,
    /// In which order events come; unordered for a new group.
    pub ordering: Option<Ordering>,
    /// Which events the group wants; all for a new group.
    pub filter: Option<Filter>,
    /// More topics, or patterns of them, that come in through the same subscription.
    pub topics: Vec<String>,
    /// A handler that succeeds does not acknowledge; it has to do so itself.
    pub manual_ack: bool,
    /// How many handlers run at a time.
    pub concurrency: usize,
    /// Events of earlier versions of their topic's schema come as ones of the latest.
    pub upcast: bool,
    /// Each partition of the topic goes to one member at a time. Not so for a new group.
    pub partitioned: Option<bool>,
}

/// The most handlers of one subscription.
const MAX_CONCURRENCY: usize = 10_000;

impl Default for SubscribeOptions {
    fn default() -> Self {
        Self {
            from: Position::Latest,
            batch_size: 100,
            max_in_flight: 1_000,
            ack_timeout_ms: None,
            max_attempts: None,
            ordering: None,
            filter: None,
            topics: Vec::new(),
            manual_ack: false,
            concurrency: 1,
            upcast: false,
            partitioned: None,
        }
    }
}

impl SubscribeOptions {
    /// Checks what the server does not see, or sees too late.
    pub(super) fn check(&self) -> Result<(), SubscribeError> {
        let bad = |name, why| Err(SubscribeError::BadOption { name, why });
        if self.max_in_flight == 0 {
            return bad("max_in_flight", "it has to be at least 1");
        }
        if !(1..=MAX_CONCURRENCY).contains(&self.concurrency) {
            return bad("concurrency", "it has to be 1 to 10000");
        }
        Ok(())
    }

    /// As they go over the wire, from `start`.
    pub(crate) fn wire(&self, start: Position) -> WireOptions {
        WireOptions {
            start: Some(start),
            batch_size: Some(self.batch_size),
            max_in_flight: Some(self.max_in_flight),
            ack_timeout_ms: self.ack_timeout_ms,
            max_attempts: self.max_attempts,
            manual_ack: None,
            filter: self.filter.clone(),
            topics: self.topics.clone(),
            ordering: self.ordering,
            upcast: self.upcast.then_some(true),
            partitioned: self.partitioned,
        }
    }
}
