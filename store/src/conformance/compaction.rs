//! Compaction keeps at least the latest event of each key and moves no position. It may keep more.

use super::Harness;
use super::case::{ALL, Case, all_time, at_most, keyed, payloads, plain, seqs, with_id};
use crate::{Clock, Draft, EventOutcome, ReadFrom, StoredEvent, TopicOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// What is read is a part of what was published, in order, with the latest of each key and all without one.
pub async fn the_latest_of_each_key_is_kept<H: Harness>(harness: &H) {
    let (mut case, topic) = compacted(harness).await;
    let mut published: Vec<(Option<String>, String)> = Vec::new();
    for round in 0..5u32 {
        for number in 0..40 {
            let key = (number % 7 != 0).then(|| format!("key-{}", number * (round + 1) % 13));
            let payload = format!("{}", round * 100 + number);
            let draft = Draft {
                key: key.as_deref(),
                ..plain(&payload)
            };
            case.store(&topic, &draft).await;
            published.push((key, payload));
        }
        case.maintain().await;
        if round % 2 == 1 {
            case = case.reopen().await;
        }
        let events = case.all(&topic).await;
        for event in &events {
            let (key, payload) = &published[event.seq() as usize - 1];
            assert_eq!(
                (event.key().as_deref(), event.payload()),
                (key.as_deref(), payload.as_str())
            );
        }
        let kept: BTreeSet<u64> = events.iter().map(StoredEvent::seq).collect();
        let required = required(&published);
        assert!(kept.is_superset(&required), "{required:?} in {kept:?}");
        let info = case.info(&topic);
        assert_eq!(
            info.tail_seq,
            published.len() as u64,
            "positions do not move"
        );
        assert_eq!(info.events, events.len() as u64);
    }
}

/// Reading from any position gives what is kept from there on, in pages of any size.
pub async fn every_position_stays_readable<H: Harness>(harness: &H) {
    let (case, topic) = compacted(harness).await;
    for number in 0..60 {
        let key = format!("{}", number % 9);
        case.store(&topic, &keyed(&key, "1")).await;
    }
    case.maintain().await;
    let case = case.reopen().await;
    let kept = seqs(&case.all(&topic).await);
    for from_seq in 1..=61 {
        let expected: Vec<u64> = kept
            .iter()
            .copied()
            .filter(|&seq| seq >= from_seq)
            .collect();
        for limit in [ALL, at_most(1), at_most(4)] {
            assert_eq!(seqs(&case.pages(&topic, from_seq, limit).await), expected);
        }
        let page = case
            .store
            .read(&topic, ReadFrom::Seq(from_seq), at_most(1))
            .await
            .expect("a page");
        let next = expected.get(1).copied().unwrap_or(61);
        assert!(
            page.next_seq <= next.max(from_seq),
            "nothing kept is skipped"
        );
    }
    assert_eq!(case.store(&topic, &keyed("new", "1")).await.seq, 61);
}

/// A tombstone hides nothing before its time: a day long it is the latest of its key, then it may go.
pub async fn tombstones_stay_a_day_and_may_go_then<H: Harness>(harness: &H) {
    let (case, topic) = compacted(harness).await;
    let gone = |key| Draft {
        tombstone: true,
        ..keyed(key, "null")
    };
    case.store_all(&topic, &[keyed("a", "1"), keyed("b", "1"), gone("a")])
        .await;
    case.clock.advance(DAY_MS - 1000);
    case.maintain().await;
    let case = case.reopen().await;
    let latest = case
        .store
        .latest_event(&topic, "a")
        .await
        .expect("an answer");
    let latest = latest.expect("a tombstone is an event");
    assert_eq!(
        (latest.seq(), latest.is_tombstone(), latest.payload()),
        (3, true, "null")
    );
    let keys = case
        .store
        .read(&topic, ReadFrom::Key(None), ALL)
        .await
        .expect("keys");
    assert_eq!(seqs(&keys.events), [3, 2]);

    case.clock.advance(DAY_MS);
    case.maintain().await;
    let case = case.reopen().await;
    let events = case.all(&topic).await;
    let of_a = |event: &&StoredEvent| event.key().as_deref() == Some("a");
    let last = events.iter().rfind(of_a);
    assert!(
        last.is_none_or(StoredEvent::is_tombstone),
        "what it buried does not come back"
    );
    let expected = last.map(StoredEvent::seq);
    assert_eq!(case.latest_seq(&topic, "a").await, expected);
    assert_eq!(case.latest_seq(&topic, "b").await, Some(2));
    assert_eq!(case.store(&topic, &keyed("a", "\"back\"")).await.seq, 4);
    case.maintain().await;
    assert_eq!(case.latest_seq(&topic, "a").await, Some(4));
}

/// The day of a tombstone begins when it is stored, whatever ts its publisher gave, so that followers see it.
pub async fn a_tombstone_with_an_older_ts_stays_its_day<H: Harness>(harness: &H) {
    let (case, topic) = compacted(harness).await;
    let gone = |key, ts| Draft {
        tombstone: true,
        ts: Some(ts),
        ..keyed(key, "null")
    };
    let late_ms = case.clock.now_ms() + 100 * DAY_MS;
    case.store_all(&topic, &[keyed("a", "1"), keyed("b", "1")])
        .await;
    case.store_all(&topic, &[gone("a", 10), gone("b", late_ms)])
        .await;
    let mut case = case;
    for _ in 0..3 {
        // Enough that compaction looks at the topic again, in segments of their own.
        for number in 0..40 {
            let key = format!("other-{}", number % 3);
            case.store(&topic, &keyed(&key, "1")).await;
        }
        case.maintain().await;
        case = case.reopen().await;
        assert_eq!(case.latest_seq(&topic, "a").await, Some(3));
        assert_eq!(case.latest_seq(&topic, "b").await, Some(4));
    }
}

/// Where nothing is left, the first position to read is the next one to be given.
pub async fn a_topic_may_be_compacted_to_nothing<H: Harness>(harness: &H) {
    let (case, topic) = compacted(harness).await;
    let gone = ["a", "b", "c"].map(|key| Draft {
        tombstone: true,
        ..keyed(key, "null")
    });
    case.store_all(&topic, &gone).await;
    case.clock.advance(2 * DAY_MS);
    case.maintain().await;
    let case = case.reopen().await;
    let kept = case.all(&topic).await;
    let info = case.info(&topic);
    assert_eq!((info.tail_seq, info.events), (3, kept.len() as u64));
    let oldest_seq = kept.first().map_or(4, StoredEvent::seq);
    assert!(info.first_seq <= oldest_seq, "{info:?}");
    assert!(!kept.is_empty() || info.first_seq == 4, "{info:?}");
    assert_eq!(case.store(&topic, &keyed("a", "1")).await.seq, 4);
    assert_eq!(case.latest_seq(&topic, "a").await, Some(4));
}

/// Where compaction is off, nothing is dropped.
pub async fn other_topics_are_left_alone<H: Harness>(harness: &H) {
    let (case, _) = compacted(harness).await;
    let plain_topic = case.put_topic("plain", TopicOptions::default()).await;
    let both: [Arc<str>; 2] = ["compacted".into(), plain_topic.clone()];
    for number in 0..50 {
        let payload = format!("{number}");
        for topic in &both {
            case.store(topic, &keyed("k", &payload)).await;
        }
    }
    case.maintain().await;
    let case = case.reopen().await;
    let expected: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    assert_eq!(payloads(&case.all(&plain_topic).await), expected);
    assert_eq!(case.latest_seq(&both[0], "k").await, Some(50));
}

/// By time, id and key everything that is kept is found, and nothing else.
pub async fn what_is_kept_is_found<H: Harness>(harness: &H) {
    let (case, topic) = compacted(harness).await;
    let mut ids = Vec::new();
    for number in 0..80u64 {
        let key = format!("{}", number % 11);
        let draft = Draft {
            ts: Some(1000 + number * 37 % 50),
            ..keyed(&key, "1")
        };
        ids.push(case.store(&topic, &draft).await.id);
    }
    let own = case.store(&topic, &with_id("own", "1")).await;
    case.maintain().await;
    let case = case.reopen().await;
    let events = case.all(&topic).await;
    let mut moments: Vec<(u64, u64)> = events.iter().map(|one| (one.ts(), one.seq())).collect();
    for ts in [0, 1000, 1010, 1049, 1050] {
        let expected = moments
            .iter()
            .find(|&&(at, _)| at >= ts)
            .map(|&(_, seq)| seq);
        assert_eq!(case.find_ts(&topic, ts).await, expected, "since {ts}");
    }
    moments.sort_unstable();
    let by_time = case.pages_by_time(&topic, all_time(), at_most(3)).await;
    let found: Vec<(u64, u64)> = by_time.iter().map(|one| (one.ts(), one.seq())).collect();
    assert_eq!(found, moments);
    for (id, seq) in ids.iter().zip(1..) {
        let kept = events.iter().any(|event| event.seq() == seq);
        assert_eq!(case.find_id(&topic, id.as_str()).await, kept.then_some(seq));
    }
    let again = case.publish(&topic, &with_id("own", "1")).await;
    assert_eq!(again, EventOutcome::Duplicate(own));
}

async fn compacted<H: Harness>(harness: &H) -> (Case<'_, H>, Arc<str>) {
    let case = Case::new(harness).await;
    let options = TopicOptions {
        compaction: true,
        ..TopicOptions::default()
    };
    let topic = case.put_topic("compacted", options).await;
    (case, topic)
}

/// The positions that must be kept of what was published at 1, 2, 3 ….
fn required(published: &[(Option<String>, String)]) -> BTreeSet<u64> {
    let mut latest = BTreeMap::new();
    let mut required = BTreeSet::new();
    for ((key, _), seq) in published.iter().zip(1..) {
        match key {
            Some(key) => drop(latest.insert(key.as_str(), seq)),
            None => drop(required.insert(seq)),
        }
    }
    required.extend(latest.into_values());
    required
}
