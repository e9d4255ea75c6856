//! Snapshots whose process dies at any of its commits, with that commit lost or only its answer. Whatever was left
//! behind, the next process goes on from there, and a table with what follows it is the fold over the log.

use super::lossy_store::LossyStore;
use super::model::{Ground, Model, SNAPSHOT, TOPIC, load_and_follow, with_snapshots};
use prombus::{Bus, BusOptions, EventFields};
use prombus_store::conformance::Random;

const SEEDS: u64 = 200;

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_commit_leaves_a_snapshot_that_goes_on() {
    let (mut deaths, mut kept) = (0, 0);
    for seed in 0..SEEDS {
        let mut random = Random::seeded(seed);
        let mut ground = Ground::new();
        ground.options = BusOptions {
            snapshot_pass_keys: 1 + random.below(6) as usize,
            ..ground.options
        };
        let mut model = Model::default();
        let publisher = ground.bus();
        publisher
            .create_topic(TOPIC, &with_snapshots())
            .await
            .expect("made");
        for _ in 0..6 {
            for _ in 0..random.below(25) {
                let key = format!("k{}", random.below(12));
                let payload = random.below(1_000).to_string();
                let payload = random.percent(85).then_some(payload.as_str());
                model.publish(&publisher, &key, payload).await;
            }
            if random.percent(30) {
                publisher.store().maintain().await.expect("upkeep");
            }
            // The next process, which dies after some commits.
            let happens = random.percent(50);
            let dying = LossyStore::dying(&ground.store, 1 + random.below(5), happens);
            let bus = Bus::open(dying.clone(), ground.options.clone()).expect("good options");
            let finished = bus.snapshot(TOPIC).await.is_ok();
            assert!(finished || dying.is_dead(), "seed {seed}");
            deaths += u64::from(dying.is_dead());
            kept += u64::from(dying.is_dead() && happens);
            drop(bus);
            let table = load_and_follow(&publisher, &model, seed).await;
            assert_eq!(table, model.now(), "seed {seed}");
        }
        let tail_seq = publisher.topic(TOPIC).expect("it is there").tail_seq;
        let whole = publisher.snapshot(TOPIC).await.expect("a snapshot");
        assert_eq!(whole, tail_seq, "seed {seed}");
        let table = load_and_follow(&publisher, &model, seed).await;
        assert_eq!(table, model.now(), "seed {seed}");
        assert_positions_grow(&publisher, seed).await;
    }
    assert!(
        deaths > SEEDS && kept > SEEDS / 4,
        "{deaths} deaths, {kept} kept"
    );
}

/// Every change is in the snapshot once, and what is stored together says the same of how far it is.
async fn assert_positions_grow(bus: &Bus, seed: u64) {
    if bus.topic(SNAPSHOT).is_err() {
        return;
    }
    let mut follow = bus.follow(SNAPSHOT, 1).expect("it is there");
    let (mut source_seq, mut snapshot_seq) = (0, 0);
    while let Some(page) = follow.read_on().await.expect("a page") {
        for event in page.events {
            let headers = EventFields::of(&event).headers;
            let number = |name: &str| headers[name].parse::<u64>().expect("a number");
            assert!(
                number("x-source-seq") > source_seq,
                "seed {seed}: no change twice"
            );
            assert!(number("x-snapshot-seq") >= snapshot_seq, "seed {seed}");
            assert!(
                number("x-snapshot-seq") >= number("x-source-seq"),
                "seed {seed}"
            );
            source_seq = number("x-source-seq");
            snapshot_seq = number("x-snapshot-seq");
        }
    }
}
