//! What a key was at a time.

use super::Harness;
use super::case::{Case, keyed, plain};
use crate::{Draft, StoredEvent, TopicOptions};
use std::sync::Arc;

/// Of the events up to a time the one with the highest position counts, whatever the order of their times.
pub async fn the_latest_event_at_a_time<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let at = |ts, key| Draft {
        ts: Some(ts),
        ..keyed(key, "1")
    };
    let gone = Draft {
        tombstone: true,
        ..at(40, "a")
    };
    // Positions 1 to 8; the sixth is older than those before it.
    let drafts = [
        at(10, "a"),
        at(20, "b"),
        at(30, "a"),
        gone,
        at(50, "a"),
        at(15, "a"),
        Draft {
            ts: Some(5),
            ..plain("1")
        },
        at(60, ""),
    ];
    case.store_all(&topic, &drafts).await;
    let case = case.reopen().await;
    for (ts, a, b, empty) in [
        (9, None, None, None),
        (10, Some(1), None, None),
        (14, Some(1), None, None),
        (15, Some(6), None, None),
        (25, Some(6), Some(2), None),
        (u64::MAX, Some(6), Some(2), Some(8)),
    ] {
        let found = seqs_at(&case, &topic, &["a", "b", "", "none"], ts).await;
        assert_eq!(found, [a, b, empty, None], "at {ts}");
    }
    assert!(seqs_at(&case, &topic, &[], 10).await.is_empty());
    case.trim(&topic, 4).await;
    for (ts, a, b) in [(39, Some(6), None), (14, None, None), (45, Some(6), None)] {
        let found = seqs_at(&case, &topic, &["a", "b"], ts).await;
        assert_eq!(found, [a, b], "at {ts}, trimmed");
    }
    let unknown = case.store.latest(&"none".into(), vec![], Some(1)).await;
    assert!(unknown.is_err(), "there is no such topic");
}

/// Where compaction may have taken what is asked for, the answer says so; where it says nothing, it is right.
pub async fn what_compaction_took_is_not_guessed<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    let options = TopicOptions {
        compaction: true,
        ..TopicOptions::default()
    };
    let topic = case.put_topic("t", options).await;
    let keys: Vec<String> = (0..7).map(|number| number.to_string()).collect();
    let mut published: Vec<(&String, u64)> = Vec::new();
    let (mut case, mut certain) = (case, 0);
    for round in 0..12_u64 {
        for step in 0..25_u64 {
            let key = &keys[(step * step + round * 3) as usize % keys.len()];
            case.clock.advance(1 + step % 3);
            let placed = case.store(&topic, &keyed(key, "\"a payload\"")).await;
            published.push((key, placed.ts));
        }
        if round % 3 == 1 {
            case.maintain().await;
            case = case.reopen().await;
        }
        for (_, ts) in published.iter().step_by(7) {
            let past = case.store.latest(&topic, keys.clone(), Some(*ts)).await;
            for (key, past) in keys.iter().zip(past.expect("an answer")) {
                let is_it = |(other, other_ts): &(&String, u64)| *other == key && other_ts <= ts;
                let expected = published.iter().rposition(is_it);
                let expected = expected.map(|at| at as u64 + 1);
                let found = past.event.as_ref().map(StoredEvent::seq);
                assert!(found <= expected, "{key} at {ts}: nothing of the future");
                if past.is_certain {
                    assert_eq!(found, expected, "{key} at {ts}");
                    certain += 1;
                }
            }
        }
    }
    assert!(certain > 0, "some answers are certain");
}

/// The positions of certain answers.
async fn seqs_at<H: Harness>(
    case: &Case<'_, H>,
    topic: &Arc<str>,
    keys: &[&str],
    ts: u64,
) -> Vec<Option<u64>> {
    let keys = keys.iter().map(|key| (*key).to_owned()).collect();
    let past = case.store.latest(topic, keys, Some(ts)).await;
    let past = past.expect("an answer").into_iter();
    past.map(|past| {
        assert!(past.is_certain, "everything is there at {ts}");
        past.event.map(|event| event.seq())
    })
    .collect()
}
