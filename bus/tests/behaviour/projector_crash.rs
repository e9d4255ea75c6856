//! A projector is killed at seeded moments, its commits are refused, denied and lost, and a second one runs beside it.
//! What comes out equals a plain fold over the input: nothing is missing, nothing is there twice.

mod power;

use crate::support::*;
use prombus::{Bus, BusOptions, EventFields, ProcessProjector, ProjectorHandle, PublishOptions};
use prombus_store::conformance::Random;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

const BEATS: &str = "heartbeat.received";
const STATES: &str = "process.state";
/// How many seeds are run unless the environment says otherwise; each has several kill points.
const SEEDS: u64 = 150;
const STEPS: u64 = 40;
const PIDS: u64 = 4;

#[tokio::test(start_paused = true)]
async fn over_many_crashes_the_output_equals_a_plain_fold() {
    let seeds = seeds(SEEDS);
    let count = seeds.end - seeds.start;
    let mut crashes = 0;
    for seed in seeds {
        crashes += run(seed).await;
    }
    assert!(crashes >= count, "{crashes} crashes in {count} seeds");
}

/// Which seeds to run: those below `most`, or what the environment says.
fn seeds(most: u64) -> Range<u64> {
    match number("PROMBUS_SEED") {
        Some(only) => only..only + 1,
        None => 0..number("PROMBUS_SEEDS").unwrap_or(most),
    }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a seed is a number"))
}

/// A store, and the runners on it that have not crashed.
struct World {
    random: Random,
    store: Arc<TestStore>,
    options: BusOptions,
    publisher: Bus,
    runners: Vec<(Bus, ProjectorHandle)>,
    crashes: u64,
}

/// Runs a seed and says how often something crashed.
async fn run(seed: u64) -> u64 {
    let (store, options) = store();
    let publisher = Bus::open(store.clone(), options.clone()).expect("the options are good");
    let mut world = World {
        random: Random::seeded(seed),
        store,
        options,
        publisher,
        runners: Vec::new(),
        crashes: 0,
    };
    for _ in 0..STEPS {
        world.step().await;
    }
    // Whatever was to go wrong is over, and one runner has the time that it needs.
    world.store.forget_fault();
    world.crash_all().await;
    world.start();
    sleep(200_000).await;
    judge(&world.publisher, seed).await;
    world.crashes
}

impl World {
    async fn step(&mut self) {
        match self.random.below(12) {
            0..=5 => self.beat().await,
            6 => sleep(self.random.below(30_000)).await,
            7 => sleep(self.random.below(50)).await,
            8 => self.start(),
            9 => self.crash_all().await,
            _ => self.fail_a_commit().await,
        }
    }

    fn start(&mut self) {
        if self.runners.len() < 2 {
            let bus = Bus::open(self.store.clone(), self.options.clone());
            let bus = bus.expect("the options are good");
            let handle = bus.run_projector(ProcessProjector::default());
            self.runners.push((bus, handle.expect("it starts")));
        }
    }

    /// The processes end without warning; what their stores were about to do does not happen.
    async fn crash_all(&mut self) {
        for (_, handle) in self.runners.drain(..) {
            handle.stop().await;
            self.crashes += 1;
        }
    }

    /// Publishes some heartbeats: most good, some old, some none at all.
    async fn beat(&mut self) {
        for _ in 0..=self.random.below(6) {
            let payload = heartbeat(&mut self.random);
            let now_ms = self.options.clock.now_ms();
            let own_ts = now_ms - self.random.below(20_000);
            let options = PublishOptions {
                ts: (self.random.below(5) == 0).then_some(own_ts),
                ..PublishOptions::default()
            };
            let published = self.publisher.publish(BEATS, &payload, &options).await;
            published.expect("it is stored");
        }
    }

    /// Lets a commit to come go wrong, and gives it the time to.
    async fn fail_a_commit(&mut self) {
        let fault = match self.random.below(4) {
            0 => CommitFault::Refused,
            1 => CommitFault::Denied,
            2 => CommitFault::CrashBefore,
            _ => CommitFault::CrashAfter,
        };
        self.start();
        self.store.fail_commit(self.random.below(3), fault);
        self.beat().await;
        sleep(self.random.below(3_000)).await;
        let crashed = matches!(fault, CommitFault::CrashBefore | CommitFault::CrashAfter);
        if crashed && !self.store.has_fault() {
            self.crash_all().await;
        }
    }
}

/// Compares the output with a plain fold over the input; in the end every process is stale.
async fn judge(bus: &Bus, seed: u64) {
    let mut alive = Vec::new();
    let mut latest: BTreeMap<String, (String, Value)> = BTreeMap::new();
    for event in read_all(bus, STATES).await {
        let payload: Value = serde_json::from_str(event.payload()).expect("JSON");
        let key = event.key().expect("a key").into_owned();
        let causes = EventFields::of(&event).caused_by;
        let [cause] = causes.try_into().expect("one cause");
        if payload["status"] == "stale" {
            let before = latest.get(&key);
            let (beat, before) = before.unwrap_or_else(|| panic!("seed {seed}: {}", event.json()));
            let expected = (&cause, &json!("alive"));
            assert_eq!((beat, &before["status"]), expected, "seed {seed}");
            let silent_ms = event.ts() - payload["last_seen_ts"].as_u64().expect("a time");
            assert!(silent_ms >= 15_000, "seed {seed}: {}", event.json());
        } else {
            alive.push((cause.clone(), payload.clone()));
        }
        latest.insert(key, (cause, payload));
    }
    let expected = fold(bus).await;
    assert_eq!(alive.len(), expected.len(), "seed {seed}");
    assert_eq!(alive, expected, "seed {seed}");
    for (key, (_, payload)) in latest {
        assert_eq!(payload["status"], "stale", "seed {seed}: {key}");
    }
}

/// What a plain fold over the input makes of it: each heartbeat that counts, and the state behind it.
async fn fold(bus: &Bus) -> Vec<(String, Value)> {
    let mut last_seen: BTreeMap<u64, u64> = BTreeMap::new();
    let mut expected = Vec::new();
    let input = match bus.topic(BEATS) {
        Ok(_) => read_all(bus, BEATS).await,
        Err(_) => Vec::new(),
    };
    for event in input {
        let beat: Value = serde_json::from_str(event.payload()).expect("JSON");
        let pid = beat["pid"].as_u64().expect("a pid");
        let seen = last_seen.entry(pid).or_default();
        if beat["host"].is_null() || event.ts() < *seen {
            continue;
        }
        *seen = event.ts();
        let state = json!({
            "processId": format!("web:api:{pid}"), "name": "api", "host": "web", "pid": pid,
            "cpu_pct": beat["cpu_pct"], "mem_mb": 64, "last_seen_ts": event.ts(), "status": "alive",
        });
        expected.push((event.id().into_owned(), state));
    }
    expected
}

/// The payload of a heartbeat, mostly a good one.
fn heartbeat(random: &mut Random) -> Value {
    let pid = random.below(PIDS);
    match random.below(8) {
        0 => json!({"pid": pid, "name": "api"}),
        _ => json!({
            "pid": pid, "name": "api", "host": "web", "cpu_pct": random.below(100), "mem_mb": 64,
        }),
    }
}
