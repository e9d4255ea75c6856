//! How long after an acknowledgement another node has the event too, on three servers.

use super::nodes::{TOPIC, fill, make_topic, on_nats};
use super::runtime;
use super::servers::NatsServers;
use crate::Outcome;
use crate::log_work::payloads;
use crate::report::{Line, Unit};
use crate::sampling::Samples;
use crate::table::Bench;
use prombus_replicated::{Options, ReplicatedStore};
use prombus_store::Store;
use std::sync::Arc;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(2);

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let runtime = runtime()?;
    let folder = bench.folder.fresh("lag");
    std::fs::create_dir_all(&folder)?;
    let servers = runtime.block_on(NatsServers::start(&folder, 3))?;
    let payload = payloads().swap_remove(0);
    let (events, repeats) = (bench.scale.lag_events, bench.scale.repeats);
    let samples = runtime.block_on(async {
        let options = Options::default;
        let one = on_nats(&servers, "lag", 3, &folder.join("one"), options()).await?;
        let other = on_nats(&servers, "lag", 3, &folder.join("other"), options()).await?;
        make_topic(&*one).await?;
        let mut samples = Samples::default();
        for _ in 0..repeats {
            samples.push(p99_ms(&one, &other, events, &payload).await?);
        }
        Outcome::Ok(samples)
    })?;
    drop(servers);
    crate::folder::remove(&folder)?;
    let what = "lag of another node's copy behind the acknowledgement, p99, R3";
    Ok(vec![Line::new(what, Unit::Millis, samples)])
}

async fn p99_ms(
    one: &Arc<ReplicatedStore>,
    other: &Arc<ReplicatedStore>,
    events: u64,
    payload: &str,
) -> Outcome<f64> {
    let topic: Arc<str> = TOPIC.into();
    let mut watch = other.watch(&topic);
    let mut lags = Vec::new();
    for _ in 0..events {
        fill(one, 1, payload).await?;
        let acknowledged = Instant::now();
        let tail = one.topic(TOPIC).map_or(0, |topic| topic.tail_seq);
        while watch.current() < tail {
            watch.moved().await;
        }
        lags.push(acknowledged.elapsed().as_secs_f64() * 1_000.0);
        tokio::time::sleep(PAUSE).await;
    }
    lags.sort_by(f64::total_cmp);
    let at = lags.len().saturating_sub(1) * 99 / 100;
    Ok(lags.get(at).copied().unwrap_or_default())
}
