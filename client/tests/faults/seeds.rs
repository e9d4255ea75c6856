//! Connections that break wherever a seed says, while events are published and consumed. Whatever happens: what was
//! answered is stored, once and in order, and what was acknowledged is settled once and never handed out again.

use crate::broker::{Broker, Fault};
use crate::{connect, options, within};
use prombus_api::Code;
use prombus_client::{ClientOptions, Delivery, PublishOptions, SubscribeOptions};
use std::collections::BTreeSet;
use std::time::Duration;

const SEEDS: u64 = 60;
const EVENTS: usize = 200;

/// A few faults, at points that the seed decides.
fn faults(random: &mut fastrand::Rng) -> Vec<Fault> {
    let count = random.usize(1..6);
    let fault = |_| {
        let at = random.usize(1..80);
        match random.u8(0..7) {
            0 => Fault::AtOnce,
            1 => Fault::BeforeFrame(at),
            2 => Fault::BeforeReplies(at),
            3 => Fault::AfterReplies(at),
            4 => Fault::Garbage(at),
            5 => Fault::ShuttingDown(at),
            _ => Fault::Error(at, Code::UnknownTopic),
        }
    };
    (0..count).map(fault).collect()
}

/// The seeds to run: those up to the limit, or the one that is asked for.
fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number("PROMBUS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PROMBUS_SEEDS").unwrap_or(SEEDS),
    }
}

#[tokio::test]
async fn what_was_answered_is_stored_once_and_in_order() {
    for seed in seeds() {
        let mut random = fastrand::Rng::with_seed(seed);
        let broker = Broker::start().await;
        broker.state().faults.extend(faults(&mut random));
        let client = connect(&broker, options()).await;
        let mut answers = Vec::new();
        for number in 0..EVENTS {
            answers.push(client.publish("t", &number, &PublishOptions::default()));
            if random.u8(0..8) == 0 {
                tokio::task::yield_now().await;
            }
        }
        for (at, answer) in answers.into_iter().enumerate() {
            let published = within(answer).await;
            let published = published.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert_eq!(published.seq, at as u64 + 1, "seed {seed}");
            assert!(!published.duplicate, "seed {seed}");
        }
        let expected: Vec<String> = (0..EVENTS).map(|number| number.to_string()).collect();
        assert_eq!(broker.state().payloads(), expected, "seed {seed}");
    }
}

#[tokio::test]
async fn without_ids_nothing_is_stored_twice_and_what_was_answered_is_there() {
    for seed in seeds() {
        let mut random = fastrand::Rng::with_seed(seed);
        let broker = Broker::start().await;
        broker.state().faults.extend(faults(&mut random));
        let plain = ClientOptions {
            idempotent: false,
            ..options()
        };
        let client = connect(&broker, plain).await;
        let mut answers = Vec::new();
        for number in 0..EVENTS {
            answers.push(client.publish("t", &number, &PublishOptions::default()));
            if random.u8(0..8) == 0 {
                tokio::task::yield_now().await;
            }
        }
        let mut completed = BTreeSet::new();
        for (number, answer) in answers.into_iter().enumerate() {
            match within(answer).await {
                Ok(_) => drop(completed.insert(number.to_string())),
                Err(error) => {
                    let codes = ["unknown_outcome", "shutting_down"];
                    assert!(codes.contains(&error.code()), "seed {seed}: {error}");
                }
            }
        }
        let state = broker.state();
        let stored: BTreeSet<String> = state.payloads().into_iter().map(str::to_owned).collect();
        assert_eq!(stored.len(), state.log.len(), "seed {seed}: stored twice");
        assert!(
            completed.is_subset(&stored),
            "seed {seed}: answered and not stored"
        );
    }
}

#[tokio::test]
async fn what_was_acknowledged_is_settled_once_and_not_handed_out_again() {
    for seed in seeds() {
        let mut random = fastrand::Rng::with_seed(seed);
        let broker = Broker::start().await;
        broker.store(EVENTS);
        broker.state().faults.extend(faults(&mut random));
        let client = connect(&broker, options()).await;
        let options = SubscribeOptions {
            max_in_flight: random.usize(1..50),
            ..SubscribeOptions::default()
        };
        let subscription = within(client.subscribe("t", "g", options)).await;
        let Ok(subscription) = subscription else {
            // The server that goes down may refuse the very first one, and says so.
            continue;
        };
        let mut acknowledged: BTreeSet<usize> = BTreeSet::new();
        let mut held: Vec<Delivery> = Vec::new();
        while acknowledged.len() < EVENTS {
            let next = tokio::time::timeout(Duration::from_millis(50), subscription.next()).await;
            let Ok(next) = next else {
                // Everything that there is room for is held here.
                for delivery in held.drain(..) {
                    acknowledged.insert(delivery.value().unwrap());
                    delivery.ack();
                }
                continue;
            };
            let delivery = next.unwrap_or_else(|| panic!("seed {seed}: it ended"));
            let number: usize = delivery.value().unwrap();
            assert!(
                !acknowledged.contains(&number),
                "seed {seed}: {number} came again"
            );
            held.push(delivery);
            // Some are kept for a while, so that connections break in between.
            if random.u8(0..4) == 0 {
                tokio::task::yield_now().await;
                continue;
            }
            for delivery in held.drain(..) {
                acknowledged.insert(delivery.value().unwrap());
                delivery.ack();
            }
        }
        broker
            .until(|state| state.group.settled.len() == EVENTS)
            .await;
        let twice = |count: &u32| *count != 1;
        assert!(
            !broker.state().group.settled.values().any(twice),
            "seed {seed}"
        );
    }
}
