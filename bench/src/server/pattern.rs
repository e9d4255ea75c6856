//! A pattern over very many topics: how long its first event takes, and what following them costs in memory.

use super::{Served, runtime};
use crate::Outcome;
use crate::report::{Goal, Line, Unit};
use crate::sampling::Samples;
use crate::table::Bench;
use prombus_client::{Client, PublishOptions, StartAt, SubscribeOptions};
use std::time::Instant;

/// Events that are published before the first of them is waited for.
const IN_FLIGHT: usize = 1_000;
const MAX_FIRST_MS: f64 = 1_000.0;
const MAX_BYTES: f64 = 200e6;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let served = Served::start(&bench.folder.fresh("pattern"))?;
    let topics = bench.scale.pattern_topics;
    let repeats = bench.scale.repeats;
    let [first_ms, rate, bytes] = runtime()?.block_on(async {
        let client = served.connect().await?;
        fill(&client, topics).await?;
        let mut first_ms = Samples::default();
        for round in 0..repeats {
            let begun = Instant::now();
            let subscription = client
                .subscribe("many.*", &format!("g{round}"), from_earliest())
                .await?;
            let delivery = subscription.next().await.ok_or("the subscription ended")?;
            first_ms.push(begun.elapsed().as_secs_f64() * 1e3);
            delivery.ack();
        }
        // Every event of one group, which is stored in every topic then.
        let subscription = client.subscribe("many.*", "all", from_earliest()).await?;
        let [mut rate, mut bytes]: [Samples; 2] = Default::default();
        let begun = Instant::now();
        for _ in 0..topics {
            let delivery = subscription.next().await.ok_or("the subscription ended")?;
            delivery.ack();
        }
        rate.push(topics as f64 / begun.elapsed().as_secs_f64());
        bytes.push(served.process.resident_bytes()? as f64);
        Outcome::Ok([first_ms, rate, bytes])
    })?;
    Ok(vec![
        Line::new(
            format!("first event of a pattern over {topics} topics"),
            Unit::Millis,
            first_ms,
        )
        .goal(Goal::AtMost(MAX_FIRST_MS)),
        Line::new(
            "events of it, one in each topic",
            Unit::EventsPerSecond,
            rate,
        ),
        Line::new(
            "resident when an event of each was settled",
            Unit::Bytes,
            bytes,
        )
        .goal(Goal::AtMost(MAX_BYTES)),
    ])
}

fn from_earliest() -> SubscribeOptions {
    SubscribeOptions {
        from: StartAt::Earliest,
        ..SubscribeOptions::default()
    }
}

async fn fill(client: &Client, topics: usize) -> Outcome<()> {
    for first in (0..topics).step_by(IN_FLIGHT) {
        let names = (first..topics.min(first + IN_FLIGHT)).map(|topic| format!("many.t{topic}"));
        let names: Vec<String> = names.collect();
        let options = PublishOptions::default();
        let commits = names
            .iter()
            .map(|topic| client.publish_text(topic, "1", &options));
        for result in futures_util::future::join_all(commits).await {
            result?;
        }
    }
    Ok(())
}
