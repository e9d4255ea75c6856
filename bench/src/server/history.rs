//! What recording the last minutes for the dashboard costs a server that does nothing else, with few topics and with many.

use super::{Served, runtime};
use crate::Outcome;
use crate::report::{Goal, Line, Unit, with_commas};
use crate::sampling::Samples;
use crate::table::Bench;
use prombus_client::PublishOptions;
use std::time::{Duration, Instant};

/// How much of a second's processor time it may take.
const MAX_MILLIS: f64 = 10.0;
const TOPICS_AT_ONCE: usize = 500;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let runtime = runtime()?;
    let mut lines = Vec::new();
    for topics in bench.scale.history_topics.clone() {
        let folder = bench.folder.fresh("history");
        let served = Served::start(&folder)?;
        runtime.block_on(make_topics(&served, topics))?;
        let mut samples = Samples::default();
        for _ in 0..bench.scale.repeats {
            samples.push(millis_a_second(&served, bench.scale.history_watch)?);
        }
        let topics = with_commas(topics as f64);
        let what = format!("processor time a second, idle with {topics} topics");
        let line = Line::new(what, Unit::Millis, samples);
        lines.push(line.goal(Goal::AtMost(MAX_MILLIS)));
    }
    Ok(lines)
}

async fn make_topics(served: &Served, topics: usize) -> Outcome<()> {
    let client = served.connect().await?;
    let names: Vec<String> = (0..topics)
        .map(|number| format!("quiet.t{number}"))
        .collect();
    for some in names.chunks(TOPICS_AT_ONCE) {
        let mut batch = client.batch();
        for name in some {
            batch.add(name, "0", &PublishOptions::default());
        }
        for published in client.publish_batch(batch).await {
            published?;
        }
    }
    Ok(())
}

/// How much the server works over a while in which nobody asks for anything.
fn millis_a_second(served: &Served, watch: Duration) -> Outcome<f64> {
    let (started, before) = (Instant::now(), served.process.processor_time()?);
    std::thread::sleep(watch);
    let used = served.process.processor_time()?.saturating_sub(before);
    Ok(used.as_secs_f64() * 1_000.0 / started.elapsed().as_secs_f64())
}
