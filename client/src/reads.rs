//! What is stored: events from a place on, the latest of each key, keys as a table, and dead letters. Over HTTP.

use crate::admin::topic_part;
use crate::client::Client;
use crate::error::RequestError;
use crate::http_client::{ask, bad_reply};
use crate::subscription::Event;
use http::Method;
use prombus_api::http::{
    Body as _, DiffPage, DiffQuery, EventPage, FindPage, FindQuery, LatestPage, LatestQuery,
    ListPage, ListQuery, ReadQuery, Redrive, RedriveReply, RemoveLettersQuery, RemovedLetters,
    StateItem, WhichLetters,
};
use prombus_interface::StartAt;
use serde_json::value::RawValue;

/// Some events of a topic, in their order.
#[derive(Debug, Clone)]
pub struct Page {
    /// The events.
    pub events: Vec<Event>,
    /// The position to go on from, or behind for [`Client::find`]; `None` where there is no more yet.
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

impl Client {
    /// Events from a place on, at most `limit` of them.
    pub async fn replay(
        &self,
        topic: &str,
        from: StartAt,
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

    /// The latest event of a key, which is a tombstone where the key was deleted and that is still known.
    pub async fn latest_or_tombstone(
        &self,
        topic: &str,
        key: &str,
    ) -> Result<Option<Event>, RequestError> {
        let query = LatestQuery {
            topic: topic.to_owned(),
            keys: vec![key.to_owned()],
            tombstones: true,
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
        let target = format!("/list/{}?{}", topic_part(topic)?, query.to_query());
        ask(self.core(), Method::GET, &target, Vec::new()).await
    }

    /// The states of keys as of a time in epoch milliseconds, in pages as `query` has them.
    pub async fn table_at(
        &self,
        topic: &str,
        at_ts: u64,
        query: &ListQuery,
    ) -> Result<ListPage, RequestError> {
        let query = ListQuery {
            at: Some(at_ts),
            ..query.clone()
        };
        self.list(topic, &query).await
    }

    /// The state of a key as of a time in epoch milliseconds: `None` where it was not there, or deleted.
    pub async fn state_at(
        &self,
        topic: &str,
        key: &str,
        at_ts: u64,
    ) -> Result<Option<StateItem>, RequestError> {
        // In the order of keys the key itself is the first of those that begin with it.
        let query = ListQuery {
            prefix: Some(key.to_owned()),
            at: Some(at_ts),
            limit: Some(1),
            ..ListQuery::default()
        };
        let page = self.list(topic, &query).await?;
        Ok(page.items.into_iter().find(|item| item.key == key))
    }

    /// The latest events of these keys in their order, without those that have none.
    pub async fn latest_by_key(
        &self,
        topic: &str,
        keys: &[&str],
    ) -> Result<Vec<Event>, RequestError> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let query = LatestQuery {
            topic: topic.to_owned(),
            keys: keys.iter().map(|&key| key.to_owned()).collect(),
            ..LatestQuery::default()
        };
        Ok(self.latest_of(&query).await?.events)
    }

    /// What changed between two times, of the keys that are compared for one page.
    pub async fn diff(&self, topic: &str, query: &DiffQuery) -> Result<DiffPage, RequestError> {
        let target = format!("/diff/{}?{}", topic_part(topic)?, query.to_query());
        ask(self.core(), Method::GET, &target, Vec::new()).await
    }

    /// Events by a header or by a cause, in topics that index them.
    pub async fn find(&self, query: &FindQuery) -> Result<Page, RequestError> {
        let target = format!("/find?{}", query.to_query());
        let page: FindPage = ask(self.core(), Method::GET, &target, Vec::new()).await?;
        Ok(Page {
            events: events(&page.events)?,
            next_seq: page.next,
        })
    }

    /// Dead letters of a topic from a place in `dlq.<topic>` on: their payload holds the event and its attempts.
    pub async fn dead_letters(
        &self,
        topic: &str,
        from: StartAt,
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
        from: StartAt,
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

fn events(records: &[Box<RawValue>]) -> Result<Vec<Event>, RequestError> {
    let events = records
        .iter()
        .map(|record| Event::from_record(record.get()));
    let events: Result<_, _> = events.collect();
    events.map_err(|error| bad_reply(&error))
}
