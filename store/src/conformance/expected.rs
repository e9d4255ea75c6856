//! What events expect of what is stored before them is compared in the step in which they get their positions.

use super::Harness;
use super::case::{Case, START_MS, keyed, plain, seqs, stored, with_id};
use crate::{
    Batch, Change, CommitError, Draft, EventOutcome, ExpectedPosition, IfExists, PositionMismatch,
    PositionOf, Store, TOMBSTONE_MS, TopicOptions,
};
use std::sync::Arc;

const TASKS: usize = 8;
const ROUNDS: usize = 10;

fn behind(seq: u64, draft: Draft<'_>) -> Draft<'_> {
    let expected = ExpectedPosition {
        seq: Some(seq),
        ..draft.expected
    };
    Draft { expected, ..draft }
}

fn behind_key(key_seq: u64, draft: Draft<'_>) -> Draft<'_> {
    let expected = ExpectedPosition {
        key_seq: Some(key_seq),
        ..draft.expected
    };
    Draft { expected, ..draft }
}

fn mismatch(of: PositionOf, expected: u64, actual: u64) -> EventOutcome {
    EventOutcome::SeqMismatch(PositionMismatch {
        of,
        expected,
        actual,
    })
}

/// Only what comes directly behind it is stored.
pub async fn the_last_position_of_a_topic<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    for wrong in [1, u64::MAX] {
        let outcome = case.publish(&topic, &behind(wrong, plain("0"))).await;
        assert_eq!(outcome, mismatch(PositionOf::Topic, wrong, 0));
    }
    for seq in 0..3 {
        let placed = case.store(&topic, &behind(seq, plain("1"))).await;
        assert_eq!(placed.seq, seq + 1);
    }
    for wrong in [0, 2, 4] {
        let outcome = case.publish(&topic, &behind(wrong, plain("0"))).await;
        assert_eq!(outcome, mismatch(PositionOf::Topic, wrong, 3));
    }
    case.trim(&topic, 4).await;
    let outcome = case.publish(&topic, &behind(0, plain("0"))).await;
    assert_eq!(
        outcome,
        mismatch(PositionOf::Topic, 0, 3),
        "positions go on"
    );
    assert_eq!(case.store(&topic, &behind(3, plain("1"))).await.seq, 4);
    assert_eq!(seqs(&case.all(&topic).await), [4]);
}

/// Other keys and events without one do not matter; both expectations have to hold.
pub async fn the_last_event_of_a_key<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let outcome = case.publish(&topic, &behind_key(1, keyed("a", "1"))).await;
    assert_eq!(outcome, mismatch(PositionOf::Key, 1, 0));
    case.store(&topic, &behind_key(0, keyed("a", "1"))).await;
    case.store_all(&topic, &[keyed("b", "1"), plain("1")]).await;
    let outcome = case.publish(&topic, &behind_key(0, keyed("a", "2"))).await;
    assert_eq!(outcome, mismatch(PositionOf::Key, 0, 1));
    assert_eq!(
        case.store(&topic, &behind_key(1, keyed("a", "2")))
            .await
            .seq,
        4
    );
    assert_eq!(
        case.store(&topic, &behind_key(2, keyed("b", "2")))
            .await
            .seq,
        5
    );
    let both = |seq, key_seq| behind(seq, behind_key(key_seq, keyed("a", "3")));
    let outcome = case.publish(&topic, &both(4, 4)).await;
    assert_eq!(outcome, mismatch(PositionOf::Topic, 4, 5));
    let outcome = case.publish(&topic, &both(5, 1)).await;
    assert_eq!(outcome, mismatch(PositionOf::Key, 1, 4));
    assert_eq!(case.store(&topic, &both(5, 4)).await.seq, 6);
}

/// It is an event like any other, and forgotten well before compaction may take it.
pub async fn a_tombstone_is_the_last_event_for_a_while<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    let options = TopicOptions {
        compaction: true,
        ..TopicOptions::default()
    };
    let topic = case.put_topic("t", options).await;
    case.store(&topic, &keyed("a", "1")).await;
    let gone = Draft {
        tombstone: true,
        ..keyed("a", "null")
    };
    case.store(&topic, &gone).await;
    let outcome = case.publish(&topic, &behind_key(0, keyed("a", "1"))).await;
    assert_eq!(outcome, mismatch(PositionOf::Key, 0, 2));
    case.clock.set(START_MS + TOMBSTONE_MS - 1);
    case.maintain().await;
    let outcome = case.publish(&topic, &behind_key(2, keyed("a", "1"))).await;
    assert_eq!(outcome, mismatch(PositionOf::Key, 2, 0));
    case.store(&topic, &behind_key(0, keyed("a", "1"))).await;
    case.clock.set(START_MS + 3 * TOMBSTONE_MS);
    case.maintain().await;
    let outcome = case.publish(&topic, &behind_key(0, keyed("a", "2"))).await;
    assert_eq!(
        outcome,
        mismatch(PositionOf::Key, 0, 3),
        "no tombstone any more"
    );
}

/// The caller that lost its reply asks again, and what it published moved the position.
pub async fn a_duplicate_is_compared_with_nothing<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let first = case.store(&topic, &behind(0, with_id("x", "1"))).await;
    for _ in 0..2 {
        let again = case.publish(&topic, &behind(0, with_id("x", "1"))).await;
        assert_eq!(again, EventOutcome::Duplicate(first));
        let other = case.publish(&topic, &behind(1, with_id("x", "2"))).await;
        assert_eq!(other, EventOutcome::IdConflict(first));
        let mut batch = Batch::atomic();
        batch.publish(&topic, &behind(0, with_id("x", "1")));
        let receipt = case.commit(batch).await;
        assert_eq!(receipt.events, [EventOutcome::Duplicate(first)]);
    }
    let outcome = case.publish(&topic, &behind(0, with_id("y", "1"))).await;
    assert_eq!(outcome, mismatch(PositionOf::Topic, 0, 1));
    // What was refused leaves its id free.
    assert_eq!(
        case.store(&topic, &behind(1, with_id("y", "2"))).await.seq,
        2
    );
}

/// The events of a batch, atomic or not, come one behind the other; of a plain one each is on its own.
pub async fn events_of_a_batch_see_those_before_them<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    for (round, mut batch) in [Batch::new(), Batch::atomic()].into_iter().enumerate() {
        let at = round as u64 * 4;
        let last_b = if round == 0 { 0 } else { 4 };
        batch.publish(&topic, &behind(at, keyed("a", "1")));
        batch.publish(&topic, &plain("1"));
        batch.publish(&topic, &behind_key(at + 1, keyed("a", "2")));
        batch.publish(&topic, &behind(at + 3, behind_key(last_b, keyed("b", "1"))));
        let placed = case.commit(batch).await.events;
        let seqs: Vec<u64> = placed.iter().map(|outcome| stored(outcome).seq).collect();
        assert_eq!(seqs, [at + 1, at + 2, at + 3, at + 4]);
    }
    let mut batch = Batch::new();
    batch.publish(&topic, &behind(0, keyed("a", "3")));
    batch.publish(&topic, &behind_key(7, keyed("a", "4")));
    batch.publish(&topic, &behind_key(7, keyed("a", "5")));
    let outcomes = case.commit(batch).await.events;
    assert_eq!(outcomes[0], mismatch(PositionOf::Topic, 0, 8));
    assert_eq!(stored(&outcomes[1]).seq, 9);
    assert_eq!(outcomes[2], mismatch(PositionOf::Key, 7, 9));
}

/// Nothing of it happens, and the error names the event.
pub async fn a_mismatch_refuses_an_atomic_batch<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let other = case.put_topic("other", TopicOptions::default()).await;
    case.store(&topic, &keyed("a", "1")).await;
    for wrong in [
        behind(0, keyed("a", "2")),
        behind_key(2, keyed("a", "2")),
        behind_key(1, keyed("b", "2")),
    ] {
        let mut batch = Batch::atomic();
        batch.publish(&other, &plain("1"));
        batch.publish(&topic, &wrong);
        batch.publish(&other, &plain("2"));
        batch.change(Change::Put {
            key: "record".into(),
            value: b"1".as_slice().into(),
            expect: crate::Expect::Any,
        });
        match case.store.commit(batch).await {
            Err(CommitError::SeqMismatch(error)) => {
                assert_eq!((&*error.topic, error.event), ("t", 1));
            }
            outcome => panic!("{outcome:?}"),
        }
    }
    assert_eq!(case.info(&topic).tail_seq, 1);
    assert_eq!(case.info(&other).tail_seq, 0);
    let record = case.store.get("record").await.expect("a read");
    assert_eq!(record, None);
}

/// It has no event before its first.
pub async fn a_topic_that_the_batch_makes<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    for (name, mut batch) in [("plain", Batch::new()), ("atomic", Batch::atomic())] {
        let topic: Arc<str> = name.into();
        batch.change(Change::PutTopic {
            topic: topic.clone(),
            options: TopicOptions::default(),
            if_exists: IfExists::Keep,
        });
        batch.publish(&topic, &behind(0, behind_key(0, keyed("a", "1"))));
        batch.publish(&topic, &behind(1, behind_key(1, keyed("a", "2"))));
        let outcomes = case.commit(batch).await.events;
        assert_eq!(stored(&outcomes[1]).seq, 2);
    }
    let unknown: Arc<str> = "unknown".into();
    let outcome = case
        .publish(&unknown, &behind_key(0, keyed("a", "1")))
        .await;
    assert_eq!(outcome, EventOutcome::UnknownTopic);
}

/// Trimmed events, and those of an earlier topic of the name.
pub async fn what_is_gone_does_not_count<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    case.store_all(&topic, &[keyed("a", "1"), keyed("b", "1")])
        .await;
    case.trim(&topic, 2).await;
    let outcome = case.publish(&topic, &behind_key(1, keyed("a", "2"))).await;
    assert_eq!(outcome, mismatch(PositionOf::Key, 1, 0));
    assert_eq!(
        case.store(&topic, &behind_key(2, keyed("b", "2")))
            .await
            .seq,
        3
    );
    let mut batch = Batch::atomic();
    batch.change(Change::Trim {
        topic: topic.clone(),
        first_seq: 4,
    });
    batch.publish(&topic, &behind_key(0, keyed("b", "3")));
    assert_eq!(stored(&case.commit(batch).await.events[0]).seq, 4);
    case.delete_topic(&topic).await;
    case.put_topic("t", TopicOptions::default()).await;
    let outcome = case.publish(&topic, &behind_key(4, keyed("b", "1"))).await;
    assert_eq!(outcome, mismatch(PositionOf::Key, 4, 0));
    case.store(&topic, &behind(0, behind_key(0, keyed("b", "1"))))
        .await;
}

/// Keys that JSON escapes, the empty one, and events without a key.
pub async fn awkward_keys_are_found<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let keys = ["", "\"", "a\\b", "\u{1}", "ü", "\u{1F600}", "line\nbreak"];
    for round in 0..2 {
        for (at, key) in keys.into_iter().enumerate() {
            let last = if round == 0 { 0 } else { at as u64 + 1 };
            case.store(&topic, &behind_key(last, keyed(key, "1"))).await;
        }
    }
    let outcome = case.publish(&topic, &behind_key(1, plain("1"))).await;
    assert_eq!(outcome, mismatch(PositionOf::Key, 1, 0), "no key, no event");
}

/// Also of keys whose events are on disk only.
pub async fn positions_are_known_after_reopening<H: Harness>(harness: &H) {
    let (mut case, topic) = Case::with_topic(harness).await;
    for round in 0..3 {
        let last = if round == 0 { 0 } else { round * 2 - 1 };
        let draft = behind(round * 2, behind_key(last, keyed("a", "1")));
        case.store(&topic, &draft).await;
        case.store(&topic, &plain("1")).await;
        case = case.reopen().await;
        case.maintain().await;
    }
}

/// Of all who want to come directly behind an event one does.
pub async fn one_of_many_has_the_next_position<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    for round in 0..ROUNDS as u64 {
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                let (store, topic) = (case.store.clone(), topic.clone());
                tokio::spawn(async move {
                    let mut batch = Batch::new();
                    batch.publish(&topic, &behind(round, plain("1")));
                    store.commit(batch).await.expect("a commit").events[0]
                })
            })
            .collect();
        let mut winners = 0;
        for task in tasks {
            match task.await.expect("a committer") {
                EventOutcome::Stored(placed) => {
                    assert_eq!(placed.seq, round + 1);
                    winners += 1;
                }
                lost => assert_eq!(lost, mismatch(PositionOf::Topic, round, round + 1)),
            }
        }
        assert_eq!(winners, 1);
    }
}

/// Counters that many tasks add to, with others publishing beside them: the last event of a key says where the next one
/// belongs, so that each sees all before it.
pub async fn no_update_of_a_key_is_lost<H: Harness>(harness: &H) {
    const KEYS: usize = 2;
    let (case, topic) = Case::with_topic(harness).await;
    let noise = {
        let (store, topic) = (case.store.clone(), topic.clone());
        tokio::spawn(async move {
            for round in 0..ROUNDS * TASKS {
                let mut batch = Batch::new();
                batch.publish(&topic, &keyed(&format!("other-{}", round % 3), "0"));
                store.commit(batch).await.expect("a commit");
            }
        })
    };
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (store, topic) = (case.store.clone(), topic.clone());
            tokio::spawn(async move {
                for round in 0..ROUNDS {
                    let key = format!("counter-{}", (task + round) % KEYS);
                    add_one(&store, &topic, &key).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a task");
    }
    noise.await.expect("the others");
    let mut sum = 0;
    for key in 0..KEYS {
        let key = format!("counter-{key}");
        let latest = case.store.latest_event(&topic, &key).await;
        let latest = latest.expect("a read").expect("an event");
        sum += latest.payload().parse::<usize>().expect("a number");
    }
    assert_eq!(sum, TASKS * ROUNDS);
}

async fn add_one(store: &Arc<dyn Store>, topic: &Arc<str>, key: &str) {
    const MAX_ATTEMPTS: usize = 10_000;
    for _ in 0..MAX_ATTEMPTS {
        let latest = store.latest_event(topic, key).await.expect("a read");
        let (seq, count) = latest.map_or((0, 0), |latest| {
            let count: u64 = latest.payload().parse().expect("a number");
            (latest.seq(), count)
        });
        let payload = (count + 1).to_string();
        let mut batch = Batch::new();
        batch.publish(topic, &behind_key(seq, keyed(key, &payload)));
        match store.commit(batch).await.expect("a commit").events[0] {
            EventOutcome::Stored(_) => return,
            EventOutcome::SeqMismatch(mismatch) => assert_ne!(mismatch.actual, seq),
            other => panic!("{other:?}"),
        }
    }
    panic!("{key} was changed by others again and again");
}
