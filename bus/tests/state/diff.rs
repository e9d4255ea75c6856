//! What changed between two times, against a plain fold of both.

use super::lossy_store::START_MS;
use super::model::{Ground, Model, TOPIC, Table, sleep, with_snapshots};
use prombus::error::StateError;
use prombus::{Bus, KeyChange, KeyRange};
use prombus_store::conformance::Random;
use std::collections::BTreeMap;

const KEYS: [&str; 6] = ["", "a", "b", "b/1", "c", "ü"];
const SEEDS: u64 = 30;

/// A key's payloads at both times.
type Change = (Option<String>, Option<String>);

async fn diff(
    bus: &Bus,
    times: (u64, u64),
    limit: usize,
) -> Result<BTreeMap<String, Change>, StateError> {
    let mut range = KeyRange {
        limit,
        ..KeyRange::default()
    };
    let mut found = BTreeMap::new();
    for _ in 0..100 {
        let page = bus.diff(TOPIC, times, &range).await?;
        for change in page.changes {
            let (key, payloads) = match change {
                KeyChange::Added { to } => (to.key, (None, Some(to.payload))),
                KeyChange::Deleted { from } => (from.key, (Some(from.payload), None)),
                KeyChange::Changed { from, to } => {
                    assert_eq!(from.key, to.key);
                    (to.key, (Some(from.payload), Some(to.payload)))
                }
            };
            assert!(found.insert(key, payloads).is_none(), "each key once");
        }
        match page.next {
            Some(next) => range.after = Some(next),
            None => return Ok(found),
        }
    }
    panic!("pages without end");
}

fn expected(from: &Table, to: &Table) -> BTreeMap<String, Change> {
    let keys = from.keys().chain(to.keys());
    let changes = keys.map(|key| (key.clone(), (from.get(key).cloned(), to.get(key).cloned())));
    changes.filter(|(_, (from, to))| from != to).collect()
}

/// Publishes to a few keys at random, some of them late.
async fn fill(bus: &Bus, random: &mut Random, count: u64, late_percent: u64) -> Model {
    let mut model = Model::default();
    for _ in 0..count {
        sleep(random.below(20)).await;
        let own_ts = random
            .percent(late_percent)
            .then(|| START_MS + random.below(1_500));
        let payload = random.below(3).to_string();
        let payload = random.percent(75).then_some(payload.as_str());
        let key = KEYS[random.below(6) as usize];
        model.publish_at(bus, key, payload, own_ts).await;
    }
    model
}

#[tokio::test(start_paused = true)]
async fn the_difference_is_that_of_both_tables() {
    for seed in 0..SEEDS {
        let (ground, mut random) = (Ground::new(), Random::seeded(seed));
        let bus = ground.bus();
        let model = fill(&bus, &mut random, 80, 20).await;
        for _ in 0..20 {
            let one = START_MS - 5 + random.below(1_600);
            let other = START_MS - 5 + random.below(1_600);
            let (from, to) = (one.min(other), one.max(other));
            let limit = 1 + random.below(7) as usize;
            let found = diff(&bus, (from, to), limit).await.expect("known");
            let expected = expected(&model.at(from), &model.at(to));
            assert_eq!(found, expected, "seed {seed}: {from} to {to} by {limit}");
            assert!(
                diff(&bus, (from, from), 10)
                    .await
                    .expect("known")
                    .is_empty()
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_compaction_took_is_not_guessed() {
    let (mut known, mut gone) = (0, 0);
    for seed in 0..SEEDS {
        let (ground, mut random) = (Ground::new(), Random::seeded(seed));
        let bus = ground.bus();
        bus.create_topic(TOPIC, &with_snapshots())
            .await
            .expect("made");
        let model = fill(&bus, &mut random, 60, 0).await;
        bus.store().maintain().await.expect("upkeep");
        for _ in 0..20 {
            let from = START_MS + random.below(1_200);
            let to = from + random.below(400);
            match diff(&bus, (from, to), 10).await {
                Ok(found) => {
                    assert_eq!(
                        found,
                        expected(&model.at(from), &model.at(to)),
                        "seed {seed}"
                    );
                    known += 1;
                }
                Err(StateError::HistoryGone(_)) => gone += 1,
                Err(error) => panic!("seed {seed}: {error}"),
            }
        }
    }
    assert!(known > 20 && gone > 20, "{known} known, {gone} gone");
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_is_refused() {
    let ground = Ground::new();
    let bus = ground.bus();
    let range = KeyRange::default();
    let unknown = bus.diff(TOPIC, (1, 2), &range).await.unwrap_err();
    assert!(matches!(unknown, StateError::UnknownTopic(_)));
    Model::default().publish(&bus, "a", Some("1")).await;
    let backwards = bus.diff(TOPIC, (2, 1), &range).await.unwrap_err();
    assert!(matches!(backwards, StateError::InvalidField(_)));
    let none = KeyRange { limit: 0, ..range };
    assert!(bus.diff(TOPIC, (1, 2), &none).await.is_err());
}
