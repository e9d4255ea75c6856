//! Many tasks at once: the order is one order, and every receipt agrees with it.

use super::Harness;
use super::case::{ALL, Case, client_id, plain, stored, with_id};
use crate::{
    Batch, Change, CommitError, Draft, EventOutcome, EventRef, Expect, Keyed, ReadFrom, Store,
    TopicOptions,
};
use std::collections::BTreeMap;
use std::sync::Arc;

const TASKS: usize = 16;

/// Committers that share topics get every position once, and each one's events stay in its order.
pub async fn many_committers_share_topics<H: Harness>(harness: &H) {
    const COMMITS: usize = 20;
    let case = Case::new(harness).await;
    let mut topics: Vec<Arc<str>> = Vec::new();
    for name in ["a", "b", "c"] {
        topics.push(case.put_topic(name, TopicOptions::default()).await);
    }
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (store, topics) = (case.store.clone(), topics.clone());
            tokio::spawn(async move {
                let mut placed: Vec<(usize, String, EventRef)> = Vec::new();
                for round in 0..COMMITS {
                    let mut batch = Batch::new();
                    let events: Vec<(usize, String)> = (0..=round % 4)
                        .map(|event| ((task + event) % 3, format!("[{task},{round},{event}]")))
                        .collect();
                    for (at, payload) in &events {
                        batch.publish(&topics[*at], &plain(payload));
                    }
                    let receipt = store.commit(batch).await.expect("a commit");
                    let outcomes = receipt.events.iter().map(stored);
                    placed.extend(
                        events
                            .into_iter()
                            .zip(outcomes)
                            .map(|((at, text), one)| (at, text, one)),
                    );
                }
                placed
            })
        })
        .collect();
    let mut by_seq: [BTreeMap<u64, (String, String)>; 3] = Default::default();
    for task in tasks {
        let mut last_seq = [0; 3];
        for (at, payload, placed) in task.await.expect("a committer") {
            assert!(
                placed.seq > last_seq[at],
                "one committer's events stay in order"
            );
            last_seq[at] = placed.seq;
            let before = by_seq[at].insert(placed.seq, (placed.id.to_string(), payload));
            assert_eq!(before, None, "each position once");
        }
    }
    let case = case.reopen().await;
    for (topic, expected) in topics.iter().zip(&by_seq) {
        let events = case.all(topic).await;
        let read = events
            .iter()
            .map(|one| (one.id().into_owned(), one.payload().to_owned()));
        assert!(
            read.eq(expected.values().cloned()),
            "what was answered is what is read"
        );
        assert!(
            expected.keys().copied().eq(1..=events.len() as u64),
            "no gaps"
        );
        assert!(
            events.is_sorted_by(|one, other| one.id() < other.id()),
            "ids rise"
        );
    }
}

/// Of many that publish the same id at once, one stores it and all receipts have its position.
pub async fn one_of_many_stores_an_id<H: Harness>(harness: &H) {
    const IDS: usize = 20;
    let (case, topic) = Case::with_topic(harness).await;
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (store, topic) = (case.store.clone(), topic.clone());
            tokio::spawn(async move {
                let mut batch = Batch::new();
                for number in 0..IDS {
                    batch.publish(&topic, &with_id(&format!("id-{number}"), "1"));
                }
                store.commit(batch).await.expect("a commit").events
            })
        })
        .collect();
    let mut firsts = [None; IDS];
    let mut seqs = [0; IDS];
    for task in tasks {
        for (at, outcome) in task.await.expect("a publisher").iter().enumerate() {
            let placed = match outcome {
                EventOutcome::Stored(placed) => {
                    assert_eq!(firsts[at].replace(placed.seq), None, "stored once");
                    placed
                }
                EventOutcome::Duplicate(placed) => placed,
                other => panic!("{other:?}"),
            };
            assert!(
                seqs[at] == 0 || seqs[at] == placed.seq,
                "all are told the same"
            );
            seqs[at] = placed.seq;
        }
    }
    assert!(firsts.iter().all(Option::is_some), "somebody stored it");
    assert_eq!(case.info(&topic).tail_seq, IDS as u64);
}

/// A counter that many raise by compare-and-set has been raised by all of them.
pub async fn compare_and_set_loses_no_update<H: Harness>(harness: &H) {
    const RAISES: u64 = 5;
    let (case, topic) = Case::with_topic(harness).await;
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let (store, topic) = (case.store.clone(), topic.clone());
            tokio::spawn(async move {
                for _ in 0..RAISES {
                    raise(&store, &topic).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a task");
    }
    let expected = TASKS as u64 * RAISES;
    let counter = case
        .store
        .get("counter")
        .await
        .expect("an answer")
        .expect("a record");
    assert_eq!(counter.value.as_ref(), expected.to_le_bytes());
    let events = case.all(&topic).await;
    let counts: Vec<u64> = events
        .iter()
        .filter_map(|event| event.payload().parse().ok())
        .collect();
    assert_eq!(
        counts,
        (1..=expected).collect::<Vec<_>>(),
        "one event for each raise, in order"
    );
}

/// Who reads while others write sees a topic from its start without holes.
pub async fn readers_see_whole_prefixes<H: Harness>(harness: &H) {
    const EVENTS: u64 = 200;
    let (case, topic) = Case::with_topic(harness).await;
    let (store, to) = (case.store.clone(), topic.clone());
    let writer = tokio::spawn(async move {
        for round in 0..EVENTS / 4 {
            let mut batch = Batch::atomic();
            for event in 0..4 {
                let draft = Draft {
                    id: Some(client_id(&format!("{}", round * 4 + event + 1))),
                    ..plain("1")
                };
                batch.publish(&to, &draft);
            }
            store.commit(batch).await.expect("a commit");
        }
    });
    let mut seen = 0;
    while !writer.is_finished() {
        let page = case
            .store
            .read(&topic, ReadFrom::Seq(1), ALL)
            .await
            .expect("a page");
        let ids = page.events.iter().map(|event| event.id().into_owned());
        assert!(
            ids.eq((1..=page.tail_seq).map(|seq| seq.to_string())),
            "no holes"
        );
        assert!(page.tail_seq >= seen, "what was seen stays");
        seen = page.tail_seq;
        tokio::task::yield_now().await;
    }
    writer.await.expect("the writer");
    assert_eq!(case.info(&topic).tail_seq, EVENTS);
}

/// Who sees a record sees the events that were committed with it.
pub async fn records_come_into_sight_with_their_events<H: Harness>(harness: &H) {
    const COMMITS: u64 = 300;
    let (case, topic) = Case::with_topic(harness).await;
    let (store, to) = (case.store.clone(), topic.clone());
    let writer = tokio::spawn(async move {
        for _ in 0..COMMITS {
            raise(&store, &to).await;
        }
    });
    let is_covered = |record: &Keyed| {
        let count = record.value.as_ref().try_into().map(u64::from_le_bytes);
        count.expect("eight bytes") <= case.info(&topic).tail_seq
    };
    while !writer.is_finished() {
        let found = case.store.get("counter").await.expect("an answer");
        assert!(found.iter().all(is_covered), "its event is there");
        tokio::task::yield_now().await;
        let listed = case.store.list("counter").await.expect("a list");
        let mut records = listed.iter().map(|(_, record)| record);
        assert!(records.all(is_covered), "its event is there");
        tokio::task::yield_now().await;
    }
    writer.await.expect("the writer");
}

/// A record is read as the commits leave it that were asked for before, also where no one waits for them.
pub async fn a_read_comes_behind_commits_under_way<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    for round in 1..=50u64 {
        let mut batch = Batch::atomic();
        batch.change(Change::Put {
            key: "k".into(),
            value: round.to_le_bytes().as_slice().into(),
            expect: Expect::Any,
        });
        batch.publish(&topic, &plain("1"));
        drop(case.store.commit(batch));
        let found = match round % 2 {
            0 => case.store.get("k").await.expect("an answer"),
            _ => {
                let listed = case.store.list("").await.expect("a list");
                listed.into_iter().next().map(|(_, record)| record)
            }
        };
        let found = found.expect("a record");
        assert_eq!(found.value.as_ref(), round.to_le_bytes());
        assert_eq!(case.info(&topic).tail_seq, round);
    }
}

/// Raises the counter by one and publishes its new value, both or neither, until no one else was faster.
async fn raise(store: &Arc<dyn Store>, topic: &Arc<str>) {
    const MAX_TRIES: usize = 100_000;
    for _ in 0..MAX_TRIES {
        let found = store.get("counter").await.expect("an answer");
        let (count, expect) = match &found {
            Some(record) => {
                let count = record.value.as_ref().try_into().map(u64::from_le_bytes);
                (count.expect("eight bytes"), Expect::Version(record.version))
            }
            None => (0, Expect::Absent),
        };
        let mut batch = Batch::atomic();
        batch.change(Change::Put {
            key: "counter".into(),
            value: (count + 1).to_le_bytes().as_slice().into(),
            expect,
        });
        batch.publish(topic, &plain(&format!("{}", count + 1)));
        match store.commit(batch).await {
            Ok(_) => return,
            Err(CommitError::VersionMismatch(_)) => tokio::task::yield_now().await,
            Err(other) => panic!("{other}"),
        }
    }
    panic!("the counter could not be raised");
}
