//! The log as a collection: its numbers, two nodes that append at once, trimming, and what somebody else does to it.

use crate::server::Server;
use mongodb::bson::{Document, doc};
use prombus_replicated::mongo::{MongoLog, OpenError};
use prombus_replicated::{Bounds, FollowError, MemoryCopy, Options, ReplicatedStore, SharedLog};
use prombus_store::{Batch, Durability, Store, SystemClock};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

async fn commits(url: &str) -> mongodb::Collection<Document> {
    let client = mongodb::Client::with_uri_str(url).await.expect("a client");
    let database = client.default_database().expect("a database");
    database.collection("commits")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_keeps_its_number_and_its_order() {
    let server = Server::start();
    let url = server.fresh_url();
    let log = MongoLog::open(&url).await.expect("a log");
    assert_eq!(log.bounds().await, Ok(Bounds { first: 1, last: 0 }));
    let mut follower = log.follow(0);
    let durability = |number: u64| match number % 2 {
        0 => Durability::Fsync,
        _ => Durability::Os,
    };
    for number in 1..=60u64 {
        let message = number.to_string().into();
        assert_eq!(log.append(message, durability(number)).await, Ok(number));
    }
    let again = MongoLog::open(&url).await.expect("the same log");
    assert_eq!(again.description().log_id, log.description().log_id);
    let mut late = again.follow(40);
    for number in 1..=60u64 {
        let entry = follower.next().await.expect("open").expect("a message");
        assert_eq!(
            (entry.position, &entry.message[..]),
            (number, number.to_string().as_bytes())
        );
        if number > 40 {
            let entry = late.next().await.expect("open").expect("a message");
            assert_eq!(entry.position, number);
        }
    }
    // A message by another node wakes this one.
    assert_eq!(again.append("61".into(), Durability::Fsync).await, Ok(61));
    let heard = tokio::time::timeout(LIMIT, follower.next()).await;
    let entry = heard.expect("in time").expect("open").expect("a message");
    assert_eq!(entry.position, 61);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_append_at_once_leave_no_holes() {
    const EACH: usize = 30;
    let server = Server::start();
    let url = server.fresh_url();
    let mut appending = tokio::task::JoinSet::new();
    for node in 0..3 {
        let log = MongoLog::open(&url).await.expect("a log");
        appending.spawn(async move {
            let mut places = Vec::new();
            for number in 0..EACH {
                let message = format!("{node}-{number}").into();
                places.push(
                    log.append(message, Durability::Fsync)
                        .await
                        .expect("a place"),
                );
            }
            places
        });
    }
    let places: Vec<Vec<u64>> = appending.join_all().await;
    for places in &places {
        assert!(places.is_sorted(), "a node's own order is kept");
    }
    let all: BTreeSet<u64> = places.into_iter().flatten().collect();
    assert_eq!(all, (1..=3 * EACH as u64).collect());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_slept_does_not_append_below_what_was_trimmed() {
    let server = Server::start();
    let url = server.fresh_url();
    let (busy, sleepy) = (MongoLog::open(&url).await, MongoLog::open(&url).await);
    let (busy, sleepy) = (busy.expect("a log"), sleepy.expect("a log"));
    assert_eq!(sleepy.append("1".into(), Durability::Fsync).await, Ok(1));
    for number in 2..=10u64 {
        let message = number.to_string().into();
        assert_eq!(busy.append(message, Durability::Fsync).await, Ok(number));
    }
    busy.trim(8).await.expect("trimmed");
    assert_eq!(busy.bounds().await, Ok(Bounds { first: 9, last: 10 }));
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(sleepy.append("11".into(), Durability::Fsync).await, Ok(11));
    let end = busy.follow(3).next().await.expect("an end");
    let (wanted, first) = (4, 9);
    assert_eq!(end, Err(FollowError::Trimmed { wanted, first }));
    let entry = busy
        .follow(9)
        .next()
        .await
        .expect("open")
        .expect("a message");
    assert_eq!(entry.position, 10);
    // Also where everything is trimmed, the numbers go on.
    busy.trim(100).await.expect("trimmed");
    assert_eq!(
        busy.bounds().await,
        Ok(Bounds {
            first: 12,
            last: 11
        })
    );
    assert_eq!(busy.append("12".into(), Durability::Fsync).await, Ok(12));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_removed_is_noticed() {
    let server = Server::start();
    let url = server.fresh_url();
    let log = MongoLog::open(&url).await.expect("a log");
    for number in 1..=5u64 {
        let message = number.to_string().into();
        log.append(message, Durability::Fsync)
            .await
            .expect("a place");
    }
    let commits = commits(&url).await;
    commits
        .delete_one(doc! { "_id": 3_i64 })
        .await
        .expect("gone");
    let mut follower = log.follow(0);
    for _ in 0..2 {
        follower.next().await.expect("open").expect("a message");
    }
    let end = tokio::time::timeout(LIMIT, follower.next()).await;
    let end = end.expect("in time").expect("an end");
    assert!(
        matches!(end, Err(FollowError::Missing { position: 3, .. })),
        "{end:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_log_is_emptied_takes_no_commits_any_more() {
    let server = Server::start();
    let url = server.fresh_url();
    let log = Arc::new(MongoLog::open(&url).await.expect("a log"));
    let copy = Arc::new(MemoryCopy::new(log.description().log_id));
    let options = Options::default();
    let node = ReplicatedStore::open(log, copy, Arc::new(SystemClock), options).await;
    let node = node.expect("it opens");
    for _ in 0..3 {
        node.commit(Batch::new()).await.expect("a commit");
    }
    let commits = commits(&url).await;
    commits.delete_many(doc! {}).await.expect("emptied");
    let waiting = async {
        while !node
            .status()
            .failed
            .is_some_and(|cause| cause.contains("ends at 0, but 3 was read"))
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let noticed = tokio::time::timeout(LIMIT, waiting).await;
    assert!(noticed.is_ok(), "{:?}", node.status().failed);
    node.commit(Batch::new())
        .await
        .expect_err("nothing is taken in");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_log_of_this_version_is_refused() {
    let server = Server::start();
    let url = server.fresh_url();
    MongoLog::open(&url).await.expect("a log");
    let client = mongodb::Client::with_uri_str(&url).await.expect("a client");
    let database = client.default_database().expect("a database");
    let newer = doc! { "$set": { "format": 99_i64 } };
    let meta = database.collection::<Document>("log");
    meta.update_one(doc! { "_id": "log" }, newer)
        .await
        .expect("edited");
    let error = MongoLog::open(&url).await.expect_err("newer");
    assert_eq!(error, OpenError::NewerFormat { format: 99 });
    let nobody = "mongodb://127.0.0.1:1/orders?serverSelectionTimeoutMS=200";
    let error = MongoLog::open(nobody).await.expect_err("nobody");
    assert!(error.is_retryable(), "{error}");
    let error = MongoLog::open("mongodb://").await.expect_err("no host");
    assert!(matches!(error, OpenError::BadUrl { .. }), "{error}");
}
