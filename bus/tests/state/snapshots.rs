//! Snapshots as the bus makes them by itself: when, of what, and where to.

use super::model::{Ground, Model, SNAPSHOT, TOPIC, load_and_follow, sleep, with_snapshots};
use prombus::{
    Bus, BusOptions, EventFields, PublishOptions, ReadFrom, ReadLimit, StoredEvent, TopicConfig,
};
use serde_json::{Value, json};

const INTERVAL_MS: u64 = 5_000;

#[tokio::test(start_paused = true)]
async fn changed_keys_are_published_every_interval() {
    let ground = Ground::new();
    let bus = ground.bus();
    bus.create_topic(TOPIC, &every_interval())
        .await
        .expect("made");
    let mut model = Model::default();
    sleep(1_000).await;
    assert!(
        bus.topic(SNAPSHOT).is_err(),
        "there is nothing to take a snapshot of"
    );
    for (key, payload) in [
        ("a", Some("1")),
        ("b", Some("{\"x\":1.50}")),
        ("a", Some("2")),
    ] {
        model.publish(&bus, key, payload).await;
    }
    bus.publish(TOPIC, &"no key", &PublishOptions::default())
        .await
        .expect("stored");
    sleep(INTERVAL_MS).await;
    let records = records(&bus).await;
    let payloads: Vec<&str> = records.iter().map(|event| event.payload()).collect();
    let [b_ts, a_ts] = [model.events[1].ts, model.events[2].ts];
    assert_eq!(
        payloads,
        [
            format!("{{\"key\":\"b\",\"payload\":{{\"x\":1.50}},\"ts\":{b_ts}}}"),
            format!("{{\"key\":\"a\",\"payload\":2,\"ts\":{a_ts}}}"),
        ],
        "each key once, its text as it was published"
    );
    assert_eq!(keys(&records), ["b", "a"]);
    let headers = EventFields::of(&records[1]).headers;
    assert_eq!(headers["x-source-seq"], "3");
    assert_eq!(
        headers["x-snapshot-seq"], "4",
        "also what has no key is behind it"
    );
    assert!(TopicConfig::of(&bus.topic(SNAPSHOT).expect("made")).compaction);

    model.publish(&bus, "a", None).await;
    model.publish(&bus, "c", Some("3")).await;
    sleep(INTERVAL_MS + 1).await;
    let records = self::records(&bus).await;
    assert_eq!(keys(&records), ["b", "a", "a", "c"], "only what changed");
    let deleted: Value = serde_json::from_str(records[2].payload()).expect("JSON");
    assert_eq!(
        (&deleted["key"], &deleted["payload"]),
        (&json!("a"), &Value::Null)
    );
    assert!(
        records[2].is_tombstone(),
        "compaction lets go of it some day"
    );

    let before = self::records(&bus).await.len();
    sleep(10 * INTERVAL_MS).await;
    assert_eq!(
        self::records(&bus).await.len(),
        before,
        "nothing changed, nothing is published"
    );
    assert_eq!(load_and_follow(&bus, &model, 0).await, model.now());
}

#[tokio::test(start_paused = true)]
async fn the_default_is_thirty_seconds_and_a_new_bus_does_not_wait() {
    let ground = Ground::new();
    let bus = ground.bus();
    let config = TopicConfig {
        snapshot_interval_ms: None,
        ..with_snapshots()
    };
    bus.create_topic(TOPIC, &config).await.expect("made");
    sleep(1_000).await;
    let mut model = Model::default();
    model.publish(&bus, "a", Some("1")).await;
    sleep(28_000).await;
    assert!(bus.topic(SNAPSHOT).is_err(), "not yet");
    sleep(3_000).await;
    assert_eq!(keys(&records(&bus).await), ["a"]);
    model.publish(&bus, "b", Some("1")).await;
    drop(bus);
    let bus = ground.bus();
    sleep(10).await;
    assert_eq!(keys(&records(&bus).await), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_bus_that_is_gone_makes_no_more() {
    let ground = Ground::new();
    let bus = ground.bus();
    bus.create_topic(TOPIC, &every_interval())
        .await
        .expect("made");
    let mut model = Model::default();
    model.publish(&bus, "a", Some("1")).await;
    sleep(INTERVAL_MS).await;
    model.publish(&bus, "b", Some("1")).await;
    let store = bus.store().clone();
    bus.close().await.expect("closed");
    sleep(10 * INTERVAL_MS).await;
    let tail_seq = store.topic(SNAPSHOT).map(|info| info.tail_seq);
    assert_eq!(tail_seq, Some(1));
    let bus = ground.bus();
    drop(bus);
    sleep(10 * INTERVAL_MS).await;
    assert!(store.topic(SNAPSHOT).is_some_and(|info| info.tail_seq <= 2));
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_topic_that_is_configured_stays_as_it_is() {
    let ground = Ground::new();
    let own = TopicConfig {
        max_events: Some(77),
        ..TopicConfig::default()
    };
    let options = BusOptions {
        topic_defaults: vec![(SNAPSHOT.to_owned(), own.clone())],
        ..ground.options.clone()
    };
    let bus = Bus::open(ground.store.clone(), options).expect("good options");
    bus.create_topic(TOPIC, &with_snapshots())
        .await
        .expect("made");
    Model::default().publish(&bus, "a", Some("1")).await;
    bus.snapshot(TOPIC).await.expect("a snapshot");
    assert_eq!(TopicConfig::of(&bus.topic(SNAPSHOT).expect("made")), own);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_begins_anew_when_its_topic_or_its_place_does() {
    let bus = Ground::new().bus();
    bus.create_topic(TOPIC, &with_snapshots())
        .await
        .expect("made");
    let mut model = Model::default();
    model.publish(&bus, "old", Some("1")).await;
    model.publish(&bus, "older", Some("1")).await;
    bus.snapshot(TOPIC).await.expect("a snapshot");

    bus.delete_topic(TOPIC).await.expect("deleted");
    bus.create_topic(TOPIC, &with_snapshots())
        .await
        .expect("made again");
    let mut model = Model::default();
    assert_eq!(load_and_follow(&bus, &model, 1).await, model.now());
    for key in ["new", "newer", "newest"] {
        model.publish(&bus, key, Some("2")).await;
    }
    assert_eq!(bus.snapshot(TOPIC).await.expect("a snapshot"), 3);
    assert_eq!(load_and_follow(&bus, &model, 2).await, model.now());
    assert_eq!(
        keys(&records(&bus).await),
        ["old", "older", "new", "newer", "newest"]
    );

    bus.purge_topic(TOPIC).await.expect("purged");
    let mut model = Model::default();
    assert_eq!(load_and_follow(&bus, &model, 3).await, model.now());
    model.publish(&bus, "after", Some("3")).await;
    bus.snapshot(TOPIC).await.expect("a snapshot");
    assert_eq!(load_and_follow(&bus, &model, 4).await, model.now());

    bus.delete_topic(SNAPSHOT).await.expect("deleted");
    assert_eq!(load_and_follow(&bus, &model, 5).await, model.now());
    bus.snapshot(TOPIC).await.expect("a snapshot");
    assert_eq!(
        keys(&records(&bus).await),
        ["after"],
        "it has everything again"
    );
    assert_eq!(load_and_follow(&bus, &model, 6).await, model.now());

    let elsewhere = TopicConfig {
        snapshot_topic: Some("elsewhere".to_owned()),
        ..with_snapshots()
    };
    bus.configure_topic(TOPIC, &elsewhere)
        .await
        .expect("changed");
    bus.snapshot(TOPIC).await.expect("a snapshot");
    assert_eq!(bus.topic("elsewhere").expect("made").tail_seq, 1);
    let loading = bus.load_state(TOPIC).await.expect("it is there");
    assert!(loading.is_from_snapshot());
    assert_eq!(load_and_follow(&bus, &model, 7).await, model.now());
}

#[tokio::test(start_paused = true)]
async fn circles_are_refused_and_a_topic_without_snapshots_says_so() {
    let ground = Ground::new();
    let bus = ground.bus();
    let to = |target: &str| TopicConfig {
        snapshot_topic: Some(target.to_owned()),
        ..TopicConfig::default()
    };
    bus.create_topic("a", &to("b")).await.expect("made");
    for (topic, target) in [("b", "c"), ("c", "c"), ("c", "a"), ("c", "b")] {
        let refused = bus.create_topic(topic, &to(target)).await;
        let refused = refused.expect_err("refused");
        assert!(refused.to_string().contains("snapshot_topic"), "{refused}");
    }
    bus.configure_topic("a", &to("d"))
        .await
        .expect("it may move");
    bus.create_topic("b", &TopicConfig::default())
        .await
        .expect("made");
    assert!(bus.configure_topic("d", &to("a")).await.is_err());
    let without = bus.snapshot("b").await.expect_err("it has none");
    assert!(without.to_string().contains("snapshot_topic"), "{without}");
    for name in ["x.*", "x"] {
        let options = BusOptions {
            topic_defaults: vec![(name.to_owned(), to("x"))],
            ..ground.options.clone()
        };
        assert!(Bus::open(ground.store.clone(), options).is_err(), "{name}");
    }
}

fn every_interval() -> TopicConfig {
    TopicConfig {
        snapshot_interval_ms: Some(INTERVAL_MS),
        ..with_snapshots()
    }
}

async fn records(bus: &Bus) -> Vec<StoredEvent> {
    let limit = ReadLimit {
        events: 10_000,
        bytes: usize::MAX,
    };
    let page = bus
        .store()
        .read(&SNAPSHOT.into(), ReadFrom::Seq(1), limit)
        .await;
    page.expect("a page").events
}

fn keys(records: &[StoredEvent]) -> Vec<String> {
    let keys = records.iter().filter_map(|event| event.key());
    keys.map(|key| key.into_owned()).collect()
}
