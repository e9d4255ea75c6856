//! (f): every event of one topic to many groups while it is published.

use super::publish::WINDOW;
use super::{Metric, Row};
use crate::publish::{Numbers, publish};
use crate::stage::{Stage, take_all};
use crate::systems::{Flavour, Pending};
use std::time::Instant;

/// (f) One topic, many groups.
pub(super) struct FanOut;

impl Row for FanOut {
    fn name(&self) -> &'static str {
        "f"
    }

    fn what(&self) -> &'static str {
        "fan-out of one topic to 20 groups, deliveries"
    }

    fn metrics(&self) -> &'static [Metric] {
        const { &[Metric::rate("")] }
    }

    fn flavours(&self) -> &'static [Flavour] {
        &Flavour::ONE_EACH
    }

    fn measure<'a>(&'a self, stage: &'a mut Stage, round: usize) -> Pending<'a, Vec<f64>> {
        Box::pin(async move {
            let topic = format!("f-{round}");
            let (groups, count) = (stage.scale.fan_out_groups, stage.scale.fan_out_events);
            stage.system.make_topic(&topic).await?;
            let mut publisher = stage.system.publisher(&topic).await?;
            let mut consumers = Vec::new();
            for group in 0..groups {
                consumers.push(
                    stage
                        .system
                        .consumer(&topic, &format!("group-{group}"))
                        .await?,
                );
            }
            let begun = Instant::now();
            let mut working = Vec::new();
            for mut consumer in consumers {
                working.push(tokio::spawn(async move {
                    take_all(&mut *consumer, count).await?;
                    consumer.finish().await
                }));
            }
            publish(&mut *publisher, Numbers::up_to(count), WINDOW).await?;
            for work in working {
                work.await??;
            }
            let seconds = begun.elapsed().as_secs_f64();
            for group in 0..groups {
                stage
                    .wait_until_settled(&topic, &format!("group-{group}"))
                    .await?;
            }
            stage.system.remove_topic(&topic).await?;
            Ok(vec![(groups as u64 * count) as f64 / seconds])
        })
    }
}
