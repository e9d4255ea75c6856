//! The state at a time against a plain fold, with deletions, late events, compaction and snapshots. What is said is
//! right; what is not known is said not to be.

use super::lossy_store::START_MS;
use super::model::{Ground, Model, SNAPSHOT, TOPIC, Table, sleep, table_of, with_snapshots};
use prombus::error::StateError;
use prombus::{Bus, KeyRange, TopicConfig};
use prombus_store::conformance::Random;

const KEYS: [&str; 6] = ["", "a", "b", "b/1", "c", "ü"];
const SEEDS: u64 = 60;

#[tokio::test(start_paused = true)]
async fn without_compaction_everything_is_known() {
    for seed in 0..SEEDS {
        let (ground, mut random) = (Ground::new(), Random::seeded(seed));
        let bus = ground.bus();
        let mut model = Model::default();
        for number in 0..80 {
            sleep(random.below(20)).await;
            // Some are late, some from the future.
            let own_ts = random.percent(30).then(|| START_MS + random.below(1_500));
            let payload = number.to_string();
            let payload = random.percent(80).then_some(payload.as_str());
            let key = KEYS[random.below(6) as usize];
            model.publish_at(&bus, key, payload, own_ts).await;
        }
        for _ in 0..30 {
            let ts = START_MS - 5 + random.below(1_600);
            let expected = model.at(ts);
            assert_eq!(
                table_at(&bus, ts, 2).await.expect("known"),
                expected,
                "seed {seed} at {ts}"
            );
            for key in KEYS {
                let state = bus.state_at(TOPIC, key, ts).await.expect("known");
                let payload = state.map(|state| state.payload);
                assert_eq!(
                    payload.as_ref(),
                    expected.get(key),
                    "seed {seed}: {key} at {ts}"
                );
            }
        }
        let at_the_end = table_at(&bus, u64::MAX, 100).await.expect("known");
        assert_eq!(at_the_end, model.now(), "seed {seed}: as of now");
    }
}

#[tokio::test(start_paused = true)]
async fn with_compaction_what_is_said_is_right() {
    let (mut known, mut gone) = (0, 0);
    for seed in 0..SEEDS {
        let (answers, refusals) = compacted_run(seed, with_snapshots(), seed % 2 == 0).await;
        known += answers;
        gone += refusals;
    }
    assert!(known > 500 && gone > 100, "{known} known, {gone} gone");
}

/// The same history is known better where the snapshot topic keeps all of its records.
#[tokio::test(start_paused = true)]
async fn snapshots_know_what_the_log_has_lost() {
    let (mut with, mut without) = (0, 0);
    for seed in 0..SEEDS {
        with += compacted_run(seed, with_snapshots(), true).await.0;
        let plain = TopicConfig {
            snapshot_topic: None,
            ..with_snapshots()
        };
        without += compacted_run(seed, plain, true).await.0;
    }
    assert!(with > without, "{with} with snapshots, {without} without");
}

/// Publishes, compacts and makes snapshots as the seed says, and asks about every moment. Returns how many answers
/// there were, and how often there was none.
async fn compacted_run(seed: u64, config: TopicConfig, keep_snapshots: bool) -> (u64, u64) {
    let (ground, mut random) = (Ground::new(), Random::seeded(seed));
    let bus = ground.bus();
    let has_snapshots = config.snapshot_topic.is_some();
    if has_snapshots && keep_snapshots {
        let plain = TopicConfig::default();
        bus.create_topic(SNAPSHOT, &plain).await.expect("made");
    }
    bus.create_topic(TOPIC, &config).await.expect("made");
    let mut model = Model::default();
    let (mut known, mut gone) = (0, 0);
    for number in 0..100 {
        sleep(1 + random.below(20)).await;
        let payload = number.to_string();
        let payload = random.percent(80).then_some(payload.as_str());
        let key = KEYS[random.below(6) as usize];
        model.publish(&bus, key, payload).await;
        if random.percent(20) && has_snapshots {
            bus.snapshot(TOPIC).await.expect("a snapshot");
        }
        if random.percent(5) {
            bus.store().maintain().await.expect("upkeep");
        }
    }
    let last_ts = model.events.last().map_or(START_MS, |event| event.ts);
    for ts in (START_MS - 1..last_ts + 3).step_by(7) {
        let expected = model.at(ts);
        for key in KEYS {
            match bus.state_at(TOPIC, key, ts).await {
                Ok(state) => {
                    let payload = state.map(|state| state.payload);
                    assert_eq!(
                        payload.as_ref(),
                        expected.get(key),
                        "seed {seed}: {key:?} at {ts}"
                    );
                    known += 1;
                }
                Err(StateError::HistoryGone(_)) => gone += 1,
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
        match table_at(&bus, ts, 4).await {
            Ok(table) => assert_eq!(table, expected, "seed {seed} at {ts}"),
            Err(StateError::HistoryGone(_)) => {}
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert_eq!(
        table_at(&bus, last_ts, 100).await.expect("now"),
        model.now()
    );
    let never = bus.state_at(TOPIC, "never", START_MS + 1).await;
    assert_eq!(never.expect("it was not there"), None, "seed {seed}");
    (known, gone)
}

#[tokio::test(start_paused = true)]
async fn what_retention_took_is_forgotten_and_before_it_nothing_is_known() {
    let ground = Ground::new();
    let bus = ground.bus();
    let config = TopicConfig {
        max_events: Some(2),
        ..TopicConfig::default()
    };
    bus.create_topic(TOPIC, &config).await.expect("made");
    let mut model = Model::default();
    for key in ["a", "b", "c"] {
        model.publish(&bus, key, Some("1")).await;
        sleep(100).await;
    }
    bus.store().maintain().await.expect("upkeep");
    let ts = |at: usize| model.events[at].ts;
    let gone = bus
        .state_at(TOPIC, "b", ts(0))
        .await
        .expect_err("before all that is kept");
    assert!(matches!(gone, StateError::HistoryGone(_)), "{gone}");
    assert!(
        bus.state_at(TOPIC, "a", ts(1))
            .await
            .expect("forgotten")
            .is_none()
    );
    assert!(
        bus.state_at(TOPIC, "b", ts(1))
            .await
            .expect("kept")
            .is_some()
    );
    assert!(
        bus.state_at(TOPIC, "c", ts(1))
            .await
            .expect("not yet")
            .is_none()
    );
    bus.purge_topic(TOPIC).await.expect("purged");
    sleep(1).await;
    let now_ms = prombus::Clock::now_ms(&*ground.options.clock);
    assert!(
        bus.state_at(TOPIC, "c", now_ms)
            .await
            .expect("nothing")
            .is_none()
    );
    assert!(bus.state_at(TOPIC, "c", ts(2)).await.is_err());
}

/// A key that was deleted so long ago that nothing is left of it would be missing in the table of an old time.
#[tokio::test(start_paused = true)]
async fn a_table_older_than_its_tombstones_is_not_guessed() {
    let bus = Ground::new().bus();
    let config = TopicConfig {
        compaction: true,
        ..TopicConfig::default()
    };
    bus.create_topic(TOPIC, &config).await.expect("made");
    let mut model = Model::default();
    model.publish(&bus, "a", Some("1")).await;
    model.publish(&bus, "b", Some("1")).await;
    let then = model.events[1].ts;
    sleep(1_000).await;
    model.publish(&bus, "a", None).await;
    bus.store().maintain().await.expect("upkeep");
    sleep(25 * 60 * 60 * 1000).await;
    bus.store().maintain().await.expect("upkeep");
    let gone = table_at(&bus, then, 10).await.expect_err("not known");
    assert!(matches!(gone, StateError::HistoryGone(_)), "{gone}");
    assert!(gone.to_string().contains("the table"), "{gone}");
    let b = bus
        .state_at(TOPIC, "b", then)
        .await
        .expect("it is the latest");
    assert!(b.is_some());
    assert!(bus.state_at(TOPIC, "a", then).await.is_err());
}

async fn table_at(bus: &Bus, ts: u64, limit: usize) -> Result<Table, StateError> {
    let mut range = KeyRange {
        limit,
        ..KeyRange::default()
    };
    let mut table = Table::new();
    for _ in 0..100 {
        let page = bus.table_at(TOPIC, ts, &range).await?;
        table.extend(table_of(page.states));
        match page.next {
            Some(next) => range.after = Some(next),
            None => return Ok(table),
        }
    }
    panic!("the pages do not end");
}
