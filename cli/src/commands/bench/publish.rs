//! `bench publish`: how many events a second are stored and acknowledged.

use super::{Target, TargetArgs};
use crate::output::{self, Format};
use clap::Args;
use serde_json::json;
use std::collections::VecDeque;
use std::future::Future;
use std::time::Instant;

/// Measure how many events a second are stored and acknowledged
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  prombus bench publish -n 20000 --json
  prombus bench publish --store file:./bench-data")]
pub(super) struct Publish {
    #[command(flatten)]
    target: TargetArgs,
    /// How many events
    #[arg(short = 'n', long, default_value_t = 100_000)]
    count: u64,
    /// How many may be unacknowledged at a time
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    in_flight: u64,
}

impl Publish {
    #[allow(
        clippy::disallowed_methods,
        reason = "a benchmark measures the machine's own time"
    )]
    pub(super) async fn run(&self, format: Format) -> anyhow::Result<()> {
        let target = self.target.open().await?;
        let topic = self.target.topic.as_str();
        let payload = self.target.payload(0);
        let started = Instant::now();
        match &target {
            Target::InProcess(bus) => {
                let options = prombus::PublishOptions::default();
                let publish = || bus.publish_text(topic, &payload, &options);
                self.pipeline(publish).await?;
            }
            Target::Remote(client) => {
                let options = prombus_client::PublishOptions::default();
                let publish = || client.publish_text(topic, &payload, &options);
                self.pipeline(publish).await?;
            }
        }
        let seconds = started.elapsed().as_secs_f64();
        target.close().await?;
        let per_second = self.count as f64 / seconds;
        if format.is_json() {
            let (ms, mps) = ((seconds * 1_000.0).round(), per_second.round());
            output::json(&json!({"published": self.count, "ms": ms, "mps": mps}))
        } else {
            output::line(format_args!(
                "{} events published and acknowledged in {seconds:.2} s: {per_second:.0} a second",
                self.count
            ))
        }
    }

    /// Keeps up to `in_flight` publishes unacknowledged, in order.
    async fn pipeline<F, T, E>(&self, publish: impl Fn() -> F) -> anyhow::Result<()>
    where
        F: Future<Output = Result<T, E>> + Unpin,
        E: std::error::Error + Send + Sync + 'static,
    {
        let mut waiting = VecDeque::with_capacity(self.in_flight as usize);
        for _ in 0..self.count {
            if waiting.len() as u64 >= self.in_flight
                && let Some(oldest) = waiting.pop_front()
            {
                oldest.await?;
            }
            waiting.push_back(publish());
        }
        for answer in waiting {
            answer.await?;
        }
        Ok(())
    }
}
