//! (i): from the start of the process to its first answer, with many events stored and stopped in good order.

use super::{Metric, Row};
use crate::stage::Stage;
use crate::systems::{Flavour, Pending};
use std::time::Instant;

const TOPIC: &str = "i";

/// (i) Start-up, with the first or the second of the numbers of stored events.
pub(super) struct StartUp(pub(super) usize);

impl Row for StartUp {
    fn name(&self) -> &'static str {
        "i"
    }

    fn what(&self) -> &'static str {
        [
            "start-up with 1 million stored",
            "start-up with 10 million stored",
        ][self.0]
    }

    fn metrics(&self) -> &'static [Metric] {
        const METRICS: [[Metric; 1]; 2] = [
            [Metric::cost("1 million", "ms")],
            [Metric::cost("10 million", "ms")],
        ];
        &METRICS[self.0]
    }

    fn flavours(&self) -> &'static [Flavour] {
        &Flavour::ONE_EACH
    }

    fn prepare<'a>(&'a self, stage: &'a mut Stage) -> Pending<'a, ()> {
        Box::pin(async move { stage.fill(TOPIC, stage.scale.start_events[self.0]).await })
    }

    fn measure<'a>(&'a self, stage: &'a mut Stage, _: usize) -> Pending<'a, Vec<f64>> {
        Box::pin(async move {
            let count = stage.scale.start_events[self.0];
            stage.stop()?;
            let begun = Instant::now();
            stage.start().await?;
            stage.check_stored(TOPIC, count).await?;
            Ok(vec![begun.elapsed().as_secs_f64() * 1e3])
        })
    }
}
