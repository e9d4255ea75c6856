//! The state of a topic: its table of keys first, then the events from exactly there on; and reading a topic in order,
//! with waiting at its end for more. Nothing is leased or acknowledged: the caller keeps the position.

use crate::client::Client;
use crate::error::{FollowError, InvalidField, RequestError, StateMoved, TopicReplaced};
use crate::reads::Page;
use crate::subscription::{Ended, Event, SubscribeOptions};
use prombus_interface::{Ahead, StartAt};
use std::borrow::Cow;

/// How many keys a page of a table has at most.
const PAGE_KEYS: u64 = 1_000;
/// How many events one page brings at most.
const PAGE_EVENTS: u64 = 1_000;

/// The state of a topic as it is loaded, page by page.
#[derive(Debug)]
pub struct LoadState {
    client: Client,
    topic: String,
    /// The topic's newest position when loading began.
    position: u64,
    after: Option<String>,
    /// The partitions whose keys are loaded, where not all are.
    partitions: Option<Vec<u32>>,
    ahead: Ahead,
    is_read: bool,
}

/// Reads a topic in order and waits at its tail.
#[derive(Debug)]
pub struct Follow {
    client: Client,
    topic: String,
    next_seq: u64,
    is_caught_up: bool,
    /// The partitions whose events are wanted, where not all are.
    partitions: Option<Vec<u32>>,
    ahead: Ahead,
}

impl Client {
    /// Loads the latest event of every key: read [`LoadState::next_page`] to the end, then [`LoadState::follow`].
    pub async fn load_state(&self, topic: &str) -> Result<LoadState, RequestError> {
        // Before the first page, so that nothing falls between the table and what follows it.
        let position = self.topic(topic).await?.tail_seq;
        Ok(LoadState {
            client: self.clone(),
            topic: topic.to_owned(),
            position,
            after: None,
            partitions: None,
            ahead: Ahead::default(),
            is_read: false,
        })
    }

    /// Follows a topic from a position on, in order, with every event once: 1 is its beginning, and one more than its
    /// tail is what comes next. The caller stores [`Follow::next_seq`] to resume later.
    pub async fn follow(&self, topic: &str, from_seq: u64) -> Result<Follow, FollowError> {
        let tail_seq = self.topic(topic).await?.tail_seq;
        if from_seq == 0 {
            let invalid = InvalidField::new("from_seq", "positions begin with 1");
            return Err(RequestError::from(invalid).into());
        }
        check_tail(topic, from_seq, tail_seq)?;
        Ok(Follow {
            client: self.clone(),
            topic: topic.to_owned(),
            next_seq: from_seq,
            is_caught_up: from_seq > tail_seq,
            partitions: None,
            ahead: Ahead::default(),
        })
    }

    /// Waits until a topic has an event at `seq` or behind it, through broken connections too. A topic that does not
    /// exist yet is waited for.
    pub async fn wait_for_seq(&self, topic: &str, seq: u64) -> Result<(), FollowError> {
        // The one event that wakes is let go of at once, so that it is nobody's failed delivery.
        let options = SubscribeOptions {
            from: StartAt::Seq(seq),
            batch_size: 1,
            max_in_flight: 1,
            ..SubscribeOptions::default()
        };
        let waiting = self.subscribe_ephemeral(topic, options).await?;
        match waiting.next().await {
            Some(delivery) => delivery.ack(),
            None => return Err(waiting.ended().unwrap_or(Ended::Unsubscribed).into()),
        }
        waiting.unsubscribe().await;
        Ok(())
    }
}

impl LoadState {
    /// Loads and follows only the keys of these partitions, as a consumer does to which they were assigned.
    #[must_use]
    pub fn of_partitions(mut self, partitions: &[u32]) -> Self {
        self.partitions = Some(partitions.to_vec());
        self
    }

    /// The topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The last position that is certainly in what is loaded. Later ones may be in it already; [`Self::follow`] leaves
    /// those out.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next keys with their latest events; `None` when all were there.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Event>>, FollowError> {
        while !self.is_read {
            let after = self.after.as_deref();
            let page = self.client.latest_page(&self.topic, after, PAGE_KEYS);
            let mut page = page.await?;
            keep_partitions(self.partitions.as_deref(), &mut page.events);
            for event in &page.events {
                if let Some(key) = event.key().filter(|_| event.seq() > self.position) {
                    self.ahead.note(key.to_owned(), event.seq());
                }
            }
            if self.ahead.is_too_much() {
                let topic = self.topic.clone();
                return Err(StateMoved { topic }.into());
            }
            self.is_read = page.next.is_none();
            self.after = page.next;
            if !page.events.is_empty() {
                return Ok(Some(page.events));
            }
        }
        Ok(None)
    }

    /// Follows the topic from where the table ends. Pages of the table that were not read stay unread.
    pub fn follow(self) -> Follow {
        Follow {
            client: self.client,
            topic: self.topic,
            next_seq: self.position + 1,
            is_caught_up: false,
            partitions: self.partitions,
            ahead: self.ahead,
        }
    }
}

impl Follow {
    /// The topic.
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The position that the next page begins with: everything before it has been handed out, or is gone.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Whether everything that was there when it looked last has been handed out.
    pub fn is_caught_up(&self) -> bool {
        self.is_caught_up
    }

    /// The next events, at least one; waits for them at the tail, through broken connections too. `None` when the client
    /// is closed. Letting go of the future loses nothing, and after an error it can be tried again.
    pub async fn next_page(&mut self) -> Result<Option<Page>, FollowError> {
        loop {
            if let Some(page) = self.read_on().await? {
                return Ok(Some(page));
            }
            match self.client.wait_for_seq(&self.topic, self.next_seq).await {
                Err(FollowError::Ended(error)) if self.client.ended().is_some() => {
                    return match error.code() {
                        "closed" => Ok(None),
                        _ => Err(FollowError::Ended(error)),
                    };
                }
                waited => waited?,
            }
        }
    }

    /// The next events that are there already; `None` at the tail.
    pub async fn read_on(&mut self) -> Result<Option<Page>, FollowError> {
        loop {
            let from = StartAt::Seq(self.next_seq);
            let page = self.client.replay(&self.topic, from, PAGE_EVENTS);
            let mut page = page.await?;
            let last = page.events.last().map(|event| event.seq() + 1);
            let Some(next_seq) = page.next_seq.or(last) else {
                self.is_caught_up = true;
                let tail_seq = self.client.topic(&self.topic).await?.tail_seq;
                check_tail(&self.topic, self.next_seq, tail_seq)?;
                return Ok(None);
            };
            self.ahead
                .leave_out(&mut page.events, self.next_seq, key_and_seq);
            keep_partitions(self.partitions.as_deref(), &mut page.events);
            self.next_seq = self.next_seq.max(next_seq);
            self.is_caught_up = page.next_seq.is_none();
            // Else it was a stretch of which nothing is kept, or wanted.
            if !page.events.is_empty() {
                return Ok(Some(page));
            }
        }
    }
}

/// A topic whose tail fell behind what was read of it is another one of the same name.
fn check_tail(topic: &str, next_seq: u64, tail_seq: u64) -> Result<(), TopicReplaced> {
    if next_seq <= tail_seq + 1 {
        return Ok(());
    }
    Err(TopicReplaced {
        topic: topic.to_owned(),
        next_seq,
        tail_seq,
    })
}

fn keep_partitions(partitions: Option<&[u32]>, events: &mut Vec<Event>) {
    if let Some(partitions) = partitions {
        let is_wanted = |partition: u32| partitions.contains(&partition);
        events.retain(|event| event.fields().partition.is_some_and(is_wanted));
    }
}

fn key_and_seq(event: &Event) -> (Option<Cow<'_, str>>, u64) {
    (event.key().map(Cow::Borrowed), event.seq())
}
