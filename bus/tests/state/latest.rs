//! The latest of each key: by name, all, by prefix, in pages.

use super::model::{Ground, Model, TOPIC};
use prombus::error::StateError;
use prombus::{Bus, KeyRange, PublishOptions};

#[tokio::test(start_paused = true)]
async fn named_keys_and_all_keys() {
    let (bus, _) = filled().await;
    let named = bus.latest_by_key(TOPIC, &["b", "none", "a", "gone"]).await;
    let named = named.expect("an answer");
    let payloads: Vec<&str> = named.iter().map(|event| event.payload()).collect();
    assert_eq!(
        payloads,
        ["\"b2\"", "1"],
        "in the order asked, without tombstones"
    );
    let all = bus.latest_by_key(TOPIC, &[]).await.expect("all of them");
    let keys: Vec<String> = all
        .iter()
        .map(|event| event.key().unwrap().into_owned())
        .collect();
    assert_eq!(keys, ["", "a", "a/1", "a/2", "a0", "b", "ü"]);
    assert!(
        bus.latest(TOPIC, "gone")
            .await
            .expect("an answer")
            .is_none()
    );
    let tombstone = bus.latest_or_tombstone(TOPIC, "gone").await;
    assert!(
        tombstone
            .expect("an answer")
            .expect("a tombstone")
            .is_tombstone()
    );
    for topic in ["none", "no topic"] {
        assert!(bus.latest(topic, "a").await.is_err(), "{topic}");
        assert!(bus.latest_by_key(topic, &[]).await.is_err(), "{topic}");
    }
}

#[tokio::test(start_paused = true)]
async fn prefixes_and_pages() {
    let (bus, _) = filled().await;
    for (prefix, expected) in [
        ("a", &["a", "a/1", "a/2", "a0"][..]),
        ("a/", &["a/1", "a/2"]),
        ("a/1", &["a/1"]),
        ("g", &[]),
        ("gone", &[]),
        ("ü", &["ü"]),
        ("z", &[]),
        ("", &["", "a", "a/1", "a/2", "a0", "b", "ü"]),
    ] {
        for limit in [1, 2, 3, 100] {
            assert_eq!(
                pages(&bus, prefix, limit).await,
                expected,
                "{prefix:?} by {limit}"
            );
        }
    }
    let behind = KeyRange {
        prefix: "a".to_owned(),
        after: Some("b".to_owned()),
        ..KeyRange::default()
    };
    let page = bus.latest_page(TOPIC, &behind).await.expect("a page");
    assert!(page.events.is_empty() && page.next.is_none());
    for limit in [0, 10_001] {
        let range = KeyRange {
            limit,
            ..KeyRange::default()
        };
        assert!(bus.latest_page(TOPIC, &range).await.is_err(), "{limit}");
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_for_one_answer_are_refused() {
    let bus = Ground::new().bus();
    let large = format!("\"{}\"", "x".repeat(900_000));
    for number in 0..12 {
        let key = format!("k{number}");
        let options = PublishOptions {
            key: Some(&key),
            ..PublishOptions::default()
        };
        bus.publish_text(TOPIC, &large, &options)
            .await
            .expect("stored");
    }
    let refused = bus.latest_by_key(TOPIC, &[]).await.expect_err("too large");
    assert!(matches!(refused, StateError::TooManyKeys(_)), "{refused}");
    let mut sorted = pages(&bus, "", 100).await;
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), 12, "pages give them all");
}

async fn filled() -> (Bus, Model) {
    let bus = Ground::new().bus();
    let mut model = Model::default();
    for (key, payload) in [
        ("b", Some("\"b1\"")),
        ("a", Some("1")),
        ("gone", Some("1")),
        ("a/2", Some("1")),
        ("b", Some("\"b2\"")),
        ("a0", Some("1")),
        ("gone", None),
        ("a/1", Some("1")),
        ("", Some("1")),
        ("ü", Some("1")),
    ] {
        model.publish(&bus, key, payload).await;
    }
    (bus, model)
}

async fn pages(bus: &Bus, prefix: &str, limit: usize) -> Vec<String> {
    let mut range = KeyRange {
        prefix: prefix.to_owned(),
        limit,
        ..KeyRange::default()
    };
    let mut keys = Vec::new();
    for _ in 0..100 {
        let page = bus.latest_page(TOPIC, &range).await.expect("a page");
        assert!(page.events.len() <= limit);
        keys.extend(
            page.events
                .iter()
                .map(|event| event.key().unwrap().into_owned()),
        );
        match page.next {
            Some(next) => range.after = Some(next),
            None => return keys,
        }
    }
    panic!("the pages do not end");
}
