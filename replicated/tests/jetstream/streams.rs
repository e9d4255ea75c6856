//! What the stream is, and what happens when somebody else changes it.

use crate::servers::Servers;
use async_nats::jetstream::{self, stream::Config};
use prombus_replicated::nats::{JetStreamLog, NatsUrl, OpenStreamError};
use prombus_replicated::{
    AppendError, Bounds, FollowError, MemoryCopy, Options, ReplicatedStore, SharedLog,
};
use prombus_store::{Batch, Change, CommitError, Durability, Expect, Store, SystemClock};
use std::sync::Arc;
use std::time::Duration;

fn url(servers: &Servers, stream: &str, options: &str) -> NatsUrl {
    let url = format!("nats://{}/{stream}?{options}", servers.hosts());
    NatsUrl::parse(&url).expect("a URL")
}

async fn open(servers: &Servers, stream: &str) -> JetStreamLog {
    let opened = JetStreamLog::open(&url(servers, stream, ""), 5).await;
    opened.expect("a stream")
}

async fn context(servers: &Servers) -> jetstream::Context {
    let client = async_nats::connect(servers.hosts()).await;
    jetstream::new(client.expect("a connection"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_keeps_its_number_and_its_order() {
    let servers = Servers::start(1, "sync_interval: always");
    let log = open(&servers, "orders").await;
    assert_eq!(log.description().log_id, 5);
    assert_eq!(log.bounds().await, Ok(Bounds { first: 1, last: 0 }));
    let mut follower = log.follow(0);
    for number in 1..=100u64 {
        let message = number.to_string().into();
        assert_eq!(log.append(message, Durability::Fsync).await, Ok(number));
    }
    let again = JetStreamLog::open(&url(&servers, "orders", ""), 6).await;
    let again = again.expect("the same stream");
    assert_eq!(again.description().log_id, 5, "the number is the stream's");
    let mut late = again.follow(40);
    for number in 1..=100u64 {
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
    log.trim(60).await.expect("trimmed");
    assert_eq!(
        log.bounds().await,
        Ok(Bounds {
            first: 61,
            last: 100
        })
    );
    let end = log.follow(50).next().await.expect("an end");
    assert_eq!(
        end,
        Err(FollowError::Trimmed {
            wanted: 51,
            first: 61
        })
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_label_says_what_the_servers_say() {
    let synced = Servers::start(1, "sync_interval: always");
    let options = format!("monitor={}", synced.monitors());
    let log = JetStreamLog::open(&url(&synced, "orders", &options), 5).await;
    let log = log.expect("a stream");
    let description = log.description();
    assert_eq!(
        description.durability,
        "stored by 1 server and synced before it is acknowledged (their monitoring ports say so)"
    );
    assert_eq!(description.warning, None);
    let unsynced = Servers::start(1, "");
    let options = format!("monitor={}", unsynced.monitors());
    let log = JetStreamLog::open(&url(&unsynced, "orders", &options), 5).await;
    let log = log.expect("a stream");
    assert!(log.description().durability.contains("they sync later"));
    assert!(log.description().warning.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_others_are_left_alone() {
    let servers = Servers::start(1, "");
    let config = Config {
        name: "theirs".into(),
        subjects: vec!["theirs.>".into()],
        ..Config::default()
    };
    let created = context(&servers).await.create_stream(config).await;
    created.expect("a stream");
    let error = JetStreamLog::open(&url(&servers, "theirs", ""), 5).await;
    let error = error.err().expect("not ours");
    assert!(matches!(error, OpenStreamError::Unfit { .. }), "{error}");
    let nobody = NatsUrl::parse("nats://127.0.0.1:1/orders").expect("a URL");
    let error = JetStreamLog::open(&nobody, 5).await.err().expect("nobody");
    assert!(matches!(error, OpenStreamError::Connect { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_stream_refuses_and_an_edited_one_is_not_opened() {
    let servers = Servers::start(1, "");
    let log = open(&servers, "orders").await;
    let context = context(&servers).await;
    let stream = context.get_stream("orders").await.expect("a stream");
    let mut config = stream.cached_info().config.clone();
    config.max_bytes = 10_000;
    context.update_stream(config.clone()).await.expect("edited");
    let large = vec![b'x'; 6_000];
    let first = log.append(large.clone().into(), Durability::Fsync).await;
    assert_eq!(first, Ok(1));
    let refused = log.append(large.into(), Durability::Fsync).await;
    assert!(
        matches!(refused, Err(AppendError::Rejected { .. })),
        "{refused:?}"
    );
    config.max_age = Duration::from_secs(3600);
    context.update_stream(config).await.expect("edited");
    let error = JetStreamLog::open(&url(&servers, "orders", ""), 5).await;
    let error = error.err().expect("it would forget");
    assert!(error.to_string().contains("max_age"), "{error}");
}

/// Commits that are under way at once on a stream that is full.
const AT_ONCE: usize = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_on_a_full_stream_refuses_says_why_and_goes_on_when_there_is_room() {
    let servers = Servers::start(1, "");
    let log = Arc::new(open(&servers, "orders").await);
    let copy = Arc::new(MemoryCopy::new(5));
    let options = Options::default();
    let node = ReplicatedStore::open(log, copy, Arc::new(SystemClock), options).await;
    let node = node.expect("it opens");
    let context = context(&servers).await;
    let stream = context.get_stream("orders").await.expect("a stream");
    let mut config = stream.cached_info().config.clone();
    config.max_bytes = 20_000;
    context.update_stream(config.clone()).await.expect("edited");
    let put = |key: String| {
        let mut batch = Batch::new();
        let value = vec![b'x'; 3_000].into();
        let (key, expect) = (key.into(), Expect::Absent);
        batch.change(Change::Put { key, value, expect });
        node.commit(batch)
    };
    // One after the other, then many at once: each is stored, or refused for certain.
    let mut stored = Vec::new();
    for number in 0..20 {
        match put(format!("k{number}")).await {
            Ok(_) => stored.push(format!("k{number}")),
            Err(CommitError::Unavailable { cause }) => {
                assert!(cause.contains("maximum bytes"), "{cause}")
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!((1..20).contains(&stored.len()), "{}", stored.len());
    let failed = node.status().failed.expect("it says why");
    assert!(failed.contains("maximum bytes"), "{failed}");
    let under_way: Vec<_> = (0..AT_ONCE)
        .map(|number| put(format!("n{number}")))
        .collect();
    for refused in under_way {
        let refused = refused.await.expect_err("it is full");
        assert!(
            matches!(refused, CommitError::Unavailable { .. }),
            "{refused}"
        );
    }
    config.max_bytes = -1;
    context.update_stream(config).await.expect("edited");
    let under_way: Vec<_> = (0..AT_ONCE)
        .map(|number| put(format!("n{number}")))
        .collect();
    for (number, commit) in under_way.into_iter().enumerate() {
        // Had a refused one been stored all the same, this one would find it.
        commit.await.expect("there is room");
        stored.push(format!("n{number}"));
    }
    assert_eq!(node.status().failed, None);
    let found = node.list("").await.expect("a list");
    let mut found: Vec<String> = found.iter().map(|(key, _)| key.to_string()).collect();
    found.sort();
    stored.sort();
    assert_eq!(found, stored);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_was_made_anew_under_a_node_is_noticed() {
    let servers = Servers::start(1, "");
    let log = Arc::new(open(&servers, "orders").await);
    let copy = Arc::new(MemoryCopy::new(5));
    let options = Options::default();
    let node = ReplicatedStore::open(log, copy, Arc::new(SystemClock), options).await;
    let node = node.expect("it opens");
    for _ in 0..3 {
        node.commit(Batch::new()).await.expect("a commit");
    }
    let context = context(&servers).await;
    context.delete_stream("orders").await.expect("deleted");
    open(&servers, "orders").await;
    let waiting = async {
        while !node
            .status()
            .failed
            .is_some_and(|cause| cause.contains("ends at 0, but 3 was read"))
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let noticed = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    assert!(noticed.is_ok(), "{:?}", node.status().failed);
    node.commit(Batch::new())
        .await
        .expect_err("nothing is taken in");
}
