//! (g): reading everything that is stored, over the network and without a group.

use super::{Metric, Row};
use crate::payload::{Checker, PAYLOAD_BYTES};
use crate::stage::Stage;
use crate::systems::{Flavour, Pending};
use std::time::Instant;

const TOPIC: &str = "g";

/// (g) Replay.
pub(super) struct Replay;

impl Row for Replay {
    fn name(&self) -> &'static str {
        "g"
    }

    fn what(&self) -> &'static str {
        "replay of 1 million stored events"
    }

    fn metrics(&self) -> &'static [Metric] {
        const PAYLOADS: Metric = Metric {
            name: "payload bytes",
            unit: "MB/s",
            is_lower_better: false,
        };
        const { &[Metric::rate(""), PAYLOADS] }
    }

    fn flavours(&self) -> &'static [Flavour] {
        &Flavour::ONE_EACH
    }

    fn prepare<'a>(&'a self, stage: &'a mut Stage) -> Pending<'a, ()> {
        Box::pin(async move { stage.fill(TOPIC, stage.scale.stored_events).await })
    }

    fn measure<'a>(&'a self, stage: &'a mut Stage, _: usize) -> Pending<'a, Vec<f64>> {
        Box::pin(async move {
            let count = stage.scale.stored_events;
            let mut checker = Checker::new(count);
            let mut see = |payload: &[u8]| {
                checker.see(payload);
            };
            let begun = Instant::now();
            stage.system.replay(TOPIC, count, &mut see).await?;
            let rate = count as f64 / begun.elapsed().as_secs_f64();
            checker.verdict()?;
            Ok(vec![rate, rate * PAYLOAD_BYTES as f64 / 1e6])
        })
    }
}
