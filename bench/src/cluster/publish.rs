//! Single events with a thousand in flight on each node, beside async-nats publishing each as a message of its own to a
//! stream with as many replicas.

use super::nodes::{make_topic, on_nats, publish, take_one};
use super::runtime;
use super::servers::NatsServers;
use crate::Outcome;
use crate::log_work::payloads;
use crate::report::{Goal, Line, Unit};
use crate::sampling::in_turns;
use crate::table::Bench;
use async_nats::jetstream::stream::{Config, StorageType};
use async_nats::jetstream::{Context, ContextBuilder};
use bytes::Bytes;
use prombus_replicated::{Options, ReplicatedStore};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

const IN_FLIGHT: usize = 1_000;
/// The client waits for answers that long, on a machine that does much else.
const ACK_LIMIT: Duration = Duration::from_secs(60);

/// Three nodes on three servers.
pub(super) fn three(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let (measured, beside) = measure(bench, 3)?;
    let what = format!("3 nodes, {IN_FLIGHT} in flight on each, R3");
    Ok(vec![
        Line::new(&what, Unit::EventsPerSecond, measured.clone())
            .beside("async-nats, a message for each", beside)
            .goal(Goal::RatioAtLeast(2.0)),
        Line::new(format!("{what}, together"), Unit::EventsPerSecond, measured)
            .goal(Goal::AtLeast(150_000.0)),
    ])
}

/// One node on one server.
pub(super) fn one(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let (measured, beside) = measure(bench, 1)?;
    let what = format!("1 node, {IN_FLIGHT} in flight, R1");
    Ok(vec![
        Line::new(what, Unit::EventsPerSecond, measured)
            .beside("async-nats, a message for each", beside)
            .goal(Goal::RatioAtLeast(3.0)),
    ])
}

fn measure(
    bench: &mut Bench,
    count: usize,
) -> Outcome<(crate::sampling::Samples, crate::sampling::Samples)> {
    let runtime = runtime()?;
    let folder = bench.folder.fresh("cluster");
    std::fs::create_dir_all(&folder)?;
    let payload = payloads().swap_remove(0);
    let events = bench.scale.cluster_events;
    let servers = runtime.block_on(NatsServers::start(&folder, count))?;
    let nodes = runtime.block_on(async {
        let mut nodes: Vec<Arc<ReplicatedStore>> = Vec::new();
        for at in 0..count {
            let copy = folder.join(format!("copy-{at}"));
            nodes.push(on_nats(&servers, "packed", count, &copy, Options::default()).await?);
        }
        make_topic(&*nodes[0]).await?;
        Outcome::Ok(nodes)
    })?;
    let measured = in_turns(
        bench.scale.repeats,
        || runtime.block_on(publish(&nodes, IN_FLIGHT, events, &payload)),
        || {
            // Fewer, because it takes longer.
            let events = events / 4;
            runtime.block_on(singly(&servers, count, events, &payload))
        },
    )?;
    drop(nodes);
    drop(servers);
    crate::folder::remove(&folder)?;
    Ok(measured)
}

/// What anyone would write: one publish for each event, as many in flight from as many clients.
async fn singly(servers: &NatsServers, count: usize, events: u64, payload: &str) -> Outcome<f64> {
    let left = Arc::new(AtomicU64::new(events));
    let payload = Bytes::copy_from_slice(payload.as_bytes());
    let mut contexts = Vec::new();
    for _ in 0..count {
        let client = async_nats::connect(servers.addresses()?).await?;
        let context = ContextBuilder::new().timeout(ACK_LIMIT).build(client);
        contexts.push(context);
    }
    let config = Config {
        name: "singly".into(),
        subjects: vec!["singly".into()],
        storage: StorageType::File,
        num_replicas: count,
        ..Config::default()
    };
    contexts[0].create_stream(config).await?;
    for context in &contexts {
        wait_for_stream(context).await?;
    }
    let started = Instant::now();
    let mut tasks = Vec::new();
    for context in &contexts {
        for _ in 0..IN_FLIGHT {
            let (context, left, payload) = (context.clone(), left.clone(), payload.clone());
            tasks.push(tokio::spawn(async move {
                while take_one(&left) {
                    context.publish("singly", payload.clone()).await?.await?;
                }
                Ok::<(), async_nats::jetstream::context::PublishError>(())
            }));
        }
    }
    for task in tasks {
        task.await??;
    }
    let rate = events as f64 / started.elapsed().as_secs_f64();
    contexts[0].delete_stream("singly").await?;
    Ok(rate)
}

/// The servers other than the stream's own hear a moment later that it takes the subject.
async fn wait_for_stream(context: &Context) -> Outcome<()> {
    const ATTEMPTS: usize = 100;
    const PAUSE: Duration = Duration::from_millis(50);
    for _ in 1..ATTEMPTS {
        if context.publish("singly", "1".into()).await?.await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    context.publish("singly", "1".into()).await?.await?;
    Ok(())
}
