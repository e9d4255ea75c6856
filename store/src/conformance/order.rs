//! Obligation 1: positions, ids and times follow the order of commits.

use super::Harness;
use super::case::{Case, START_MS, payloads, plain, seqs, stored, with_ts};
use crate::{Batch, EventRef, TopicOptions};

/// Each topic counts 1, 2, 3 …, however its events are mixed with others'.
pub async fn positions_have_no_gaps_in_interleaved_topics<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    let mut topics = Vec::new();
    for name in ["a", "a.b", "c"] {
        topics.push(case.put_topic(name, TopicOptions::default()).await);
    }
    let mut counts = [0u64; 3];
    for round in 0..20usize {
        let mut batch = Batch::new();
        let order: Vec<usize> = (0..=round).map(|n| (n * 5 + round) % 3).collect();
        for &at in &order {
            batch.publish(&topics[at], &plain(&format!("{round}")));
        }
        let receipt = case.commit(batch).await;
        for (&at, outcome) in order.iter().zip(&receipt.events) {
            counts[at] += 1;
            assert_eq!(stored(outcome).seq, counts[at], "topic {}", topics[at]);
        }
    }
    for (topic, count) in topics.iter().zip(counts) {
        let events = case.all(topic).await;
        assert_eq!(seqs(&events), (1..=count).collect::<Vec<_>>());
        assert!(events.iter().all(|event| event.topic() == topic.as_ref()));
        assert_eq!(case.info(topic).tail_seq, count);
        assert_eq!(case.info(topic).events, count);
    }
}

/// The first call comes first, though the answers are awaited the other way round.
pub async fn commits_are_ordered_by_their_calls<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let mut answers = Vec::new();
    for number in 0..50 {
        let mut batch = Batch::new();
        batch.publish(&topic, &plain(&format!("{}", 2 * number)));
        batch.publish(&topic, &plain(&format!("{}", 2 * number + 1)));
        answers.push((number, case.store.commit(batch)));
    }
    for (number, answer) in answers.into_iter().rev() {
        let receipt = answer.await.expect("a commit");
        let seqs: Vec<u64> = receipt.events.iter().map(|one| stored(one).seq).collect();
        assert_eq!(seqs, [2 * number + 1, 2 * number + 2]);
    }
    let expected: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    assert_eq!(payloads(&case.all(&topic).await), expected);
}

/// A caller that goes away does not take its events along.
pub async fn a_dropped_answer_does_not_undo_the_commit<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let mut batch = Batch::new();
    batch.publish(&topic, &plain("1"));
    drop(case.store.commit(batch));
    assert_eq!(case.store(&topic, &plain("2")).await.seq, 2);
    assert_eq!(payloads(&case.all(&topic).await), ["1", "2"]);
}

/// Ids are UUIDs of version 7 that rise as text: many in one millisecond, and when the clock goes back.
pub async fn generated_ids_strictly_increase<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let mut ids: Vec<String> = Vec::new();
    for now_ms in [START_MS, START_MS + 1, START_MS - 5000, 1, START_MS + 2] {
        case.clock.set(now_ms);
        let drafts = vec![plain("0"); 300];
        let mut placed = case.store_all(&topic, &drafts).await;
        placed.push(case.store(&topic, &with_ts(7)).await);
        placed.push(case.store(&topic, &with_ts(START_MS * 2)).await);
        ids.extend(placed.iter().map(|placed| placed.id.to_string()));
    }
    assert!(ids.is_sorted_by(|one, other| one < other), "ids rise");
    for id in &ids {
        assert!(is_uuid_v7(id), "{id} is a UUIDv7");
    }
    let events = case.all(&topic).await;
    let read: Vec<String> = events.iter().map(|event| event.id().into_owned()).collect();
    assert_eq!(read, ids, "what was answered is what is read");
}

/// The store's own times follow the clock forward and stand still when it goes back.
pub async fn given_times_never_fall<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let clock = [START_MS, START_MS + 10, START_MS + 3, 1, START_MS + 11];
    let expected = [0, 10, 10, 10, 11].map(|later| START_MS + later);
    for (now_ms, expected) in clock.into_iter().zip(expected) {
        case.clock.set(now_ms);
        assert_eq!(case.store(&topic, &plain("0")).await.ts, expected);
    }
    let read: Vec<u64> = case
        .all(&topic)
        .await
        .iter()
        .map(|event| event.ts())
        .collect();
    assert_eq!(read, expected);
}

/// A publisher's time is kept, in the past or the future, and the store's own times do not follow it.
pub async fn times_of_publishers_are_kept_and_bind_nobody<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let future = START_MS * 3;
    for own in [0, 5, future, START_MS - 1] {
        assert_eq!(case.store(&topic, &with_ts(own)).await.ts, own);
        assert_eq!(case.store(&topic, &plain("0")).await.ts, START_MS);
    }
    let read: Vec<u64> = case
        .all(&topic)
        .await
        .iter()
        .map(|event| event.ts())
        .collect();
    let given = START_MS;
    let expected = [0, given, 5, given, future, given, START_MS - 1, given];
    assert_eq!(read, expected);
}

/// A restart changes nothing about any of this, also when the clock is behind afterwards.
pub async fn ids_positions_and_times_go_on_after_reopening<H: Harness>(harness: &H) {
    let (mut case, topic) = Case::with_topic(harness).await;
    let mut placed: Vec<EventRef> = Vec::new();
    for now_ms in [START_MS + 100, START_MS, 1, START_MS + 101] {
        case.clock.set(now_ms);
        placed.push(case.store(&topic, &plain("0")).await);
        placed.push(case.store(&topic, &with_ts(START_MS * 2)).await);
        placed.extend(case.store_all(&topic, &[plain("1"), plain("2")]).await);
        case = case.reopen().await;
        assert_eq!(case.info(&topic).tail_seq, placed.len() as u64);
    }
    let given = placed.iter().filter(|placed| placed.ts != START_MS * 2);
    assert!(
        given.map(|placed| placed.ts).is_sorted(),
        "times never fall"
    );
    assert!(placed.is_sorted_by(|one, other| one.id.as_str() < other.id.as_str()));
    let events = case.all(&topic).await;
    let read = events
        .iter()
        .map(|event| (event.seq(), event.ts(), event.id().into_owned()));
    let answered = placed
        .iter()
        .map(|placed| (placed.seq, placed.ts, placed.id.to_string()));
    assert!(read.eq(answered), "what was answered is what is read");
    assert_eq!(seqs(&events), (1..=placed.len() as u64).collect::<Vec<_>>());
}

fn is_uuid_v7(text: &str) -> bool {
    text.len() == 36
        && text.char_indices().all(|(at, c)| match at {
            8 | 13 | 18 | 23 => c == '-',
            14 => c == '7',
            19 => matches!(c, '8' | '9' | 'a' | 'b'),
            _ => matches!(c, '0'..='9' | 'a'..='f'),
        })
}
