//! The file store on a disk that fails and comes back: it says so, can be read throughout, and takes commits again by
//! itself.

use prombus_log::fault::FaultFiles;
use prombus_log::{FileStore, LogOptions};
use prombus_store::{
    Batch, Change, CommitError, Draft, Durability, IfExists, ReadFrom, ReadLimit, Store,
    TopicOptions,
};
use std::sync::Arc;
use std::time::Duration;

/// How often something is looked for, a few milliseconds apart, before a test gives up.
const MOST_LOOKS: usize = 5_000;
const TOPIC: &str = "t";

fn open(disk: &Arc<FaultFiles>, reserve_bytes: u64) -> FileStore {
    let options = LogOptions {
        segment_bytes: 20_000,
        preallocate_bytes: 0,
        reserve_bytes,
        maintain_interval_ms: 20,
        log_id: Some(7),
        ..LogOptions::default()
    };
    let opened = FileStore::on_files(disk.clone(), options, "file:test".into());
    opened.expect("it opens").0
}

async fn make_topic(store: &FileStore, durability: Durability) {
    let mut batch = Batch::new();
    let options = TopicOptions {
        durability,
        ..TopicOptions::default()
    };
    let topic = TOPIC.into();
    batch.change(Change::PutTopic {
        topic,
        options,
        if_exists: IfExists::Replace,
    });
    store.commit(batch).await.expect("a topic");
}

async fn publish(store: &FileStore, payload: &str) -> Result<(), CommitError> {
    let mut batch = Batch::new();
    let draft = Draft {
        payload,
        ..Draft::default()
    };
    batch.publish(&TOPIC.into(), &draft);
    store.commit_inline(batch).await.map(drop)
}

async fn payloads(store: &FileStore) -> Vec<String> {
    let limit = ReadLimit {
        events: 10_000,
        bytes: 1 << 20,
    };
    let page = store
        .read(&TOPIC.into(), ReadFrom::Seq(1), limit)
        .await
        .expect("a page");
    let events = page.events.iter();
    events.map(|event| event.payload().to_owned()).collect()
}

#[allow(
    clippy::disallowed_methods,
    reason = "what the store does by itself takes its time"
)]
fn a_moment() {
    std::thread::sleep(Duration::from_millis(5));
}

/// Publishes until the store takes it.
async fn publish_in_the_end(store: &FileStore, payload: &str) {
    for _ in 0..MOST_LOOKS {
        match publish(store, payload).await {
            Ok(()) => return,
            Err(CommitError::StoreFailed(_)) => a_moment(),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the store never recovers: {:?}", store.status().failed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_takes_commits_again_once_there_is_room() {
    for (durability, reserve_bytes) in [(Durability::Fsync, 0), (Durability::Os, 3000)] {
        let disk = Arc::new(FaultFiles::new());
        let store = open(&disk, reserve_bytes);
        make_topic(&store, durability).await;
        let mut watch = store.watch(&TOPIC.into());
        let mut topics = store.watch_topics();
        let mut stored = Vec::new();
        for round in 0..3 {
            disk.set_space(disk.total_bytes() + 2000);
            for number in 0.. {
                assert!(number < 1000, "the disk never fills");
                let payload = format!("\"{round} {number}\"");
                match publish(&store, &payload).await {
                    Ok(()) => stored.push(payload),
                    Err(error) => {
                        assert!(matches!(error, CommitError::StoreFailed(_)), "{error}");
                        break;
                    }
                }
            }
            assert_eq!(payloads(&store).await, stored, "reading goes on");
            disk.clear_faults();
            let payload = format!("\"{round} again\"");
            publish_in_the_end(&store, &payload).await;
            stored.push(payload);
            assert_eq!(payloads(&store).await, stored);
            assert!(topics.changed().await);
        }
        assert_eq!(store.status().failed, None);
        while watch.current() < stored.len() as u64 {
            assert!(watch.moved().await, "watches go on");
        }
        store.close().await.expect("it closes");
        drop(store);
        let store = open(&disk, reserve_bytes);
        assert_eq!(payloads(&store).await, stored);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_sync_is_recovered_from_also_when_it_fails_again() {
    let disk = Arc::new(FaultFiles::new());
    let store = open(&disk, 0);
    make_topic(&store, Durability::Fsync).await;
    let mut stored = Vec::new();
    for round in 0..6 {
        let payload = format!("\"{round} before\"");
        publish_in_the_end(&store, &payload).await;
        stored.push(payload);
        disk.fail_sync_after(1);
        let failed = publish(&store, "\"failed\"").await;
        assert!(matches!(failed, Err(CommitError::StoreFailed(_))));
        if round % 2 == 1 {
            // The next opening fails too.
            disk.fail_sync_after(1);
        }
        let payload = format!("\"{round} after\"");
        publish_in_the_end(&store, &payload).await;
        stored.push(payload);
        assert_eq!(payloads(&store).await, stored, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_on_a_disk_that_takes_nothing_starts_read_only() {
    let disk = Arc::new(FaultFiles::new());
    let store = open(&disk, 0);
    make_topic(&store, Durability::Fsync).await;
    for number in 0..20 {
        let payload = number.to_string();
        publish(&store, &payload).await.expect("a commit");
    }
    let before = payloads(&store).await;
    drop(store);
    let disk = Arc::new(disk.process_crash());
    // The torn tail has to be put aside, for which there is no room.
    let segment = "0000000000000001.seg";
    disk.overwrite(segment, |bytes| bytes.extend_from_slice(&[9; 100]))
        .expect("a segment");
    disk.set_space(0);
    let image = disk.bytes_of(segment).expect("a segment");

    let store = open(&disk, 0);
    let cause = store.status().failed.expect("it takes no writes");
    assert!(cause.starts_with("opening the log failed"), "{cause}");
    assert_eq!(payloads(&store).await, before);
    let failed = publish(&store, "1").await;
    assert!(matches!(failed, Err(CommitError::StoreFailed(_))));
    assert_eq!(disk.bytes_of(segment).expect("a segment"), image);

    disk.clear_faults();
    publish_in_the_end(&store, "\"new\"").await;
    let mut expected = before;
    expected.push("\"new\"".into());
    assert_eq!(payloads(&store).await, expected);
    assert_eq!(store.status().failed, None);
    store.close().await.expect("it closes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_store_is_not_opened_anew() {
    let disk = Arc::new(FaultFiles::new());
    let store = open(&disk, 0);
    make_topic(&store, Durability::Fsync).await;
    disk.set_space(0);
    let failed = publish(&store, "1").await;
    assert!(matches!(failed, Err(CommitError::StoreFailed(_))));
    // Closing may come before or behind an opening that is under way; nothing opens the log after it.
    let _ = store.close().await;
    disk.clear_faults();
    let writes = disk.writes();
    for _ in 0..40 {
        a_moment();
        assert!(publish(&store, "1").await.is_err());
    }
    assert_eq!(disk.writes(), writes);
    drop(store);
    drop(open(&disk, 0));
}
