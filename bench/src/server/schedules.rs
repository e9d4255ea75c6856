//! A million schedules that wait: what the server holds in memory for them, how long it takes to start with them, how
//! fast it publishes what came due meanwhile, and how late what is due at a steady rate is.

use super::{Served, runtime};
use crate::Outcome;
use crate::http;
use crate::report::{Goal, Line, Unit};
use crate::sampling::Samples;
use crate::table::Bench;
use prombus::{Bus, BusOptions, PublishOptions, Schedule};
use prombus_client::{SubscribeOptions, Subscription};
use prombus_log::{FileStore, LogOptions};
use prombus_store::SystemClock;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::task::JoinSet;
use tokio::time::timeout;

const MAX_BYTES: f64 = 150e6;
const MAX_START_MS: f64 = 3_000.0;
const MIN_DUE_RATE: f64 = 20_000.0;
const MAX_LATE_MS: f64 = 50.0;
/// Events that are due each second where lateness is measured.
const PER_SECOND: u64 = 1_000;
/// How long it takes at most until all of these are scheduled.
const LEAD_MS: u64 = 10_000;
/// How many schedules are made at a time, so that they share their syncs.
const WRITERS: u64 = 512;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
const PAYLOAD: &str =
    r#"{"kind":"reminder","order":"2026-4711","text":"The parcel has not been collected yet."}"#;
const OVERDUE: &str = "overdue";
const STEADY: &str = "steady";
const LIMIT: Duration = Duration::from_secs(120);

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let folder = bench.folder.fresh("schedules");
    let (waiting, overdue) = (bench.scale.schedules, bench.scale.overdue_schedules);
    let steady = bench.scale.steady_schedules;
    let runtime = runtime()?;
    runtime.block_on(prepare(
        &folder.join("prombus-data"),
        waiting - steady,
        overdue,
    ))?;
    let begun = Instant::now();
    let served = Served::start(&folder)?;
    let (start_ms, rate) = runtime.block_on(catch_up(&served, begun, overdue))?;
    let (bytes, mut late_ms) = runtime.block_on(follow_steady(&served, steady))?;
    late_ms.sort_by(f64::total_cmp);
    let late_ms = late_ms[late_ms.len() * 99 / 100];
    let one = |sample: f64| Samples::from_iter([sample]);
    Ok(vec![
        Line::new(
            format!("resident with {waiting} schedules"),
            Unit::Bytes,
            one(bytes),
        )
        .goal(Goal::AtMost(MAX_BYTES)),
        Line::new(
            "start with them, to the first due event",
            Unit::Millis,
            one(start_ms),
        )
        .goal(Goal::AtMost(MAX_START_MS)),
        Line::new(
            format!("publish {overdue} that came due"),
            Unit::EventsPerSecond,
            one(rate),
        )
        .goal(Goal::AtLeast(MIN_DUE_RATE)),
        Line::new(
            format!("lateness at {PER_SECOND}/s, p99"),
            Unit::Millis,
            one(late_ms),
        )
        .goal(Goal::AtMost(MAX_LATE_MS)),
    ])
}

/// Makes schedules on the folder that the server will have: some for a day that is far, some for a moment that has passed
/// when it starts.
async fn prepare(path: &Path, far: u64, overdue: u64) -> Outcome<()> {
    std::fs::create_dir_all(path)?;
    let (store, _) = FileStore::open_with(path, Arc::new(SystemClock), LogOptions::default())?;
    let options = BusOptions {
        max_schedules: (far + overdue) as usize + 1,
        ..BusOptions::default()
    };
    let bus = Bus::open(Arc::new(store), options)?;
    let now_ms = epoch_ms();
    // The clock of this process is not reached before the bus is closed.
    let due_ms = now_ms + prepare_ms(far + overdue);
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let bus = bus.clone();
        writers.spawn(async move {
            for number in (writer..far + overdue).step_by(WRITERS as usize) {
                let (topic, due) = if number < far {
                    ("far", now_ms + 30 * DAY_MS + number)
                } else {
                    (OVERDUE, due_ms)
                };
                let options = PublishOptions::default();
                bus.schedule(topic, PAYLOAD, &options, &Schedule::at(due))
                    .await?;
            }
            Ok::<(), prombus::error::PublishError>(())
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended??;
    }
    bus.close().await?;
    let left_ms = due_ms.saturating_sub(epoch_ms());
    if left_ms == 0 {
        return Err("the schedules came due while they were made".into());
    }
    tokio::time::sleep(Duration::from_millis(left_ms + 1)).await;
    Ok(())
}

/// More than it takes to make so many schedules.
fn prepare_ms(schedules: u64) -> u64 {
    5_000 + schedules / 8
}

/// From the start of the server to the first event that came due, in milliseconds, and how many it published in a second
/// from then on.
async fn catch_up(served: &Served, begun: Instant, overdue: u64) -> Outcome<(f64, f64)> {
    let mut first: Option<(Instant, u64)> = None;
    loop {
        let published = tail(served, OVERDUE).await;
        let now = Instant::now();
        let seen = *match published {
            0 => {
                if begun.elapsed() > LIMIT {
                    return Err("nothing came due".into());
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            }
            published => first.get_or_insert((now, published)),
        };
        if published >= overdue {
            let seconds = now.duration_since(seen.0).as_secs_f64().max(1e-3);
            let rate = (overdue - seen.1) as f64 / seconds;
            return Ok((seen.0.duration_since(begun).as_secs_f64() * 1e3, rate));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The last position of a topic; 0 where there is none.
async fn tail(served: &Served, topic: &str) -> u64 {
    let mut text = Vec::new();
    let request = format!("GET /topics/{topic}");
    let asked = http::stream(served.address, &request, "", |piece| {
        text.extend_from_slice(piece)
    });
    if asked.await.is_err() {
        return 0;
    }
    let info: Value = serde_json::from_slice(&text).unwrap_or_default();
    info["tail_seq"].as_u64().unwrap_or(0)
}

/// Schedules events at a steady rate; the bytes that the server holds when all wait, and how late each came in
/// milliseconds.
async fn follow_steady(served: &Served, count: u64) -> Outcome<(f64, Vec<f64>)> {
    served.make_topic(STEADY).await?;
    let publisher = served.connect().await?;
    let consumer = served.connect().await?;
    let subscription = consumer
        .subscribe(STEADY, "watchers", SubscribeOptions::default())
        .await?;
    let first_ms = epoch_ms() + LEAD_MS;
    let mut scheduled = Vec::new();
    for number in 0..count {
        let options = PublishOptions {
            extras: Schedule::at(first_ms + number * 1_000 / PER_SECOND).into(),
            ..PublishOptions::default()
        };
        scheduled.push(publisher.publish_text(STEADY, PAYLOAD, &options));
    }
    for one in scheduled {
        one.await?;
    }
    if epoch_ms() >= first_ms {
        return Err("the first came due before all were scheduled".into());
    }
    let bytes = served.process.resident_bytes()? as f64;
    Ok((bytes, lateness(&subscription, count).await?))
}

async fn lateness(subscription: &Subscription, count: u64) -> Outcome<Vec<f64>> {
    let mut late_ms = Vec::new();
    for _ in 0..count {
        let delivery = timeout(LIMIT, subscription.next()).await?;
        let delivery = delivery.ok_or("the subscription ended")?;
        late_ms.push(epoch_ms().saturating_sub(delivery.event.ts()) as f64);
        delivery.ack();
    }
    Ok(late_ms)
}

fn epoch_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_millis() as u64
}
