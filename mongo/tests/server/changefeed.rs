//! A collection's changes as events: after a snapshot, once each, whatever was interrupted.

use crate::lab::{Lab, eventually};
use mongodb::bson::{Document, doc};
use prombus::Bus;
use prombus_connect::outbox::{OutboxRow, Publish, PublishFailure, SentAt};
use prombus_mongo::error::FeedError;
use prombus_mongo::{Changefeed, ChangefeedOptions, FeedBus};
use std::sync::atomic::{AtomicU32, Ordering};

const TOPIC: &str = "orders.changes";

async fn feed(lab: &Lab, options: ChangefeedOptions) -> Changefeed {
    let opened = Changefeed::open(&lab.database, options).await;
    opened.expect("a feed")
}

fn options() -> ChangefeedOptions {
    ChangefeedOptions::new("orders", TOPIC)
}

/// Key, operation and payload of each event.
async fn changes(lab: &Lab) -> Vec<(String, String, String)> {
    let events = lab.events(TOPIC).await;
    let change = |event: &prombus::StoredEvent| {
        let fields = prombus::EventFields::of(event);
        let operation = fields.headers.iter().find(|(name, _)| *name == "op");
        let operation = operation.expect("an operation").1.clone();
        let key = event.key().expect("a key").into_owned();
        (key, operation, event.payload().to_owned())
    };
    events.iter().map(change).collect()
}

fn change(key: &str, operation: &str, payload: &str) -> (String, String, String) {
    (key.to_owned(), operation.to_owned(), payload.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_and_then_every_change_once() {
    let lab = Lab::start().await;
    let orders = lab.database.collection::<Document>("orders");
    let there = [doc! { "_id": "a", "n": 1 }, doc! { "_id": "b", "n": 1 }];
    orders.insert_many(there).await.expect("documents");
    let mut one = feed(&lab, options()).await;
    let fed = one.catch_up(&lab.bus).await.expect("it catches up");
    assert_eq!((fed.snapshot, fed.changes), (2, 0));
    orders
        .insert_one(doc! { "_id": "c", "n": 1 })
        .await
        .expect("c");
    let more = doc! { "$inc": { "n": 1 } };
    orders
        .update_one(doc! { "_id": "a" }, more)
        .await
        .expect("a");
    let other = doc! { "n": 5 };
    orders
        .replace_one(doc! { "_id": "b" }, other)
        .await
        .expect("b");
    orders.delete_one(doc! { "_id": "c" }).await.expect("c");
    let fed = one.catch_up(&lab.bus).await.expect("it catches up");
    assert_eq!((fed.snapshot, fed.changes, fed.duplicates), (0, 4, 0));
    let expected = [
        change("a", "snapshot", r#"{"_id":"a","n":1}"#),
        change("b", "snapshot", r#"{"_id":"b","n":1}"#),
        change("c", "insert", r#"{"_id":"c","n":1}"#),
        change("a", "update", r#"{"_id":"a","n":2}"#),
        change("b", "replace", r#"{"_id":"b","n":5}"#),
        change("c", "delete", "null"),
    ];
    assert_eq!(changes(&lab).await, expected);
    // Another process goes on from the token in the bus.
    orders.insert_one(doc! { "_id": "d" }).await.expect("d");
    let mut next = feed(&lab, options()).await;
    let fed = next.catch_up(&lab.bus).await.expect("it goes on");
    assert_eq!((fed.snapshot, fed.changes, fed.duplicates), (0, 1, 0));
    // The first one did not hear of that; what it publishes again is not stored again.
    let fed = one.catch_up(&lab.bus).await.expect("it goes on");
    assert_eq!((fed.changes, fed.duplicates), (1, 1));
    assert_eq!(changes(&lab).await.len(), 7);
}

/// A bus that is away at some call.
struct Flaky(Bus, AtomicU32);

impl Flaky {
    fn is_away(&self) -> bool {
        self.1.fetch_sub(1, Ordering::Relaxed) == 0
    }
}

impl Publish for Flaky {
    async fn publish<P: Sync>(&self, rows: &[OutboxRow<P>]) -> Vec<Result<SentAt, PublishFailure>> {
        let is_away = self.is_away();
        // It may have stored them though it does not say so.
        let results = Publish::publish(&self.0, rows).await;
        if is_away {
            rows.iter()
                .map(|_| Err(PublishFailure::new("publish_failed", "away")))
                .collect()
        } else {
            results
        }
    }
}

impl FeedBus for Flaky {
    async fn prepare(&self, topic: &str) -> Result<(), FeedError> {
        FeedBus::prepare(&self.0, topic).await
    }

    async fn latest(&self, topic: &str, key: &str) -> Result<Option<String>, FeedError> {
        FeedBus::latest(&self.0, topic, key).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interrupted_anywhere_each_change_is_stored_once() {
    let lab = Lab::start().await;
    let orders = lab.database.collection::<Document>("orders");
    for number in 0..10 {
        let one = doc! { "_id": number, "n": 0 };
        orders.insert_one(one).await.expect("a document");
    }
    let small = ChangefeedOptions {
        batch_events: 3,
        ..options()
    };
    // A new process each time, which dies at its first, second, third … publish.
    let mut changed = false;
    let mut is_done = false;
    for away_at in 0..40 {
        let bus = Flaky(lab.bus.clone(), AtomicU32::new(away_at / 2));
        let fed = feed(&lab, small.clone()).await.catch_up(&bus).await;
        if let Err(error) = &fed {
            assert!(error.is_transient(), "{error}");
        }
        if fed.is_ok() && !changed {
            changed = true;
            for number in 0..10 {
                let more = doc! { "$inc": { "n": 1 } };
                let one = doc! { "_id": number % 4 };
                orders.update_one(one, more).await.expect("a document");
            }
        } else if fed.is_ok() {
            is_done = true;
            break;
        }
    }
    assert!(is_done);
    let changes = changes(&lab).await;
    let count = |operation: &str| changes.iter().filter(|one| one.1 == operation).count();
    assert_eq!(
        (count("snapshot"), count("update")),
        (10, 10),
        "{changes:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_follows_waits_for_a_server_that_is_away_and_says_what_ended_it() {
    let mut lab = Lab::on(crate::mongo_server::Server::start_stand_in()).await;
    let orders = lab.database.collection::<Document>("orders");
    orders.insert_one(doc! { "_id": 1 }).await.expect("one");
    let only_changes = ChangefeedOptions {
        snapshot: false,
        ..options()
    };
    let mut following = feed(&lab, only_changes).await;
    let bus = lab.bus.clone();
    let following = tokio::spawn(async move { following.run(&bus).await.expect_err("it ends") });
    let progress = options().progress_topic();
    eventually("it has begun", async || {
        lab.bus
            .topics()
            .iter()
            .any(|topic| *topic.name == *progress && topic.tail_seq > 0)
    })
    .await;
    orders.insert_one(doc! { "_id": 2 }).await.expect("two");
    let has = async |count: usize| {
        lab.bus.topics().iter().any(|topic| &*topic.name == TOPIC)
            && changes(&lab).await.len() == count
    };
    eventually("the insert is there", async || has(1).await).await;
    lab.server.kill();
    lab.server.restart();
    let three = async || orders.insert_one(doc! { "_id": 3 }).await.is_ok();
    eventually("it takes writes again", three).await;
    eventually("the feed goes on", async || {
        changes(&lab).await.iter().any(|change| change.0 == "3")
    })
    .await;
    assert_eq!(changes(&lab).await.len(), 2);
    orders.drop().await.expect("dropped");
    let ended = tokio::time::timeout(crate::lab::LIMIT, following).await;
    let error = ended.expect("in time").expect("it ends");
    assert!(matches!(error, FeedError::Invalidated { .. }), "{error}");
}
