//! Consume, transform, publish, with the process or the power going at any commit: in the end each input has exactly
//! one output.

use super::*;
use prombus::{AckPublishFuture, Delivery};
use prombus_log::fault::FaultFiles;
use prombus_log::{FileStore, LogOptions};
use prombus_store::conformance::Random;
use std::sync::Arc;
use std::time::Duration;

const INPUTS: u64 = 24;
/// After so many crashes the rest goes undisturbed.
const CRASHES: u64 = 6;
/// The topics that each input has an output in.
const OUTPUTS: [&str; 2] = ["out", "also"];

/// The events that one member of the group took, and what becomes of them.
async fn handle(
    bus: &Bus,
    taken: Vec<Delivery>,
    random: &mut Random,
) -> Result<(), AckPublishError> {
    let output = |batch: &mut PublishBatch, delivery: &Delivery| {
        for topic in OUTPUTS {
            batch.add(topic, delivery.event.payload(), &plain());
        }
    };
    let answers: Vec<AckPublishFuture> = match random.index(8) {
        0 => {
            for delivery in taken {
                delivery.nack_after("not now", 0);
            }
            return Ok(());
        }
        1 | 2 => {
            let mut batch = bus.batch();
            taken
                .iter()
                .for_each(|delivery| output(&mut batch, delivery));
            vec![Delivery::ack_all_and_publish(taken, batch)]
        }
        _ => {
            let steps = taken.into_iter().map(|delivery| {
                let mut batch = bus.batch();
                output(&mut batch, &delivery);
                delivery.ack_and_publish(batch)
            });
            steps.collect()
        }
    };
    if random.index(8) == 0 {
        // Nobody waits for what comes of it.
        return Ok(());
    }
    for answer in answers {
        answer.await?;
    }
    Ok(())
}

/// Works until everything is settled (`true`) or the store takes nothing more.
async fn work(bus: &Bus, random: &mut Random) -> bool {
    let options = SubscribeOptions {
        max_attempts: Some(1_000),
        ..earliest()
    };
    let mut members = Vec::new();
    for _ in 0..10_000 {
        if members.len() < 2 {
            match bus.subscribe("in", "g", options.clone()).await {
                Ok(member) => members.push(member),
                Err(_) => return false,
            }
        }
        let chosen = random.index(members.len());
        let most = 1 + random.index(6);
        let taking = members[chosen].next_batch(most);
        if let Ok(taken) = tokio::time::timeout(Duration::from_millis(5), taking).await
            && let Err(error) = handle(bus, taken, random).await
            && error.kind() != "LeaseLost"
        {
            return false;
        }
        if random.index(10) == 0 {
            drop(members.swap_remove(chosen));
        }
        if bus.store().status().failed.is_some() {
            return false;
        }
        match bus.group("in", "g").await {
            Ok(group) if group.lag == 0 => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    panic!("it never ends");
}

/// Publishes the inputs, before anything goes wrong.
async fn fill(bus: &Bus) {
    let mut batch = bus.batch();
    for number in 0..INPUTS {
        batch.add_value("in", &number, &plain());
    }
    for published in bus.publish_batch(batch).await {
        published.expect("nothing is wrong yet");
    }
}

/// Each input has one output in each topic.
async fn judge(bus: &Bus, seed: u64) {
    for topic in OUTPUTS {
        let events = read_all(bus, topic).await;
        let mut outputs: Vec<u64> = events
            .iter()
            .map(|event| event.payload().parse().expect("a number"))
            .collect();
        outputs.sort_unstable();
        let inputs: Vec<u64> = (0..INPUTS).collect();
        assert_eq!(outputs, inputs, "{topic} of seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_dies_at_any_commit_leaves_each_input_with_one_output() {
    for seed in 0..300 {
        let mut random = Random::seeded(seed);
        let (store, options) = store();
        let open = || Bus::open(store.clone(), options.clone()).expect("the options are good");
        fill(&open()).await;
        let mut crashes = 0;
        let bus = loop {
            let bus = open();
            if crashes < CRASHES {
                // Sometimes the last commit happened, and nobody heard of it any more.
                store.die_after(random.index(12) as u64, random.index(2) == 0);
            }
            let is_done = work(&bus, &mut random).await;
            if is_done && crashes >= CRASHES {
                break bus;
            }
            crashes += 1;
            drop(bus);
            // What is left of the process ends while its store is dead.
            sleep(1_000).await;
            store.revive();
        };
        judge(&bus, seed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_loss_at_any_write_leaves_each_input_with_one_output() {
    for seed in 0..120 {
        let mut random = Random::seeded(seed);
        let mut disk = Arc::new(FaultFiles::new());
        let mut crashes = 0;
        let bus = loop {
            let opened = FileStore::on_files(disk.clone(), LogOptions::default(), "file:".into());
            let (store, _) = opened.expect("what a crash leaves can be opened");
            let bus = Bus::open(Arc::new(store), BusOptions::default()).expect("good options");
            if crashes == 0 {
                fill(&bus).await;
            }
            if crashes < CRASHES {
                disk.stop_after(random.index(24) as u64);
            }
            let is_done = work(&bus, &mut random).await;
            if is_done && crashes >= CRASHES {
                break bus;
            }
            crashes += 1;
            disk = Arc::new(disk.crash(seed * CRASHES + crashes));
        };
        judge(&bus, seed).await;
    }
}
