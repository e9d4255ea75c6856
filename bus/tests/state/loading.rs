//! Loading a table and following from there, while everything goes on.

use super::model::{Ground, Model, TOPIC, Table, apply, load_and_follow, sleep, with_snapshots};
use prombus::{Bus, BusOptions, PublishOptions, TopicConfig};
use prombus_store::conformance::Random;

const KEYS: u64 = 80_000;

#[tokio::test(start_paused = true)]
async fn without_a_snapshot_the_topic_itself_is_the_table() {
    let bus = Ground::new().bus();
    let mut model = Model::default();
    for (key, payload) in [
        ("a", Some("1")),
        ("b", Some("2")),
        ("a", None),
        ("c", Some("3")),
    ] {
        model.publish(&bus, key, payload).await;
    }
    let mut loading = bus.load_state(TOPIC).await.expect("it is there");
    assert!(!loading.is_from_snapshot());
    assert_eq!(loading.position(), 4);
    let page = loading.next_page().await.expect("a page").expect("keys");
    let b = &page[0];
    assert_eq!((b.key.as_str(), b.payload.as_str(), b.seq), ("b", "2", 2));
    assert!(loading.next_page().await.expect("the end").is_none());
    assert_eq!(load_and_follow(&bus, &model, 0).await, model.now());
    assert!(bus.load_state("none").await.is_err());
}

/// Between pages keys change, are deleted and made, and snapshots go on. Whatever the table has of them, following
/// brings exactly the rest.
#[tokio::test(start_paused = true)]
async fn changes_while_loading_are_neither_lost_nor_repeated() {
    for snapshots in [false, true] {
        for seed in 0..2 {
            changes_while_loading(seed, snapshots).await;
        }
    }
}

async fn changes_while_loading(seed: u64, snapshots: bool) {
    let (ground, mut random) = (Ground::new(), Random::seeded(seed));
    let bus = ground.bus();
    let config = if snapshots {
        with_snapshots()
    } else {
        TopicConfig::default()
    };
    bus.create_topic(TOPIC, &config).await.expect("made");
    let mut log: Vec<(String, Option<String>)> = Vec::new();
    publish_many(
        &bus,
        &mut log,
        (0..KEYS).map(|number| (number, Some(number))),
    )
    .await;
    if snapshots {
        bus.snapshot(TOPIC).await.expect("a snapshot");
    }
    let mut loading = bus.load_state(TOPIC).await.expect("it is there");
    let position = loading.position();
    assert_eq!(position, KEYS);
    let mut seen: std::collections::HashMap<String, u64> = std::collections::HashMap::new();
    let mut table = Table::new();
    let mut pages = 0;
    while let Some(page) = loading.next_page().await.expect("a page") {
        pages += 1;
        for state in page {
            seen.insert(state.key.clone(), state.seq);
            apply(&mut table, &state.key, Some(&state.payload));
        }
        let changes: Vec<(u64, Option<u64>)> = (0..200)
            .map(|_| {
                (
                    random.below(KEYS + 50),
                    random.percent(80).then(|| random.below(1_000_000)),
                )
            })
            .collect();
        publish_many(&bus, &mut log, changes.into_iter()).await;
        if snapshots && random.percent(70) {
            bus.snapshot(TOPIC).await.expect("a snapshot");
        }
    }
    assert!(pages > 1, "there was time for changes");
    let mut follow = loading.follow().expect("it goes on");
    while let Some(page) = follow.read_on().await.expect("a page") {
        for event in page.events {
            let key = event.key().expect("a key").into_owned();
            let known = seen.insert(key.clone(), event.seq()).unwrap_or(0);
            assert!(
                event.seq() > known,
                "seed {seed}: {key} came again at {}",
                event.seq()
            );
            let payload = Some(event.payload()).filter(|_| !event.is_tombstone());
            apply(&mut table, &key, payload);
        }
    }
    let mut expected = Table::new();
    for (key, payload) in &log {
        apply(&mut expected, key, payload.as_deref());
    }
    assert!(table == expected, "seed {seed}: the table is the fold");
}

#[tokio::test(start_paused = true)]
async fn a_load_notices_that_everything_began_anew() {
    let bus = Ground::new().bus();
    bus.create_topic(TOPIC, &with_snapshots())
        .await
        .expect("made");
    let mut model = Model::default();
    model.publish(&bus, "a", Some("1")).await;
    bus.snapshot(TOPIC).await.expect("a snapshot");
    let mut loading = bus.load_state(TOPIC).await.expect("it is there");
    bus.purge_topic(TOPIC).await.expect("purged");
    let moved = loading.next_page().await.expect_err("it is another one");
    assert!(moved.to_string().contains("load it again"), "{moved}");
}

#[tokio::test(start_paused = true)]
async fn two_buses_make_snapshots_of_one_topic_without_doubling() {
    for seed in 0..50 {
        let mut ground = Ground::new();
        ground.options = BusOptions {
            snapshot_pass_keys: 3,
            ..ground.options
        };
        let (one, other) = (ground.bus(), ground.bus());
        let config = TopicConfig {
            snapshot_interval_ms: Some(100),
            compaction: false,
            ..with_snapshots()
        };
        one.create_topic(TOPIC, &config).await.expect("made");
        let mut random = Random::seeded(seed);
        let mut model = Model::default();
        for number in 0..40 {
            let bus = if random.percent(50) { &one } else { &other };
            let key = format!("k{}", random.below(8));
            let payload = number.to_string();
            let payload = random.percent(80).then_some(payload.as_str());
            model.publish(bus, &key, payload).await;
            if random.percent(20) {
                let (first, second) = tokio::join!(one.snapshot(TOPIC), other.snapshot(TOPIC));
                assert!(first.is_ok() && second.is_ok(), "seed {seed}");
            }
            sleep(random.below(60)).await;
        }
        let mut seqs = Vec::new();
        let mut records = one.follow(super::model::SNAPSHOT, 1).expect("it is there");
        while let Some(page) = records.read_on().await.expect("a page") {
            for event in page.events {
                let headers = prombus::EventFields::of(&event).headers;
                seqs.push(headers["x-source-seq"].parse::<u64>().expect("a number"));
            }
        }
        let mut once = seqs.clone();
        once.dedup();
        assert_eq!(seqs, once, "seed {seed}: no change twice");
        assert!(seqs.is_sorted(), "seed {seed}: in order");
        assert_eq!(
            load_and_follow(&other, &model, seed).await,
            model.now(),
            "seed {seed}"
        );
    }
}

async fn publish_many(
    bus: &Bus,
    log: &mut Vec<(String, Option<String>)>,
    changes: impl Iterator<Item = (u64, Option<u64>)>,
) {
    let mut batch = bus.batch();
    for (key, payload) in changes {
        let (key, payload) = (
            format!("k{key:06}"),
            payload.map(|payload| payload.to_string()),
        );
        let options = PublishOptions {
            key: Some(&key),
            ..PublishOptions::default()
        };
        batch.add(TOPIC, payload.as_deref().unwrap_or("null"), &options);
        log.push((key, payload));
    }
    for result in bus.publish_batch(batch).await {
        result.expect("stored");
    }
}
