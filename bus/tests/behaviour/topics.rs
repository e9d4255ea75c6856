//! Topics: made by publishing or on purpose, changed, purged and deleted.

use crate::support::*;
use prombus::{Bus, BusOptions, Compatibility, Durability, Ended, TopicConfig};

#[tokio::test(start_paused = true)]
async fn the_first_publish_makes_a_topic_with_its_default() {
    let (store, options) = store();
    let os = TopicConfig {
        durability: Durability::Os,
        ..Default::default()
    };
    let compacted = TopicConfig {
        compaction: true,
        partitions: Some(4),
        ..Default::default()
    };
    let topic_defaults = vec![
        ("a.*".into(), os.clone()),
        ("a.**".into(), compacted.clone()),
    ];
    let bus = Bus::open(
        store,
        BusOptions {
            topic_defaults,
            ..options
        },
    )
    .expect("the options are good");
    for topic in ["a.b", "a.b.c", "other"] {
        publish_one(&bus, topic, 1).await;
    }
    let config = |topic| TopicConfig::of(&bus.topic(topic).expect("it exists"));
    assert_eq!(config("a.b"), os, "the first match wins");
    assert_eq!(config("a.b.c"), compacted);
    assert_eq!(config("other"), TopicConfig::default());
}

#[tokio::test(start_paused = true)]
async fn topics_are_made_changed_and_listed() {
    let bus = bus();
    let config = TopicConfig {
        retention_ms: Some(1_000),
        schema: Some(Compatibility::Full),
        ..Default::default()
    };
    bus.create_topic("t", &config).await.expect("made");
    assert_eq!(TopicConfig::of(&bus.topic("t").expect("it exists")), config);
    let error = bus.create_topic("t", &config).await.expect_err("it exists");
    assert_eq!(error.to_string(), "topic t already exists");
    let changed = TopicConfig {
        max_events: Some(10),
        ..Default::default()
    };
    bus.configure_topic("t", &changed).await.expect("it exists");
    assert_eq!(
        TopicConfig::of(&bus.topic("t").expect("it exists")),
        changed
    );
    let names: Vec<String> = bus
        .topics()
        .iter()
        .map(|info| info.name.to_string())
        .collect();
    assert_eq!(names, ["t"]);
    let bad = TopicConfig {
        max_bytes: Some(0),
        ..Default::default()
    };
    assert!(bus.configure_topic("t", &bad).await.is_err());
    assert!(bus.create_topic("a b", &config).await.is_err());
    assert_eq!(
        bus.configure_topic("u", &config)
            .await
            .expect_err("unknown")
            .kind(),
        "UnknownTopic"
    );
    assert_eq!(
        bus.purge_topic("u").await.expect_err("unknown").kind(),
        "UnknownTopic"
    );
}

#[tokio::test(start_paused = true)]
async fn a_purged_topic_keeps_its_positions() {
    let bus = bus();
    publish(&bus, "t", 3).await;
    bus.purge_topic("t").await.expect("it exists");
    assert!(read_all(&bus, "t").await.is_empty());
    assert_eq!(publish_one(&bus, "t", 4).await.seq, 4);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_topic_takes_its_groups_along() {
    let bus = bus();
    publish(&bus, "t", 3).await;
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    drop(
        bus.subscribe("t", "idle", earliest())
            .await
            .expect("subscribed"),
    );
    take(&subscription, 2).await;
    bus.delete_topic("t").await.expect("it exists");
    assert!(subscription.next().await.is_none());
    assert_eq!(subscription.ended(), Some(Ended::TopicDeleted));
    assert_eq!(
        bus.delete_topic("t").await.expect_err("gone").kind(),
        "UnknownTopic"
    );
    assert_eq!(
        publish_one(&bus, "t", 1).await.seq,
        1,
        "made again by publishing"
    );
    assert!(bus.groups("t").await.expect("it exists").is_empty());
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    assert_eq!(take(&subscription, 1).await, [1]);
}
