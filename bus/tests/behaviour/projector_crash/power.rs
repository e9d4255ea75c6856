//! The same on the embedded log, on a disk whose power goes at seeded moments. Which thread gets how far before it does
//! is not the seed's to decide; whatever it was, the output has to equal the fold.

use super::{BEATS, STATES, heartbeat, judge, seeds};
use crate::support::*;
use prombus::{Bus, BusOptions, ProcessProjector, ProjectorHandle, ReadFrom, TopicConfig};
use prombus_log::fault::FaultFiles;
use prombus_log::{FileStore, LogOptions};
use prombus_store::ManualClock;
use prombus_store::conformance::Random;
use std::sync::Arc;

/// How many seeds are run unless the environment says otherwise.
const SEEDS: u64 = 40;
/// How often the power goes in each.
const LOSSES: u64 = 3;
/// How many changes to the disk at most before it does.
const STOP_WITHIN: u64 = 60;
/// How long anything may take, in looks of a millisecond.
const MOST_LOOKS: u64 = 20_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_power_losses_the_output_equals_a_plain_fold() {
    for seed in seeds(SEEDS) {
        run(seed).await;
    }
}

async fn run(seed: u64) {
    let mut random = Random::seeded(seed);
    let clock = Arc::new(ManualClock::at(START_MS));
    let mut disk = Arc::new(FaultFiles::new());
    for _ in 0..LOSSES {
        let (bus, handle) = open(&disk, &clock, seed).await;
        disk.stop_after(random.below(STOP_WITHIN));
        for _ in 0..random.below(40) {
            clock.advance(random.below(500));
            let beat = bus.publish(BEATS, &heartbeat(&mut random), &plain());
            if beat.await.is_err() {
                break;
            }
        }
        settled(&bus, &handle, false).await;
        handle.stop().await;
        // The store may say that it could not write everything; that is the point.
        let _ = bus.close().await;
        disk = Arc::new(disk.crash(seed));
        clock.advance(20_000);
    }
    let (bus, handle) = open(&disk, &clock, seed).await;
    let good =
        serde_json::json!({"pid": 1, "name": "api", "host": "web", "cpu_pct": 1, "mem_mb": 64});
    bus.publish(BEATS, &good, &plain()).await.expect("stored");
    settled(&bus, &handle, true).await;
    handle.stop().await;
    clock.advance(20_000);
    // What is silent is seen as soon as a projector has caught up.
    let handle = project(&bus);
    settled(&bus, &handle, true).await;
    for _ in 0..MOST_LOOKS {
        if handle.status().emitted > 0 && all_stale(&bus).await {
            break;
        }
        sleep(1).await;
    }
    judge(&bus, seed).await;
    bus.close().await.expect("closed");
}

async fn open(
    disk: &Arc<FaultFiles>,
    clock: &Arc<ManualClock>,
    seed: u64,
) -> (Bus, ProjectorHandle) {
    let options = LogOptions {
        segment_bytes: 20_000,
        clock: clock.clone(),
        log_id: Some(seed),
        ..LogOptions::default()
    };
    let opened = FileStore::on_files(disk.clone(), options, "file:test".into());
    let (store, _) = opened.expect("the log opens after whatever happened");
    let options = BusOptions {
        clock: clock.clone(),
        ..BusOptions::default()
    };
    let bus = Bus::open(Arc::new(store), options).expect("the options are good");
    if bus.topic(STATES).is_err() {
        // Without compaction, so that all of it is there to be compared.
        let config = TopicConfig::default();
        bus.create_topic(STATES, &config).await.expect("made");
    }
    let handle = project(&bus);
    (bus, handle)
}

fn project(bus: &Bus) -> ProjectorHandle {
    let handle = bus.run_projector(ProcessProjector::default());
    handle.expect("it starts")
}

/// Waits until the projector has read everything, or cannot go on and need not.
async fn settled(bus: &Bus, handle: &ProjectorHandle, has_to: bool) {
    for _ in 0..MOST_LOOKS {
        let status = handle.status();
        let is_stuck = bus.store().status().failed.is_some() || status.last_error.is_some();
        if status.lag == 0 || is_stuck && !has_to {
            return;
        }
        sleep(1).await;
    }
    panic!("the projector did not go on: {:?}", handle.status());
}

async fn all_stale(bus: &Bus) -> bool {
    let limit = prombus::ReadLimit {
        events: 100,
        bytes: 1 << 20,
    };
    let latest = bus.store().read(&STATES.into(), ReadFrom::Key(None), limit);
    let latest = latest.await.expect("it can be read");
    let mut payloads = latest.events.iter().map(|event| event.payload());
    payloads.all(|payload| payload.contains(r#""status":"stale""#))
}
