//! The outbox: with the caller's transaction or not at all, in order, once, whoever dies in between.

use crate::lab::{Lab, clock};
use mongodb::bson::{Document, doc};
use prombus::{Bus, PublishOptions};
use prombus_connect::outbox::{ClaimStore, Publish};
use prombus_mongo::outbox::{AddError, COLLECTION, Claims, PublishFailure, SentAt};
use prombus_mongo::{DrainerOptions, Outbox};

const TOPIC: &str = "orders.made";

fn options(worker: &str) -> DrainerOptions {
    DrainerOptions {
        lease_ms: 1_000,
        ..DrainerOptions::new(worker)
    }
}

async fn add(lab: &Lab, topic: &str, key: Option<&str>, payload: &str, commits: bool) -> String {
    let mut session = lab.database.client().start_session().await.expect("one");
    session.start_transaction().await.expect("a transaction");
    let order = doc! { "payload": payload };
    let orders = lab.database.collection::<Document>("orders");
    orders
        .insert_one(order)
        .session(&mut session)
        .await
        .expect("an order");
    let options = PublishOptions {
        key,
        ..PublishOptions::default()
    };
    let added = Outbox::add(&mut session, &lab.database, topic, payload, &options).await;
    let ended = if commits {
        session.commit_transaction().await
    } else {
        session.abort_transaction().await
    };
    ended.expect("it ends");
    added.expect("added")
}

async fn lab() -> Lab {
    let lab = Lab::start().await;
    Outbox::init(&lab.database).await.expect("an outbox");
    Outbox::init(&lab.database).await.expect("twice is fine");
    let orders = lab.database.create_collection("orders");
    orders.await.expect("a collection");
    lab
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_commits_is_published_once_under_its_id() {
    let lab = lab().await;
    let one = add(&lab, TOPIC, Some("anna"), r#"{"total": 12.50}"#, true).await;
    add(&lab, TOPIC, None, "\"rolled back\"", false).await;
    let rows = lab.database.collection::<Document>(COLLECTION);
    // Another program, which knows nothing of this crate.
    let plain = doc! { "_id": "theirs", "topic": TOPIC, "payload": { "n": 7 }, "tags": ["#a"] };
    rows.insert_one(plain).await.expect("a row");
    let bad = [
        doc! { "_id": "x1", "topic": TOPIC },
        doc! { "_id": "x2", "topic": 7, "payload": 1 },
        doc! { "_id": "x3", "topic": "no topic", "payload": 1 },
    ];
    rows.insert_many(bad).await.expect("rows");
    let clock = clock(1_000);
    let drainer = Outbox::drainer(&lab.database, options("one"), clock.clone()).await;
    let mut drainer = drainer.expect("a drainer");
    let drained = drainer.drain(&lab.bus).await.expect("drained");
    assert_eq!((drained.sent, drained.failed), (2, 3));
    let events = lab.events(TOPIC).await;
    let ids: Vec<_> = events.iter().map(|event| event.id().into_owned()).collect();
    // In the order of `_id`, where text comes before object ids.
    assert_eq!(ids, ["theirs", one.as_str()]);
    // The publisher's spelling is kept.
    assert_eq!(
        lab.payloads(TOPIC).await,
        [r#"{"n":7}"#, r#"{"total":12.50}"#]
    );
    let counts = drainer.counts().await.expect("counts");
    assert_eq!((counts.sent, counts.failed, counts.pending), (2, 3, 0));
    let failed = rows.find_one(doc! { "_id": "x1" }).await.expect("a row");
    let error = failed.expect("a row").get_str("error").map(str::to_owned);
    assert!(
        error.as_ref().is_ok_and(|why| why.contains("payload")),
        "{error:?}"
    );
    // Rows that were sent long ago go away.
    clock.set(1_000 + 48 * 60 * 60 * 1_000);
    let drained = drainer.drain(&lab.bus).await.expect("drained");
    assert_eq!(drained.pruned, 2);
    let mut session = lab.database.client().start_session().await.expect("one");
    let plain = PublishOptions::default();
    let refused = Outbox::add(&mut session, &lab.database, "a b", "1", &plain);
    assert!(matches!(refused.await, Err(AddError::InvalidTopic(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drainer_that_died_doubles_nothing_and_its_claims_come_free() {
    let lab = lab().await;
    for number in 0..6 {
        add(&lab, TOPIC, Some("anna"), &number.to_string(), true).await;
    }
    // It claims and publishes, and dies before it marks anything.
    let dead = Claims::new(&lab.database, &options("dead"));
    let (rows, _) = dead.claim(1_000, 4, 1 << 20).await.expect("a claim");
    assert_eq!(rows.len(), 4);
    let results = Publish::publish(&lab.bus, &rows).await;
    assert!(results.iter().all(Result::is_ok));
    let clock = clock(1_500);
    let next = Outbox::drainer(&lab.database, options("next"), clock.clone()).await;
    let mut next = next.expect("a drainer");
    let drained = next.drain(&lab.bus).await.expect("drained");
    assert_eq!(drained.sent, 0, "the rest waits behind what is claimed");
    clock.set(2_100);
    let drained = next.drain(&lab.bus).await.expect("drained");
    assert_eq!((drained.sent, drained.duplicates), (6, 4));
    assert_eq!(lab.payloads(TOPIC).await, ["0", "1", "2", "3", "4", "5"]);
    // The dead one was only paused: what it says now changes nothing.
    let failures = rows
        .iter()
        .map(|_| Err(PublishFailure::new("timeout", "late")));
    let failures = failures.collect();
    dead.settle(2_200, rows, failures).await.expect("settled");
    let counts = next.counts().await.expect("counts");
    assert_eq!((counts.sent, counts.pending, counts.claimed), (6, 0, 0));
}

/// A bus that is away for some rows at first.
struct Flaky(Bus, std::sync::Mutex<Vec<&'static str>>);

impl Publish for Flaky {
    async fn publish<P: Sync>(
        &self,
        rows: &[prombus_connect::outbox::OutboxRow<P>],
    ) -> Vec<Result<SentAt, PublishFailure>> {
        let away: Vec<&str> = std::mem::take(&mut *self.1.lock().expect("names"));
        let mut results = Vec::new();
        for row in rows {
            results.push(if away.contains(&row.payload.as_str()) {
                Err(PublishFailure::new("publish_failed", "away"))
            } else {
                let options = PublishOptions {
                    id: Some(&row.id),
                    key: row.key.as_deref(),
                    ..PublishOptions::default()
                };
                let published = self
                    .0
                    .publish_text(&row.topic, &row.payload, &options)
                    .await;
                let published = published.expect("published");
                Ok(SentAt {
                    seq: published.seq,
                    duplicate: published.duplicate,
                })
            });
        }
        results
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_failed_waits_and_its_key_waits_with_it() {
    let lab = lab().await;
    for (key, payload) in [("a", "1"), ("b", "2")] {
        add(&lab, TOPIC, Some(key), payload, true).await;
    }
    let clock = clock(1_000);
    let drainer = Outbox::drainer(&lab.database, options("one"), clock.clone()).await;
    let mut drainer = drainer.expect("a drainer");
    let flaky = Flaky(lab.bus.clone(), vec!["1"].into());
    let drained = drainer.drain(&flaky).await.expect("drained");
    assert_eq!((drained.sent, drained.retried), (1, 1));
    // A later row of the key that waits is not published before it.
    for (key, payload) in [("a", "3"), ("b", "4")] {
        add(&lab, TOPIC, Some(key), payload, true).await;
    }
    drainer.drain(&flaky).await.expect("drained");
    assert_eq!(lab.payloads(TOPIC).await, ["2", "4"]);
    clock.set(100_000);
    drainer.drain(&flaky).await.expect("drained");
    assert_eq!(lab.payloads(TOPIC).await, ["2", "4", "1", "3"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drainers_beside_each_other_keep_the_order_of_keys() {
    const ROWS: usize = 60;
    let lab = lab().await;
    for number in 0..ROWS {
        let key = format!("k{}", number % 4);
        add(&lab, TOPIC, Some(&key), &number.to_string(), true).await;
    }
    let clock = clock(1_000);
    let mut drainers = Vec::new();
    for worker in ["one", "two", "three"] {
        let options = DrainerOptions {
            batch_rows: 7,
            lease_ms: 600_000,
            ..DrainerOptions::new(worker)
        };
        let drainer = Outbox::drainer(&lab.database, options, clock.clone()).await;
        drainers.push(drainer.expect("a drainer"));
    }
    for _ in 0..1_000 {
        let mut draining = tokio::task::JoinSet::new();
        for mut drainer in drainers.drain(..) {
            let bus = lab.bus.clone();
            draining.spawn(async move {
                drainer.drain(&bus).await.expect("drained");
                drainer
            });
        }
        drainers = draining.join_all().await;
        let counts = drainers[0].counts().await.expect("counts");
        if counts.pending + counts.claimed == 0 {
            break;
        }
    }
    let payloads = lab.payloads(TOPIC).await;
    let numbers: Vec<usize> = payloads
        .iter()
        .map(|text| text.parse().expect("one"))
        .collect();
    assert_eq!(numbers.len(), ROWS, "each once");
    for key in 0..4 {
        let of_key = numbers.iter().filter(|number| **number % 4 == key);
        assert!(of_key.is_sorted(), "the order of k{key}: {numbers:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_outbox_it_says_so() {
    let lab = Lab::start().await;
    let drainer = Outbox::drainer(&lab.database, options("one"), clock(1)).await;
    let error = drainer.expect_err("there is none").to_string();
    assert!(error.contains("no outbox"), "{error}");
}
