//! Finding events by id and by key.

use super::Harness;
use super::case::{ALL, Case, at_most, client_id, keyed, plain, seqs, with_id};
use crate::{Draft, ReadFrom, StoredEvent, TopicOptions};
use std::sync::Arc;

/// Own and made ids lead to their event and to no other topic's.
pub async fn events_are_found_by_id<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let other = case.put_topic("other", TopicOptions::default()).await;
    let longest = "x".repeat(64);
    let drafts = [
        plain("1"),
        with_id("a b", "2"),
        plain("3"),
        with_id(&longest, "4"),
    ];
    let placed = case.store_all(&topic, &drafts).await;
    case.store_all(&other, &vec![plain("1"); 5]).await;
    for placed in &placed {
        let id = placed.id.as_str();
        assert_eq!(case.find_id(&topic, id).await, Some(placed.seq), "{id}");
        assert_eq!(case.find_id(&other, id).await, None, "{id} elsewhere");
    }
    let made = placed[0].id.as_str();
    let nearly = [
        &made[..35],
        &format!("{made}0"),
        &made.to_uppercase(),
        "A B",
        "a b ",
        "",
        "ü",
    ]
    .map(str::to_owned);
    for id in &nearly {
        if id != made {
            assert_eq!(case.find_id(&topic, id).await, None, "{id:?}");
        }
    }
}

/// The latest is the one with the highest position, whatever its time; tombstones are events like others.
pub async fn the_latest_event_of_a_key<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let old = Draft {
        ts: Some(1),
        ..keyed("a", "2")
    };
    let gone = Draft {
        tombstone: true,
        ..keyed("b", "null")
    };
    let drafts = [
        keyed("a", "1"),
        keyed("b", "1"),
        old,
        gone,
        keyed("", "1"),
        plain("1"),
    ];
    case.store_all(&topic, &drafts).await;
    let latest = case
        .store
        .latest_event(&topic, "a")
        .await
        .expect("an answer");
    let latest = latest.expect("it was published");
    assert_eq!((latest.seq(), latest.payload(), latest.ts()), (3, "2", 1));
    assert_eq!(case.latest_seq(&topic, "b").await, Some(4));
    assert_eq!(
        case.latest_seq(&topic, "").await,
        Some(5),
        "an empty key is a key"
    );
    assert_eq!(case.latest_seq(&topic, "c").await, None);
    assert_eq!(case.latest_seq(&topic, "A").await, None);
}

/// Keys come in the order of their bytes, each once, in pages that go on behind a key.
pub async fn latest_keys_come_in_order_and_pages<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let keys = [
        "b",
        "a",
        "aa",
        "a\"q",
        "ü",
        "",
        "z",
        "B",
        "\u{1f980}",
        "b",
        "a/1",
        "a",
        "\n",
    ];
    for key in keys {
        case.store(&topic, &keyed(key, "1")).await;
        case.store(&topic, &plain("1")).await;
    }
    let case = case.reopen().await;
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    for limit in [ALL, at_most(1), at_most(4)] {
        let events = all_keys(&case, &topic, limit.events).await;
        assert_eq!(keys_of(&events), sorted, "{limit:?}");
        for event in &events {
            let key = event.key().unwrap_or_default();
            assert_eq!(case.latest_seq(&topic, &key).await, Some(event.seq()));
        }
    }
    for (after, first) in [("a!", Some("a\"q")), ("c", Some("z")), ("\u{10ffff}", None)] {
        let page = case
            .store
            .read(&topic, ReadFrom::Key(Some(after)), at_most(1))
            .await;
        let page = page.expect("keys");
        assert_eq!(
            keys_of(&page.events).first().map(String::as_str),
            first,
            "behind {after}"
        );
    }
}

/// A key whose events are gone is gone; one that has a newer event is not.
pub async fn trimmed_keys_have_no_latest<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let drafts = ["a", "b", "c", "b", "d"].map(|key| keyed(key, "1"));
    case.store_all(&topic, &drafts).await;
    case.trim(&topic, 4).await;
    let case = case.reopen().await;
    for (key, expected) in [("a", None), ("b", Some(4)), ("c", None), ("d", Some(5))] {
        assert_eq!(case.latest_seq(&topic, key).await, expected, "{key}");
    }
    let keys = case
        .store
        .read(&topic, ReadFrom::Key(None), ALL)
        .await
        .expect("keys");
    assert_eq!(seqs(&keys.events), [4, 5]);
}

/// A few thousand events with ids and keys are found as before after a restart, and again after the next.
pub async fn everything_is_found_after_reopening<H: Harness>(harness: &H) {
    const EVENTS: usize = 2000;
    let (mut case, topic) = Case::with_topic(harness).await;
    let names: Vec<String> = (0..EVENTS)
        .map(|number| format!("{}", number * 31 % 977))
        .collect();
    let ids: Vec<String> = (0..EVENTS).map(|number| format!("id-{number}")).collect();
    let mut placed = Vec::new();
    for half in [0..EVENTS / 2, EVENTS / 2..EVENTS] {
        let draft = |at: usize| Draft {
            id: at.is_multiple_of(2).then(|| client_id(&ids[at])),
            ..keyed(&names[at], "1")
        };
        let drafts: Vec<Draft<'_>> = half.map(draft).collect();
        placed.extend(case.store_all(&topic, &drafts).await);
        case = case.reopen().await;
    }
    for at in (0..EVENTS).step_by(17) {
        let id = placed[at].id;
        assert_eq!(case.find_id(&topic, id.as_str()).await, Some(at as u64 + 1));
        let last = names.iter().rposition(|name| *name == names[at]);
        let expected = last.map(|last| last as u64 + 1);
        assert_eq!(case.latest_seq(&topic, &names[at]).await, expected);
    }
    assert_eq!(all_keys(&case, &topic, 100).await.len(), 977);
}

/// All keys, read in pages of so many.
async fn all_keys<H: Harness>(
    case: &Case<'_, H>,
    topic: &Arc<str>,
    page_events: usize,
) -> Vec<StoredEvent> {
    const MAX_PAGES: usize = 10_000;
    let mut events: Vec<StoredEvent> = Vec::new();
    for _ in 0..MAX_PAGES {
        let after = events
            .last()
            .map(|event| event.key().unwrap_or_default().into_owned());
        let page = case
            .store
            .read(topic, ReadFrom::Key(after.as_deref()), at_most(page_events))
            .await;
        let page = page.expect("keys");
        assert!(page.events.len() <= page_events, "no more than asked for");
        if page.events.is_empty() {
            return events;
        }
        events.extend(page.events);
    }
    panic!("the keys of {topic} do not come to an end");
}

fn keys_of(events: &[StoredEvent]) -> Vec<String> {
    events
        .iter()
        .map(|event| event.key().unwrap_or_default().into_owned())
        .collect()
}
