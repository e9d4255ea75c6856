//! Reading a topic in order from a position on, and waiting at its end for more. Nothing is leased or acknowledged:
//! the caller keeps the position.

use crate::bus::Bus;
use crate::core::{Closing, Core};
use crate::error::{FollowError, InvalidField, TopicReplaced, UnknownTopic};
use crate::partition::PartitionSet;
use prombus_interface::Ahead;
use prombus_interface::names::check_topic;
use prombus_store::{Page, ReadFrom, ReadLimit, Store, StoredEvent, TailWatch};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// How much one page brings at most: this many events, and about this many bytes.
pub(crate) const PAGE: ReadLimit = ReadLimit {
    events: 4_096,
    bytes: 1 << 20,
};

/// Reads a topic in order and waits at its tail.
pub struct Follow {
    store: Arc<dyn Store>,
    topic: Arc<str>,
    next_seq: u64,
    tail: TailWatch,
    closing: Closing,
    ahead: Ahead,
    /// The partitions whose events are wanted, where not all are.
    partitions: Option<PartitionSet>,
}

impl Bus {
    /// Follows a topic from a position on, in order, with every event once: 1 is its beginning, and one more than
    /// its tail is what comes next. The caller stores [`Follow::next_seq`] to resume later.
    pub fn follow(&self, topic: &str, from_seq: u64) -> Result<Follow, FollowError> {
        Follow::new(self.core(), topic, from_seq)
    }
}

impl Follow {
    pub(crate) fn new(core: &Core, topic: &str, from_seq: u64) -> Result<Self, FollowError> {
        check_topic(topic)?;
        // Watched before it is looked at, so that no move is missed.
        let tail = core.store.watch(&topic.into());
        let Some(info) = core.store.topic(topic) else {
            let topic = topic.into();
            return Err(UnknownTopic { topic }.into());
        };
        if from_seq == 0 || from_seq > info.tail_seq + 1 {
            let reason = format!("must be 1 to {}", info.tail_seq + 1);
            return Err(InvalidField::new("from_seq", reason).into());
        }
        Ok(Self {
            store: core.store.clone(),
            topic: info.name,
            next_seq: from_seq,
            tail,
            closing: core.closing(),
            ahead: Ahead::default(),
            partitions: None,
        })
    }

    /// Leaves out what is known already.
    pub(super) fn without(self, ahead: Ahead) -> Self {
        Self { ahead, ..self }
    }

    /// Leaves out what is in other partitions.
    pub(super) fn of_partitions(self, partitions: Option<PartitionSet>) -> Self {
        Self { partitions, ..self }
    }

    /// The topic.
    pub fn topic(&self) -> &Arc<str> {
        &self.topic
    }

    /// The position that the next page begins with: everything before it has been handed out, or is gone.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Whether everything up to the tail has been handed out.
    pub fn is_caught_up(&self) -> bool {
        self.tail.current() < self.next_seq
    }

    /// The next events, at least one; waits for them at the tail. `None` when the bus is closed. [`Page::next_seq`]
    /// tells where retention or compaction took something. Letting go of the future loses nothing.
    pub async fn next_page(&mut self) -> Result<Option<Page>, FollowError> {
        loop {
            if self.closing.is_closed() {
                return Ok(None);
            }
            if let Some(page) = self.read_on().await? {
                return Ok(Some(page));
            }
            let moved = tokio::select! {
                biased;
                () = self.closing.closed() => false,
                moved = self.tail.moved() => moved,
            };
            if !moved {
                return Ok(None);
            }
        }
    }

    /// The next events that are there already; `None` at the tail.
    pub async fn read_on(&mut self) -> Result<Option<Page>, FollowError> {
        loop {
            let mut page = self
                .store
                .read(&self.topic, ReadFrom::Seq(self.next_seq), PAGE)
                .await?;
            if page.tail_seq + 1 < self.next_seq {
                return Err(TopicReplaced {
                    topic: self.topic.clone(),
                    next_seq: self.next_seq,
                    tail_seq: page.tail_seq,
                }
                .into());
            }
            let went_on = page.next_seq > self.next_seq;
            self.ahead
                .leave_out(&mut page.events, self.next_seq, key_and_seq);
            if let Some(partitions) = &self.partitions {
                page.events.retain(|event| partitions.holds(event));
            }
            self.next_seq = self.next_seq.max(page.next_seq);
            if !page.events.is_empty() {
                return Ok(Some(page));
            }
            // Else it was a stretch of which nothing is kept, or wanted.
            if !went_on {
                return Ok(None);
            }
        }
    }
}

fn key_and_seq(event: &StoredEvent) -> (Option<Cow<'_, str>>, u64) {
    (event.key(), event.seq())
}

impl fmt::Debug for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follow")
            .field("topic", &self.topic)
            .field("next_seq", &self.next_seq)
            .finish_non_exhaustive()
    }
}
