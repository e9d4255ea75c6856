//! What the checks share: a store under test with its clock, and the few things nearly all of them do to it.

use super::Harness;
use crate::{
    Batch, Change, CommitError, Draft, EventOutcome, EventRef, Find, Id, IfExists, ManualClock,
    ReadFrom, ReadLimit, Receipt, Store, StoredEvent, TimeRange, TopicInfo, TopicOptions,
};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// When the clock of a check starts.
pub(super) const START_MS: u64 = 1_700_000_000_000;

/// A limit that no check reaches.
pub(super) const ALL: ReadLimit = ReadLimit {
    events: 1_000_000,
    bytes: 1 << 30,
};

/// No check reads more pages than this; a store that hands out pages without end fails instead of hanging.
const MAX_PAGES: usize = 100_000;

/// A store under test.
pub(super) struct Case<'a, H> {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<ManualClock>,
    harness: &'a H,
}

impl<'a, H: Harness> Case<'a, H> {
    /// A new store at [`START_MS`].
    pub(super) async fn new(harness: &'a H) -> Self {
        let clock = Arc::new(ManualClock::at(START_MS));
        Self {
            store: harness.open(clock.clone()).await,
            clock,
            harness,
        }
    }

    /// A new store with a topic `t`.
    pub(super) async fn with_topic(harness: &'a H) -> (Self, Arc<str>) {
        let case = Self::new(harness).await;
        let topic = case.put_topic("t", TopicOptions::default()).await;
        (case, topic)
    }

    pub(super) async fn reopen(self) -> Self {
        Self {
            store: self.harness.reopen(self.store, self.clock.clone()).await,
            ..self
        }
    }

    pub(super) async fn put_topic(&self, name: &str, options: TopicOptions) -> Arc<str> {
        let topic: Arc<str> = name.into();
        let put = Change::PutTopic {
            topic: topic.clone(),
            options,
            if_exists: IfExists::Replace,
        };
        self.change(put).await.expect("a topic is made");
        topic
    }

    pub(super) async fn change(&self, change: Change) -> Result<Receipt, CommitError> {
        let mut batch = Batch::new();
        batch.change(change);
        self.store.commit(batch).await
    }

    pub(super) async fn trim(&self, topic: &Arc<str>, first_seq: u64) {
        let trim = Change::Trim {
            topic: topic.clone(),
            first_seq,
        };
        self.change(trim).await.expect("a topic is trimmed");
    }

    pub(super) async fn delete_topic(&self, topic: &Arc<str>) {
        let delete = Change::DeleteTopic {
            topic: topic.clone(),
        };
        self.change(delete).await.expect("a topic is deleted");
    }

    /// Publishes one event on its own.
    pub(super) async fn publish(&self, topic: &Arc<str>, draft: &Draft<'_>) -> EventOutcome {
        let mut batch = Batch::new();
        batch.publish(topic, draft);
        let receipt = self.commit(batch).await;
        assert_eq!(receipt.events.len(), 1, "one outcome for one event");
        receipt.events[0]
    }

    /// Publishes one event that must be stored.
    pub(super) async fn store(&self, topic: &Arc<str>, draft: &Draft<'_>) -> EventRef {
        stored(&self.publish(topic, draft).await)
    }

    /// Publishes events with these payloads in one batch, all of which must be stored.
    pub(super) async fn store_all(&self, topic: &Arc<str>, drafts: &[Draft<'_>]) -> Vec<EventRef> {
        let mut batch = Batch::new();
        for draft in drafts {
            batch.publish(topic, draft);
        }
        let receipt = self.commit(batch).await;
        assert_eq!(receipt.events.len(), drafts.len(), "one outcome per event");
        receipt.events.iter().map(stored).collect()
    }

    /// Commits a batch that must go through.
    pub(super) async fn commit(&self, batch: Batch) -> Receipt {
        self.store.commit(batch).await.expect("a commit")
    }

    /// Everything the topic holds, read in one page.
    pub(super) async fn all(&self, topic: &Arc<str>) -> Vec<StoredEvent> {
        self.pages(topic, 1, ALL).await
    }

    /// Everything from a position on, read in pages of this size. Each page must be a proper one.
    pub(super) async fn pages(
        &self,
        topic: &Arc<str>,
        from_seq: u64,
        limit: ReadLimit,
    ) -> Vec<StoredEvent> {
        let mut events: Vec<StoredEvent> = Vec::new();
        let mut next_seq = from_seq;
        for _ in 0..MAX_PAGES {
            let page = self.store.read(topic, ReadFrom::Seq(next_seq), limit).await;
            let page = page.expect("a page");
            assert!(page.events.len() <= limit.events, "no more than asked for");
            assert!(page.first_seq >= 1 && page.first_seq <= page.tail_seq + 1);
            let (Some(first), Some(last)) = (page.events.first(), page.events.last()) else {
                assert!(page.next_seq >= next_seq, "reading never goes back");
                return events;
            };
            assert!(first.seq() >= next_seq && first.seq() >= page.first_seq);
            assert!(
                page.events
                    .is_sorted_by(|one, other| one.seq() < other.seq())
            );
            assert!(last.seq() <= page.tail_seq, "nothing behind the tail");
            assert!(page.next_seq > last.seq(), "reading goes on");
            next_seq = page.next_seq;
            events.extend(page.events);
        }
        panic!("reading {topic} does not come to an end");
    }

    /// Everything of a range of time, read in pages of this size.
    pub(super) async fn pages_by_time(
        &self,
        topic: &Arc<str>,
        mut range: TimeRange,
        limit: ReadLimit,
    ) -> Vec<StoredEvent> {
        let mut events: Vec<StoredEvent> = Vec::new();
        for _ in 0..MAX_PAGES {
            let page = self.store.read(topic, ReadFrom::Time(range), limit).await;
            let page = page.expect("a page");
            assert!(page.events.len() <= limit.events, "no more than asked for");
            assert!(
                !page.events.is_empty() || page.next_time.is_none(),
                "an empty page is the last one"
            );
            events.extend(page.events);
            if page.next_time.is_none() {
                return events;
            }
            range.after = page.next_time;
        }
        panic!("reading {topic} by time does not come to an end");
    }

    pub(super) async fn find_id(&self, topic: &Arc<str>, id: &str) -> Option<u64> {
        let found = self.store.find(topic, Find::Id(id)).await;
        found.expect("an answer")
    }

    pub(super) async fn find_ts(&self, topic: &Arc<str>, ts: u64) -> Option<u64> {
        let found = self.store.find(topic, Find::Ts(ts)).await;
        found.expect("an answer")
    }

    pub(super) async fn latest_seq(&self, topic: &Arc<str>, key: &str) -> Option<u64> {
        let latest = self.store.latest_event(topic, key).await;
        let latest = latest.expect("an answer");
        latest.map(|event| event.seq())
    }

    pub(super) async fn maintain(&self) {
        self.store.maintain().await.expect("maintenance");
    }

    pub(super) fn info(&self, topic: &Arc<str>) -> TopicInfo {
        self.store.topic(topic).expect("the topic exists")
    }
}

/// A draft with nothing but a payload.
pub(super) fn plain(payload: &str) -> Draft<'_> {
    Draft {
        payload,
        ..Draft::default()
    }
}

/// A draft with a key.
pub(super) fn keyed<'a>(key: &'a str, payload: &'a str) -> Draft<'a> {
    Draft {
        key: Some(key),
        ..plain(payload)
    }
}

/// A draft with the publisher's client id.
pub(super) fn with_id<'a>(id: &str, payload: &'a str) -> Draft<'a> {
    Draft {
        id: Some(client_id(id)),
        ..plain(payload)
    }
}

/// A draft with the publisher's own time.
pub(super) fn with_ts(ts: u64) -> Draft<'static> {
    Draft {
        ts: Some(ts),
        ..plain("0")
    }
}

pub(super) fn client_id(text: &str) -> Id {
    Id::from_client(text).expect("a valid id")
}

/// Where an event was stored, which it must have been.
pub(super) fn stored(outcome: &EventOutcome) -> EventRef {
    match outcome {
        EventOutcome::Stored(placed) => *placed,
        other => panic!("not stored: {other:?}"),
    }
}

/// The whole of time.
pub(super) fn all_time() -> TimeRange {
    TimeRange {
        from_ts: 0,
        to_ts: u64::MAX,
        after: None,
    }
}

/// A limit of so many events and no bytes to speak of.
pub(super) fn at_most(events: usize) -> ReadLimit {
    ReadLimit { events, ..ALL }
}

pub(super) fn seqs(events: &[StoredEvent]) -> Vec<u64> {
    events.iter().map(StoredEvent::seq).collect()
}

pub(super) fn payloads(events: &[StoredEvent]) -> Vec<&str> {
    events.iter().map(StoredEvent::payload).collect()
}

/// Waits for something that must come. The limit only turns a hang into a failure.
pub(super) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    const PATIENCE: Duration = Duration::from_secs(60);
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} never came"),
    }
}
