//! `bench subscribe`: how long it takes from the moment an event should be published until it is delivered.

use super::{Target, TargetArgs};
use crate::output::{self, Format};
use anyhow::Context;
use clap::Args;
use serde::Deserialize;
use serde_json::json;
use std::future::Future;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// How long the last events may take to arrive.
const LAST_ARRIVAL: Duration = Duration::from_secs(30);
const ENDED: &str = "the subscription ended";

/// Measure the time from publish to delivery, at a steady rate
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus bench subscribe -n 20000 --json
  prombus bench subscribe --store file:./bench-data")]
pub(super) struct Subscribe {
    #[command(flatten)]
    target: TargetArgs,
    /// How many events
    #[arg(short = 'n', long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// How many a second
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rate: u64,
}

/// What is read of a payload.
#[derive(Deserialize)]
struct Numbered {
    n: u64,
}

/// Counts from the moment at which each event was due, so that a stall is not hidden by publishing later.
struct Schedule {
    started: Instant,
    rate: u64,
}

impl Subscribe {
    pub(super) async fn run(&self, format: Format) -> anyhow::Result<()> {
        let target = self.target.open().await?;
        let mut latencies_ms = match &target {
            Target::InProcess(bus) => self.in_process(bus).await?,
            Target::Remote(client) => self.remote(client).await?,
        };
        target.close().await?;
        latencies_ms.sort_by(f64::total_cmp);
        self.report(&latencies_ms, format)
    }

    async fn in_process(&self, bus: &prombus::Bus) -> anyhow::Result<Vec<f64>> {
        let topic = self.target.topic.as_str();
        let options = prombus::SubscribeOptions::default();
        let subscription = bus.subscribe_ephemeral(topic, options).await?;
        let publish = |payload: &str| {
            // The answer is not what is measured; an event that was refused would be missed below.
            drop(bus.publish_text(topic, payload, &prombus::PublishOptions::default()));
        };
        let next = || async {
            let delivery = subscription.next().await.context(ENDED)?;
            let number = delivery.value::<Numbered>()?.n;
            delivery.ack();
            Ok(number)
        };
        self.measure(publish, next).await
    }

    async fn remote(&self, client: &prombus_client::Client) -> anyhow::Result<Vec<f64>> {
        let topic = self.target.topic.as_str();
        let options = prombus_client::SubscribeOptions::default();
        let subscription = client.subscribe_ephemeral(topic, options).await?;
        let publish = |payload: &str| {
            // As above.
            drop(client.publish_text(topic, payload, &prombus_client::PublishOptions::default()));
        };
        let next = || async {
            let delivery = subscription.next().await.context(ENDED)?;
            let number = delivery.value::<Numbered>()?.n;
            delivery.ack();
            Ok(number)
        };
        self.measure(publish, next).await
    }

    /// Publishes at the wanted rate and takes what arrives; `next` gives the number of the next event.
    async fn measure<F>(
        &self,
        publish: impl Fn(&str),
        next: impl Fn() -> F,
    ) -> anyhow::Result<Vec<f64>>
    where
        F: Future<Output = anyhow::Result<u64>>,
    {
        let schedule = Schedule {
            started: Instant::now(),
            rate: self.rate,
        };
        let receiving = async {
            let mut latencies_ms = Vec::with_capacity(self.count as usize);
            while (latencies_ms.len() as u64) < self.count {
                let arrived = timeout(LAST_ARRIVAL, next()).await;
                let number = arrived.context("an event did not arrive")??;
                latencies_ms.push(schedule.late_ms(number));
            }
            anyhow::Ok(latencies_ms)
        };
        tokio::join!(self.publish(&schedule, publish), receiving).1
    }

    async fn publish(&self, schedule: &Schedule, publish: impl Fn(&str)) {
        for number in 0..self.count {
            let due = schedule.due(number);
            // The timer is no finer than a millisecond; what is due by then goes out together.
            if due > Instant::now() {
                sleep_until(due).await;
            }
            publish(&self.target.payload(number));
        }
    }

    fn report(&self, sorted_ms: &[f64], format: Format) -> anyhow::Result<()> {
        let at = |share: f64| {
            let rank = ((sorted_ms.len() as f64) * share).ceil() as usize;
            sorted_ms[rank.clamp(1, sorted_ms.len()) - 1]
        };
        let average = sorted_ms.iter().sum::<f64>() / sorted_ms.len() as f64;
        let rounded = |ms: f64| (ms * 1_000.0).round() / 1_000.0;
        let (p50, p90, p99) = (at(0.5), at(0.9), at(0.99));
        let max = at(1.0);
        if format.is_json() {
            return output::json(&json!({
                "n": sorted_ms.len(),
                "p50": rounded(p50),
                "p90": rounded(p90),
                "p99": rounded(p99),
                "max": rounded(max),
                "avg": rounded(average),
            }));
        }
        output::line(format_args!(
            "{} events at {}/s, ms from due to delivered: p50 {p50:.3}, p90 {p90:.3}, p99 {p99:.3}, \
             max {max:.3}, average {average:.3}",
            sorted_ms.len(),
            self.rate
        ))
    }
}

impl Schedule {
    fn due(&self, number: u64) -> Instant {
        let nanos = u128::from(number) * 1_000_000_000 / u128::from(self.rate);
        self.started + Duration::from_nanos(nanos as u64)
    }

    fn late_ms(&self, number: u64) -> f64 {
        self.due(number).elapsed().as_secs_f64() * 1_000.0
    }
}
