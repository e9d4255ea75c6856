//! (j): thousands of subscribers that wait for events which do not come, each with a connection and a group of its own.

use super::{Metric, Row, per_mille};
use crate::publish::publish_singly;
use crate::stage::Stage;
use crate::systems::{Flavour, Pending};
use std::time::{Duration, Instant};

/// How long each waits before the next is asked for; enough for its request to reach the server.
const LISTEN: Duration = Duration::from_millis(1);

/// The subscribers share these: one JetStream stream refuses as many consumers.
const QUIET_TOPICS: usize = 10;

/// (j) Idle subscribers.
pub(super) struct Idle;

impl Row for Idle {
    fn name(&self) -> &'static str {
        "j"
    }

    fn what(&self) -> &'static str {
        "5,000 idle subscribers"
    }

    fn metrics(&self) -> &'static [Metric] {
        const {
            &[
                Metric::cost("memory each", "kB"),
                Metric::cost("to subscribe all", "ms"),
                Metric::cost("publish p50 beside them", "ms"),
            ]
        }
    }

    fn flavours(&self) -> &'static [Flavour] {
        &Flavour::ONE_EACH
    }

    fn measure<'a>(&'a self, stage: &'a mut Stage, round: usize) -> Pending<'a, Vec<f64>> {
        Box::pin(async move {
            stage.empty().await?;
            let subscribers = stage.scale.idle_subscribers;
            let quiet = |number: usize| format!("quiet-{round}-{}", number % QUIET_TOPICS);
            let busy = format!("busy-{round}");
            for number in 0..QUIET_TOPICS {
                stage.system.make_topic(&quiet(number)).await?;
            }
            stage.system.make_topic(&busy).await?;
            let before = stage.system.process().resident_bytes()?;
            let begun = Instant::now();
            let mut waiting = Vec::with_capacity(subscribers);
            for number in 0..subscribers {
                let mut consumer = stage
                    .system
                    .consumer(&quiet(number), &format!("group-{number}"))
                    .await?;
                waiting.push(tokio::spawn(async move {
                    let mut see = |_: &[u8]| {};
                    while consumer.take(&mut see).await.is_ok() {}
                }));
            }
            tokio::time::sleep(LISTEN).await;
            let subscribe_ms = begun.elapsed().as_secs_f64() * 1e3;
            let after = stage.system.process().resident_bytes()?;
            let mut publisher = stage.system.publisher(&busy).await?;
            let mut millis = publish_singly(&mut *publisher, stage.scale.publish_time).await?;
            millis.sort_by(f64::total_cmp);
            for work in waiting {
                work.abort();
            }
            let each = after.saturating_sub(before) as f64 / subscribers as f64 / 1e3;
            Ok(vec![each, subscribe_ms, per_mille(&millis, 500)])
        })
    }
}
