//! (d): a group with one member that takes everything there is and settles each event by its own id.

use super::{Metric, Row};
use crate::stage::Stage;
use crate::systems::{Flavour, Pending};
use std::time::Instant;

const TOPIC: &str = "d";

/// (d) Consume and acknowledge.
pub(super) struct Consume;

impl Row for Consume {
    fn name(&self) -> &'static str {
        "d"
    }

    fn what(&self) -> &'static str {
        "consume through a group, each acknowledged"
    }

    fn metrics(&self) -> &'static [Metric] {
        const { &[Metric::rate("")] }
    }

    fn flavours(&self) -> &'static [Flavour] {
        &Flavour::ONE_EACH
    }

    fn prepare<'a>(&'a self, stage: &'a mut Stage) -> Pending<'a, ()> {
        Box::pin(async move { stage.fill(TOPIC, stage.scale.consume_events).await })
    }

    fn measure<'a>(&'a self, stage: &'a mut Stage, round: usize) -> Pending<'a, Vec<f64>> {
        Box::pin(async move {
            let group = format!("group-{round}");
            let count = stage.scale.consume_events;
            let begun = Instant::now();
            let consumer = stage.system.consumer(TOPIC, &group).await?;
            stage.consume(TOPIC, &group, consumer, count).await?;
            Ok(vec![count as f64 / begun.elapsed().as_secs_f64()])
        })
    }
}
