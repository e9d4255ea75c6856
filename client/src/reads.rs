//! What is stored: events from a place on, the latest of each key, keys as a table, and dead letters. Over HTTP.

use crate::admin::topic_target;
use crate::client::Client;
use crate::error::RequestError;
use crate::http_client::{ask, bad_reply};
use crate::subscription::Event;
use http::Method;
use prombus_api::http::{
    Body as _, EventPage, LatestPage, LatestQuery, ListPage, ListQuery, ReadQuery, Redrive,
    RedriveReply, RemoveLettersQuery, RemovedLetters, WhichLetters,
};
use prombus_api::options::Position;
use serde_json::value::RawValue;

/// Some events of a topic, in their order.
#[derive(Debug, Clone)]
pub struct Page {
    /// The events.
    pub events: Vec<Event>,
    /// The position to go on from; `None` where there is no more yet.
    pub next_seq: Option<u64>,
}

/// The latest event of some keys, in the order of keys.
#[derive(Debug, Clone)]
pub struct KeyPage {
    /// The events.
    pub events: Vec<Event>,
    /// The key to go on behind; `None` where there is no more.
    pub next: Option<String>,
}

/// The state of a topic as it is loaded, page by page.
#[derive(Debug)]
pub struct LoadState<'a> {
    client: &'a Client,
    topic: String,
    /// The topic's newest position when loading began.
    position: u64,
    after: Option<String>,
    /// The partitions whose keys are loaded, where not all are.
    partitions: Option<Vec<u32>>,
    is_done: bool,
}

impl Client {
    /// Events from a place on, at most `limit` of them.
    pub async fn replay(
        &self,
        topic: &str,
        from: Position,
        limit: u64,
    ) -> Result<Page, RequestError> {
        self.page("/replay", topic, from, limit).await
    }

    /// The latest event of a key; `None` where there is none, or it is a tombstone.
    pub async fn latest(&self, topic: &str, key: &str) -> Result<Option<Event>, RequestError> {
        let query = LatestQuery {
            topic: topic.to_owned(),
            keys: vec![key.to_owned()],
            ..LatestQuery::default()
        };
        Ok(self.latest_of(&query).await?.events.pop())
    }

    /// The latest event of each key behind `after`, at most `limit` of them.
    pub async fn latest_page(
        &self,
        topic: &str,
        after: Option<&str>,
        limit: u64,
    ) -> Result<KeyPage, RequestError> {
        let query = LatestQuery {
            topic: topic.to_owned(),
            after: after.map(str::to_owned),
            limit: Some(limit),
            ..LatestQuery::default()
        };
        self.latest_of(&query).await
    }

    /// Keys as a table: by prefix and by fields of their payloads, now or at a time.
    pub async fn list(&self, topic: &str, query: &ListQuery) -> Result<ListPage, RequestError> {
        topic_target(topic, "")?;
        let target = format!("/list/{topic}?{}", query.to_query());
        ask(self.core(), Method::GET, &target, Vec::new()).await
    }

    /// Loads the latest event of every key. What comes after [`LoadState::position`] is followed by a subscription
    /// from there on, or by [`Self::replay`].
    pub async fn load_state(&self, topic: &str) -> Result<LoadState<'_>, RequestError> {
        // Before the first page, so that nothing falls between the table and what follows it.
        let position = self.topic(topic).await?.tail_seq;
        Ok(LoadState {
            client: self,
            topic: topic.to_owned(),
            position,
            after: None,
            partitions: None,
            is_done: false,
        })
    }

    /// Dead letters of a topic from a place in `dlq.<topic>` on: their payload holds the event and its attempts.
    pub async fn dead_letters(
        &self,
        topic: &str,
        from: Position,
        limit: u64,
    ) -> Result<Page, RequestError> {
        self.page("/dlq", topic, from, limit).await
    }

    /// Sends dead letters to their topic again, or says what that would do.
    pub async fn redrive(&self, redrive: &Redrive<'_>) -> Result<RedriveReply, RequestError> {
        let body = redrive.to_json();
        ask(self.core(), Method::POST, "/dlq/redrive", body).await
    }

    /// Removes dead letters.
    pub async fn remove_dead_letters(
        &self,
        topic: &str,
        which: WhichLetters,
    ) -> Result<RemovedLetters, RequestError> {
        let query = RemoveLettersQuery {
            topic: topic.to_owned(),
            which,
        };
        let target = format!("/dlq?{}", query.to_query());
        ask(self.core(), Method::DELETE, &target, Vec::new()).await
    }

    async fn page(
        &self,
        path: &str,
        topic: &str,
        from: Position,
        limit: u64,
    ) -> Result<Page, RequestError> {
        let query = ReadQuery {
            topic: topic.to_owned(),
            start: Some(from),
            limit: Some(limit),
            upcast: false,
        };
        let target = format!("{path}?{}", query.to_query());
        let page: EventPage = ask(self.core(), Method::GET, &target, Vec::new()).await?;
        Ok(Page {
            events: events(&page.events)?,
            next_seq: page.next,
        })
    }

    async fn latest_of(&self, query: &LatestQuery) -> Result<KeyPage, RequestError> {
        let target = format!("/latest-by-key?{}", query.to_query());
        let page: LatestPage = ask(self.core(), Method::GET, &target, Vec::new()).await?;
        Ok(KeyPage {
            events: events(&page.events)?,
            next: page.next,
        })
    }
}

impl LoadState<'_> {
    /// How many keys a page has at most.
    const PAGE_KEYS: u64 = 1_000;

    /// Loads only the keys of these partitions, as a consumer does to which they were assigned.
    #[must_use]
    pub fn of_partitions(mut self, partitions: &[u32]) -> Self {
        self.partitions = Some(partitions.to_vec());
        self
    }

    /// The last position that is certainly in what is loaded. Later ones may be in it already.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next keys with their latest events; `None` when all were there.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Event>>, RequestError> {
        if self.is_done {
            return Ok(None);
        }
        let after = self.after.as_deref();
        let mut page = self
            .client
            .latest_page(&self.topic, after, Self::PAGE_KEYS)
            .await?;
        if let Some(partitions) = &self.partitions {
            let is_wanted = |partition: u32| partitions.contains(&partition);
            page.events
                .retain(|event| event.fields().partition.is_some_and(is_wanted));
        }
        self.is_done = page.next.is_none();
        self.after = page.next;
        Ok(Some(page.events))
    }
}

fn events(records: &[Box<RawValue>]) -> Result<Vec<Event>, RequestError> {
    let events = records
        .iter()
        .map(|record| Event::from_record(record.get()));
    let events: Result<_, _> = events.collect();
    events.map_err(|error| bad_reply(&error))
}
