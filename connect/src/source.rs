//! Where a projector's events come from: one topic, in order.

#[cfg(feature = "client")]
mod client;

#[cfg(feature = "client")]
pub use client::ClientSource;

use crate::error::SourceError;
use crate::event::Event;
use prombus::error::FollowError;
use prombus::{Bus, ReadError, ReadFrom, ReadLimit};
use std::fmt;
use std::future::Future;
use std::sync::Arc;

/// A stretch of a topic.
#[derive(Debug, Clone, Default)]
pub struct SourcePage {
    /// Events in the order of their positions. Positions may be missing where retention or compaction took them.
    pub events: Vec<Event>,
    /// The newest position of the topic. Where there are events, one before it will do, as long as it is not before the
    /// last of them, and is behind it where there are more.
    pub tail_seq: u64,
}

/// One topic, read in order. The reader keeps the position.
pub trait Source: Send {
    /// The topic.
    fn topic(&self) -> &str;

    /// Reads from a position on, without waiting for more than there is: every event with `seq >= from_seq` up to the
    /// limit, at least one if there is one.
    fn read(
        &mut self,
        from_seq: u64,
        limit: ReadLimit,
    ) -> impl Future<Output = Result<SourcePage, SourceError>> + Send;

    /// Waits until the topic's tail may be something else than `tail_seq`. Coming back early does no harm.
    fn moved(&mut self, tail_seq: u64) -> impl Future<Output = Result<(), SourceError>> + Send;
}

/// A topic of a bus in this process.
#[derive(Clone)]
pub struct BusSource {
    bus: Bus,
    topic: Arc<str>,
}

impl BusSource {
    /// Reads `topic`, which may be yet to be made.
    pub fn new(bus: &Bus, topic: &str) -> Self {
        Self {
            bus: bus.clone(),
            topic: topic.into(),
        }
    }
}

impl Source for BusSource {
    fn topic(&self) -> &str {
        &self.topic
    }

    async fn read(&mut self, from_seq: u64, limit: ReadLimit) -> Result<SourcePage, SourceError> {
        let mut from_seq = from_seq;
        loop {
            let page = self
                .bus
                .store()
                .read(&self.topic, ReadFrom::Seq(from_seq), limit)
                .await?;
            let is_gap = page.events.is_empty() && page.next_seq > from_seq;
            if is_gap && page.next_seq <= page.tail_seq {
                // A stretch of which nothing is kept.
                from_seq = page.next_seq;
                continue;
            }
            return Ok(SourcePage {
                tail_seq: page.tail_seq,
                events: page.events.into_iter().map(Event::from).collect(),
            });
        }
    }

    async fn moved(&mut self, tail_seq: u64) -> Result<(), SourceError> {
        match self.bus.follow(&self.topic, tail_seq + 1) {
            // Following also ends when the bus is closed, where the tail alone would stand still for ever.
            Ok(mut behind_tail) => match behind_tail.next_page().await {
                Ok(None) => Err(SourceError::Closed),
                Ok(Some(_)) | Err(_) => Ok(()),
            },
            Err(FollowError::UnknownTopic(_)) => {
                let mut tail = self.bus.store().watch(&self.topic);
                while tail.current() == tail_seq {
                    if !tail.moved().await {
                        return Err(SourceError::Closed);
                    }
                }
                Ok(())
            }
            // The tail is not where it was; reading will say what that means.
            Err(_) => Ok(()),
        }
    }
}

impl From<ReadError> for SourceError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::UnknownTopic(unknown) => Self::UnknownTopic {
                topic: unknown.topic.to_string(),
            },
            ReadError::Failed { cause } => Self::Failed {
                why: cause.to_string(),
            },
        }
    }
}

impl fmt::Debug for BusSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusSource")
            .field("topic", &self.topic)
            .finish_non_exhaustive()
    }
}
