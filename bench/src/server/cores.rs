//! The server on one core and on all of them: publishing on several connections, and delivering to one group. The
//! clients share the machine with it, so with all cores there are more that both want.

use super::{Served, runtime};
use crate::Outcome;
use crate::payload::Payload;
use crate::report::{Line, Unit};
use crate::sampling::Samples;
use crate::table::Bench;
use prombus_client::{Client, PublishOptions, StartAt, SubscribeOptions};
use std::time::Instant;

const TOPIC: &str = "cores";
const CONNECTIONS: u64 = 4;
/// What each connection has on its way at a time.
const IN_FLIGHT: u64 = 250;
const MAX_IN_FLIGHT: usize = 10_000;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let cores = std::thread::available_parallelism()?.get();
    let counts = if cores > 1 { vec![1, cores] } else { vec![1] };
    let mut rates = vec![(Samples::default(), Samples::default()); counts.len()];
    let events = bench.scale.busy_events;
    for _ in 0..bench.scale.repeats {
        for (&cores, (published, consumed)) in counts.iter().zip(&mut rates) {
            let folder = bench.folder.fresh("cores");
            let served = Served::start_on_cores(&folder, cores)?;
            let (publish, consume) = runtime()?.block_on(measured(&served, events))?;
            published.push(publish);
            consumed.push(consume);
        }
    }
    let mut lines = Vec::new();
    for (cores, (published, consumed)) in counts.into_iter().zip(rates) {
        let what = |what: &str| format!("{what}, the server on {cores} of the cores");
        let line = |text, samples| Line::new(what(text), Unit::EventsPerSecond, samples);
        lines.push(line("publish on 4 connections", published));
        lines.push(line("deliver and ack to one group", consumed));
    }
    Ok(lines)
}

/// Events per second of publishing, and of consuming what was published.
async fn measured(served: &Served, events: u64) -> Outcome<(f64, f64)> {
    served.make_topic(TOPIC).await?;
    let started = Instant::now();
    let mut publishers = Vec::new();
    for _ in 0..CONNECTIONS {
        let client = served.connect().await?;
        publishers.push(tokio::spawn(publish(client, events / CONNECTIONS)));
    }
    for publisher in publishers {
        publisher.await??;
    }
    let stored = events / CONNECTIONS * CONNECTIONS;
    let published = stored as f64 / started.elapsed().as_secs_f64();

    let client = served.connect().await?;
    let options = SubscribeOptions {
        from: StartAt::Earliest,
        max_in_flight: MAX_IN_FLIGHT,
        ..SubscribeOptions::default()
    };
    let subscription = client.subscribe(TOPIC, "readers", options).await?;
    let started = Instant::now();
    for _ in 0..stored {
        let delivery = subscription.next().await.ok_or("no more deliveries")?;
        delivery.ack();
    }
    let consumed = stored as f64 / started.elapsed().as_secs_f64();
    client.close().await?;
    Ok((published, consumed))
}

async fn publish(client: Client, events: u64) -> Outcome<()> {
    let mut number = 0;
    while number < events {
        let count = IN_FLIGHT.min(events - number);
        let answers: Vec<_> = (number..number + count)
            .map(|number| {
                let payload = Payload::new(number, 0);
                client.publish_text(TOPIC, payload.as_str(), &PublishOptions::default())
            })
            .collect();
        for answer in answers {
            answer.await?;
        }
        number += count;
    }
    client.close().await?;
    Ok(())
}
