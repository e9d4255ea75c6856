//! (e): from the moment an event is due to its delivery to a group, at a steady rate.

use super::{Metric, Row, per_mille};
use crate::payload::Checker;
use crate::publish::publish_on_schedule;
use crate::stage::Stage;
use crate::systems::Pending;
use std::time::{Duration, Instant};

/// How long the last events may take.
const ARRIVE_LIMIT: Duration = Duration::from_secs(60);

/// (e) Publish to delivery.
pub(super) struct Latency;

impl Row for Latency {
    fn name(&self) -> &'static str {
        "e"
    }

    fn what(&self) -> &'static str {
        "publish to delivery at 5,000/s"
    }

    fn metrics(&self) -> &'static [Metric] {
        const {
            &[
                Metric::cost("p50", "ms"),
                Metric::cost("p90", "ms"),
                Metric::cost("p99", "ms"),
                Metric::cost("p99.9", "ms"),
            ]
        }
    }

    fn waits_for_the_disk(&self) -> bool {
        true
    }

    fn measure<'a>(&'a self, stage: &'a mut Stage, round: usize) -> Pending<'a, Vec<f64>> {
        Box::pin(async move {
            let topic = format!("e-{round}");
            let (per_second, count) = (stage.scale.paced_per_second, stage.scale.paced_events);
            stage.system.make_topic(&topic).await?;
            let mut consumer = stage.system.consumer(&topic, "watchers").await?;
            let mut publisher = stage.system.publisher(&topic).await?;
            let started = Instant::now();
            let publishing = tokio::spawn(async move {
                publish_on_schedule(&mut *publisher, started, per_second, count).await
            });
            let mut checker = Checker::new(count);
            let mut millis = Vec::with_capacity(usize::try_from(count)?);
            while !checker.is_over() {
                let mut see = |payload: &[u8]| {
                    if let Some(seen) = checker.see(payload) {
                        let now_ns = started.elapsed().as_nanos() as u64;
                        millis.push(now_ns.saturating_sub(seen.due_ns) as f64 / 1e6);
                    }
                };
                let taken = tokio::time::timeout(ARRIVE_LIMIT, consumer.take(&mut see)).await;
                taken.map_err(|_| "nothing more was delivered")??;
            }
            checker.verdict()?;
            publishing.await??;
            consumer.finish().await?;
            stage.system.remove_topic(&topic).await?;
            millis.sort_by(f64::total_cmp);
            Ok([500, 900, 990, 999]
                .map(|share| per_mille(&millis, share))
                .to_vec())
        })
    }
}
