//! Many connections that publish and consume at once: the slowest gets on nearly as fast as the one in the middle.

use super::{Served, runtime};
use crate::Outcome;
use crate::payload::Payload;
use crate::report::{Goal, Line, Unit};
use crate::sampling::Samples;
use crate::table::Bench;
use prombus_client::{Client, PublishOptions, StartAt, SubscribeOptions};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long all of them are at it.
const TIME: Duration = Duration::from_secs(5);
/// What each has on its way at a time.
const IN_FLIGHT: usize = 20;
const MIN_SHARE: f64 = 0.5;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let folder = bench.folder.fresh("fair");
    let served = Served::start(&folder)?;
    let connections = bench.scale.busy_connections;
    let mut per_second: Vec<f64> = runtime()?.block_on(async {
        let mut clients = Vec::with_capacity(connections);
        for number in 0..connections {
            served.make_topic(&format!("busy.{number}")).await?;
            clients.push(served.connect().await?);
        }
        let end = Instant::now() + TIME;
        let work = clients.into_iter().enumerate();
        let work = work.map(|(number, client)| {
            tokio::spawn(async move { publish_and_consume(client, number, end).await })
        });
        let work: Vec<_> = work.collect();
        let mut per_second = Vec::with_capacity(connections);
        for one in work {
            per_second.push(one.await?? as f64 / TIME.as_secs_f64());
        }
        Outcome::Ok(per_second)
    })?;
    per_second.sort_by(f64::total_cmp);
    let slowest = Samples::from_iter(per_second.first().copied());
    let middle = Samples::from_iter(per_second.get(per_second.len() / 2).copied());
    let all = Samples::from_iter([per_second.iter().sum::<f64>()]);
    let what = format!("the slowest of {connections} that publish and consume");
    Ok(vec![
        Line::new("all of them together", Unit::EventsPerSecond, all),
        Line::new(what, Unit::EventsPerSecond, slowest)
            .beside("the one in the middle", middle)
            .goal(Goal::RatioAtLeast(MIN_SHARE)),
    ])
}

/// Publishes to a topic of its own and consumes it; counts what came back.
async fn publish_and_consume(client: Client, number: usize, end: Instant) -> Outcome<u64> {
    let topic = format!("busy.{number}");
    let options = SubscribeOptions {
        from: StartAt::Earliest,
        ..SubscribeOptions::default()
    };
    let subscription = client.subscribe(&topic, "readers", options).await?;
    let payload = Payload::new(number as u64, 0);
    let mut consumed = 0;
    while Instant::now() < end {
        let publish = |_| client.publish_text(&topic, payload.as_str(), &PublishOptions::default());
        let answers: Vec<_> = (0..IN_FLIGHT).map(publish).collect();
        for answer in answers {
            answer.await?;
        }
        let mut expected = IN_FLIGHT;
        while expected > 0 {
            let Ok(Some(delivery)) = timeout_at(end, subscription.next()).await else {
                break;
            };
            delivery.ack();
            expected -= 1;
            consumed += 1;
        }
    }
    client.close().await?;
    Ok(consumed)
}
