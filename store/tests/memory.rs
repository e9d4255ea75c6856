//! The memory store keeps the contract, and what it does beyond it.
#![cfg(test)]
#![cfg(feature = "memory")]

use prombus_store::conformance::Harness;
use prombus_store::memory::MemoryStore;
use prombus_store::{
    Batch, Change, CommitError, Draft, EventOutcome, EventRef, IfExists, LimitReached, ManualClock,
    ReadFrom, ReadLimit, Receipt, Store, TopicOptions,
};
use std::sync::Arc;

/// Nothing outlives the process, so to open it again is to go on with it.
struct InMemory;

impl Harness for InMemory {
    async fn open(&self, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        Arc::new(MemoryStore::new(clock))
    }

    async fn reopen(&self, store: Arc<dyn Store>, _: Arc<ManualClock>) -> Arc<dyn Store> {
        store
    }

    fn seeds(&self) -> u64 {
        200
    }
}

prombus_store::conformance_suite!(InMemory);

const MAX_BYTES: u64 = 10_000;

#[tokio::test]
async fn a_full_store_refuses_events_and_nothing_else() {
    let store = MemoryStore::with_limit(Arc::new(ManualClock::at(1)), MAX_BYTES);
    put_topic(&store, TopicOptions::default()).await;
    let mut tail_seq = 0;
    let refused = loop {
        match publish(&store, 3).await {
            Ok(_) => tail_seq += 3,
            Err(error) => break error,
        }
        assert!(tail_seq < 100, "it never fills up");
    };
    let limit = LimitReached {
        name: "memory_store_bytes",
        limit: MAX_BYTES,
    };
    assert_eq!(refused, CommitError::LimitReached(limit));
    assert_eq!(store.topic("t").expect("a topic").tail_seq, tail_seq);

    let mut trim = Batch::new();
    trim.change(Change::Trim {
        topic: "t".into(),
        first_seq: tail_seq,
    });
    store.commit(trim).await.expect("changes need no room");
    let receipt = publish(&store, 1).await.expect("there is room again");
    assert_eq!(placed(&receipt).seq, tail_seq + 1);
    assert_eq!(
        store.status().bytes,
        store.topic("t").expect("a topic").bytes
    );
}

#[tokio::test]
async fn a_full_store_forgets_what_it_may_before_it_refuses() {
    let store = MemoryStore::with_limit(Arc::new(ManualClock::at(1)), MAX_BYTES);
    let options = TopicOptions {
        max_events: Some(5),
        ..TopicOptions::default()
    };
    put_topic(&store, options).await;
    for _ in 0..100 {
        publish(&store, 1).await.expect("retention makes room");
    }
    assert!(store.status().bytes <= MAX_BYTES);
}

#[tokio::test]
async fn compaction_keeps_no_more_than_it_must() {
    let clock = Arc::new(ManualClock::at(1));
    let store = MemoryStore::new(clock.clone());
    let options = TopicOptions {
        compaction: true,
        ..TopicOptions::default()
    };
    put_topic(&store, options).await;
    let mut batch = Batch::new();
    for (key, payload) in [
        ("a", "1"),
        ("b", "1"),
        ("a", "2"),
        ("b", "null"),
        ("a", "3"),
    ] {
        let draft = Draft {
            key: Some(key),
            payload,
            tombstone: payload == "null",
            ..Draft::default()
        };
        batch.publish(&"t".into(), &draft);
    }
    store.commit(batch).await.expect("a commit");
    for (now_ms, kept) in [(1, &[4, 5][..]), (25 * 60 * 60 * 1000, &[5])] {
        clock.set(now_ms);
        store.maintain().await.expect("maintenance");
        let limit = ReadLimit {
            events: 10,
            bytes: 10_000,
        };
        let page = store
            .read(&"t".into(), ReadFrom::Seq(1), limit)
            .await
            .expect("a page");
        let seqs: Vec<u64> = page.events.iter().map(|event| event.seq()).collect();
        assert_eq!(seqs, kept);
    }
}

#[tokio::test]
async fn stores_of_one_number_make_the_same_ids_and_others_do_not() {
    let mut ids = Vec::new();
    for number in [1, 1, 2] {
        let clock = Arc::new(ManualClock::at(1));
        ids.push(first_id(&MemoryStore::numbered(clock, MAX_BYTES, number)).await);
    }
    for _ in 0..2 {
        ids.push(first_id(&MemoryStore::new(Arc::new(ManualClock::at(1)))).await);
    }
    assert_eq!(ids[0], ids[1]);
    ids.remove(0);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4);
}

async fn first_id(store: &MemoryStore) -> String {
    put_topic(store, TopicOptions::default()).await;
    let receipt = publish(store, 1).await.expect("a commit");
    placed(&receipt).id.to_string()
}

async fn put_topic(store: &MemoryStore, options: TopicOptions) {
    let mut batch = Batch::new();
    batch.change(Change::PutTopic {
        topic: "t".into(),
        options,
        if_exists: IfExists::Replace,
    });
    store.commit(batch).await.expect("a topic is made");
}

/// Publishes events of a bit more than 500 bytes each.
async fn publish(store: &MemoryStore, count: usize) -> Result<Receipt, CommitError> {
    let payload = format!("\"{}\"", "x".repeat(500));
    let mut batch = Batch::new();
    for _ in 0..count {
        let draft = Draft {
            payload: &payload,
            ..Draft::default()
        };
        batch.publish(&"t".into(), &draft);
    }
    store.commit(batch).await
}

fn placed(receipt: &Receipt) -> EventRef {
    match receipt.events.first() {
        Some(EventOutcome::Stored(placed)) => *placed,
        other => panic!("not stored: {other:?}"),
    }
}
