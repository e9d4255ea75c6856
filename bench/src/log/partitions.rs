//! What partitions cost: publishing keyed events to a topic of 64 beside one without, and consuming them with one member
//! and with eight that share the partitions.

use crate::Outcome;
use crate::bus_work::{consume_all, file_bus, run as run_on, runtime};
use crate::folder::remove;
use crate::log_work::{BATCH_EVENTS, STORED_BYTES, payloads};
use crate::report::{Goal, Line, Unit};
use crate::sampling::in_turns;
use crate::table::Bench;
use prombus::{
    Bus, Durability, PublishOptions, StartAt, SubscribeExtras, SubscribeOptions, Subscription,
    TopicConfig,
};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const PARTITIONS: u32 = 64;
const MEMBERS: usize = 8;
const KEYS: u64 = 10_000;
const TOPIC: &str = "bench.orders";
const GROUP: &str = "workers";
const MIN_PUBLISH: f64 = 0.9;
const MIN_CONSUME: f64 = 1.0;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let payloads = Arc::new(payloads());
    let runtime = runtime()?;
    let (events, scale) = (bench.scale.events, &bench.scale);
    let folder = RefCell::new(&mut bench.folder);
    let measured = |partitions: Option<u32>, members: usize| {
        folder.borrow_mut().warm(events * STORED_BYTES)?;
        let path = folder.borrow_mut().fresh("partitions");
        let bus = {
            let _guard = runtime.enter();
            file_bus(&path, scale)?
        };
        let rates = rates(bus, partitions, members, payloads.clone(), events);
        let rates = run_on(&runtime, rates)?;
        remove(&path)?;
        Ok(rates)
    };
    let published = |partitions| measured(partitions, 0).map(|(published, _)| published);
    let consumed = |members| measured(Some(PARTITIONS), members).map(|(_, consumed)| consumed);
    let (partitioned, plain) = in_turns(
        scale.repeats,
        || published(Some(PARTITIONS)),
        || published(None),
    )?;
    let (eight, one) = in_turns(scale.repeats, || consumed(MEMBERS), || consumed(1))?;
    Ok(vec![
        Line::new(
            format!("publish keyed events to {PARTITIONS} partitions"),
            Unit::EventsPerSecond,
            partitioned,
        )
        .beside("without partitions", plain)
        .goal(Goal::RatioAtLeast(MIN_PUBLISH)),
        Line::new(
            format!("consume {PARTITIONS} partitions with {MEMBERS} members"),
            Unit::EventsPerSecond,
            eight,
        )
        .beside("with one", one)
        .goal(Goal::RatioAtLeast(MIN_CONSUME)),
    ])
}

/// Events per second, published and consumed.
async fn rates(
    bus: Bus,
    partitions: Option<u32>,
    members: usize,
    payloads: Arc<Vec<String>>,
    events: u64,
) -> Outcome<(f64, f64)> {
    let config = TopicConfig {
        durability: Durability::Os,
        partitions,
        ..TopicConfig::default()
    };
    bus.create_topic(TOPIC, &config).await?;
    let started = Instant::now();
    publish_keyed(&bus, &payloads, events).await?;
    let published = events as f64 / started.elapsed().as_secs_f64();
    if members == 0 {
        bus.close().await?;
        return Ok((published, 0.0));
    }
    let subscriptions = share(&bus, members).await?;
    let left = Arc::new(AtomicU64::new(events));
    let started = Instant::now();
    bus.resume_group(TOPIC, GROUP).await?;
    let mut consumers = JoinSet::new();
    for subscription in subscriptions {
        let left = left.clone();
        consumers.spawn(async move { consume_all(&subscription, &left).await });
    }
    while let Some(ended) = consumers.join_next().await {
        ended??;
    }
    let consumed = events as f64 / started.elapsed().as_secs_f64();
    bus.close().await?;
    Ok((published, consumed))
}

async fn publish_keyed(bus: &Bus, payloads: &[String], events: u64) -> Outcome<()> {
    let keys: Vec<String> = (0..KEYS).map(|number| format!("key-{number}")).collect();
    let mut keys = keys.iter().cycle();
    for _ in 0..events / BATCH_EVENTS {
        let mut batch = bus.batch();
        for (payload, key) in payloads.iter().zip(keys.by_ref()) {
            let options = PublishOptions {
                key: Some(key),
                ..PublishOptions::default()
            };
            batch.add(TOPIC, payload, &options);
        }
        for published in bus.publish_batch(batch).await {
            published?;
        }
    }
    Ok(())
}

/// Members that share the partitions of a paused group, which has everything before it.
async fn share(bus: &Bus, members: usize) -> Outcome<Vec<Subscription>> {
    let mut subscriptions = Vec::new();
    for number in 0..members {
        let options = SubscribeOptions {
            from: StartAt::Earliest,
            batch_size: 1_000,
            partitioned: Some(true),
            extras: SubscribeExtras::member(format!("worker-{number}")),
            ..SubscribeOptions::default()
        };
        subscriptions.push(bus.subscribe(TOPIC, GROUP, options).await?);
        bus.pause_group(TOPIC, GROUP).await?;
    }
    loop {
        for subscription in &subscriptions {
            while let Some(change) = subscription.take_assignment() {
                let control = subscription.control();
                control.confirm_revoked(&change.topic, change.revoked);
            }
        }
        let group = bus.group(TOPIC, GROUP).await?;
        let held = group.members.iter().map(|member| member.partitions.len());
        let has_all = held.clone().sum::<usize>() == PARTITIONS as usize;
        if has_all && held.filter(|count| *count > 0).count() == members {
            return Ok(subscriptions);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
