//! How long a group rests when the node that serves it is killed, or stopped: from then until a member on another node gets
//! an event that was published afterwards. Nodes are processes here, on three servers.

use super::runtime;
use super::servers::NatsServers;
use crate::Outcome;
use crate::report::{Goal, Line, Unit};
use crate::sampling::Samples;
use crate::server::Served;
use crate::table::Bench;
use prombus_client::{Client, PublishOptions, StartAt, SubscribeOptions, Subscription};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const TOPIC: &str = "bench";
const GROUP: &str = "g";
const GOAL_MS: f64 = 5_000.0;
/// The pause between two events.
const PAUSE: Duration = Duration::from_millis(5);
/// How long nodes work together before one of them fails.
const TOGETHER: Duration = Duration::from_secs(2);
/// How long a take-over may take before it counts as none.
const LIMIT: Duration = Duration::from_secs(60);

/// What happens to the owner.
#[derive(Debug, Clone, Copy)]
enum Fault {
    Kill,
    Stop,
}

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let runtime = runtime()?;
    let folder = bench.folder.fresh("take-over");
    std::fs::create_dir_all(&folder)?;
    let servers = runtime.block_on(NatsServers::start(&folder, 3))?;
    let mut lines = Vec::new();
    for (fault, what) in [
        (Fault::Kill, "a group's owner is killed"),
        (Fault::Stop, "a group's owner is stopped"),
    ] {
        let mut samples = Samples::default();
        for round in 0..bench.scale.repeats {
            let stream = format!("{fault:?}-{round}");
            let folder = folder.join(&stream);
            let rested = rest(&servers, &folder, &stream, fault);
            samples.push(runtime.block_on(rested)?);
        }
        let what = format!("{what}, until a member elsewhere gets an event, R3");
        lines.push(Line::new(what, Unit::Millis, samples).goal(Goal::AtMost(GOAL_MS)));
    }
    drop(servers);
    crate::folder::remove(&folder)?;
    Ok(lines)
}

/// Lets the owner of a group fail and returns how many milliseconds its other member waited.
async fn rest(servers: &NatsServers, folder: &Path, stream: &str, fault: Fault) -> Outcome<f64> {
    let store = format!("nats://{}/{stream}?replicas=3&copy=copy", servers.hosts);
    let owner = Served::start_on(&folder.join("owner"), &store)?;
    let other = Served::start_on(&folder.join("other"), &store)?;
    let (owners_client, client) = (owner.connect().await?, other.connect().await?);
    // The node of the first member owns the group.
    let owned = subscribe(&owners_client).await?;
    let owned = tokio::spawn(async move {
        while let Some(delivery) = owned.next().await {
            delivery.ack();
        }
    });
    let relayed = subscribe(&client).await?;
    let published = Arc::new(AtomicU64::new(0));
    let publishing = tokio::spawn(publish(other.connect().await?, published.clone()));
    let together = Instant::now();
    while together.elapsed() < TOGETHER {
        take(&relayed).await?;
    }
    let began = Instant::now();
    let owner = match fault {
        Fault::Kill => {
            drop(owner);
            None
        }
        Fault::Stop => {
            owner.pause()?;
            Some(owner)
        }
    };
    let before = published.load(Ordering::SeqCst);
    while take(&relayed).await? <= before {}
    let rested = began.elapsed();
    publishing.abort();
    owned.abort();
    drop(owner);
    Ok(rested.as_secs_f64() * 1_000.0)
}

async fn subscribe(client: &Client) -> Outcome<Subscription> {
    let options = SubscribeOptions {
        from: StartAt::Earliest,
        ..SubscribeOptions::default()
    };
    Ok(client.subscribe(TOPIC, GROUP, options).await?)
}

/// Takes the next event; its number.
async fn take(subscription: &Subscription) -> Outcome<u64> {
    let delivery = tokio::time::timeout(LIMIT, subscription.next()).await;
    let delivery = delivery
        .map_err(|_| "nobody took the group over")?
        .ok_or("the subscription ended")?;
    let number = delivery.event.payload().parse()?;
    delivery.ack();
    Ok(number)
}

/// Publishes numbers, each of which is noted before it is sent.
async fn publish(client: Client, published: Arc<AtomicU64>) {
    loop {
        let number = published.fetch_add(1, Ordering::SeqCst) + 1;
        // The next one may come through.
        let _ = client
            .publish(TOPIC, &number, &PublishOptions::default())
            .await;
        tokio::time::sleep(PAUSE).await;
    }
}
