//! Whether publishing and delivering cost the same with one group and with many on a topic.

use super::flat::{Points, lines};
use crate::Outcome;
use crate::bus_work::{consume, file_bus, publish, run as run_on, runtime};
use crate::folder::remove;
use crate::log_work::{BATCH_EVENTS, STORED_BYTES, nanos_each, payloads, topic_at};
use crate::report::Line;
use crate::table::Bench;
use prombus::{Bus, SubscribeOptions, Subscription};
use std::sync::Arc;
use std::time::Instant;
use tokio::task::JoinSet;

/// What one event costs, in nanoseconds: published while the groups are there and nobody is subscribed, and
/// delivered to one of them.
struct Costs {
    publish: f64,
    deliver: f64,
}

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let payloads = Arc::new(payloads());
    let runtime = runtime()?;
    let counts = bench.scale.groups.clone();
    let mut publish = Points::new(&counts);
    let mut deliver = Points::new(&counts);
    for _ in 0..bench.scale.repeats {
        for (at, &count) in counts.iter().enumerate() {
            bench.folder.warm(bench.scale.events * STORED_BYTES)?;
            let path = bench.folder.fresh("groups");
            let bus = {
                let _guard = runtime.enter();
                file_bus(&path, &bench.scale)?
            };
            let work = costs(bus, count, payloads.clone(), bench.scale.events);
            let costs = run_on(&runtime, work)?;
            remove(&path)?;
            publish.push(at, costs.publish);
            deliver.push(at, costs.deliver);
        }
    }
    let mut both = lines("publish to a topic with {} idle groups", publish);
    both.extend(lines(
        "publish, deliver and ack, for each of {} groups",
        deliver,
    ));
    Ok(both)
}

/// All groups are caught up when the events come, so all of them work on each batch at once.
async fn costs(bus: Bus, count: usize, payloads: Arc<Vec<String>>, events: u64) -> Outcome<Costs> {
    let topic = topic_at(0);
    publish(&bus, &[&topic], &payloads, BATCH_EVENTS).await?;
    let subscriptions = subscribe(&bus, &topic, count).await?;
    let events_each = (events / count as u64).max(BATCH_EVENTS);
    let started = Instant::now();
    let mut consumers = JoinSet::new();
    for subscription in subscriptions {
        consumers.spawn(async move { consume(&subscription, events_each).await });
    }
    publish(&bus, &[&topic], &payloads, events_each).await?;
    while let Some(ended) = consumers.join_next().await {
        ended??;
    }
    let deliver = nanos_each(events_each * count as u64, started);

    let started = Instant::now();
    publish(&bus, &[&topic], &payloads, events / 2).await?;
    let published = nanos_each(events / 2, started);
    bus.close().await?;
    Ok(Costs {
        publish: published,
        deliver,
    })
}

async fn subscribe(bus: &Bus, topic: &str, count: usize) -> Outcome<Vec<Subscription>> {
    let mut joining = JoinSet::new();
    for number in 0..count {
        let (bus, topic) = (bus.clone(), topic.to_owned());
        joining.spawn(async move {
            let options = SubscribeOptions {
                batch_size: 1_000,
                ..SubscribeOptions::default()
            };
            bus.subscribe(&topic, &format!("group-{number}"), options)
                .await
        });
    }
    let mut subscriptions = Vec::with_capacity(count);
    while let Some(joined) = joining.join_next().await {
        subscriptions.push(joined??);
    }
    Ok(subscriptions)
}
