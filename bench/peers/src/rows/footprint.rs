//! (h): what a server holds in memory and on disk after a million events, each time on an empty folder.

use super::{Metric, Row};
use crate::process::disk_bytes;
use crate::stage::Stage;
use crate::systems::{Flavour, Pending};
use std::time::Duration;

const TOPIC: &str = "h";
/// What a server still does when the last event is answered is not what is measured.
const REST: Duration = Duration::from_secs(2);

/// (h) Memory and disk.
pub(super) struct Footprint;

impl Row for Footprint {
    fn name(&self) -> &'static str {
        "h"
    }

    fn what(&self) -> &'static str {
        "memory and disk after 1 million events"
    }

    fn metrics(&self) -> &'static [Metric] {
        const {
            &[
                Metric::cost("memory", "MB"),
                Metric::cost("disk", "bytes/event"),
            ]
        }
    }

    fn flavours(&self) -> &'static [Flavour] {
        &Flavour::ONE_EACH
    }

    fn measure<'a>(&'a self, stage: &'a mut Stage, _: usize) -> Pending<'a, Vec<f64>> {
        Box::pin(async move {
            stage.empty().await?;
            let count = stage.scale.stored_events;
            stage.fill(TOPIC, count).await?;
            tokio::time::sleep(REST).await;
            let resident = stage.system.process().resident_bytes()?;
            let stored = disk_bytes(&stage.folder)?;
            Ok(vec![resident as f64 / 1e6, stored as f64 / count as f64])
        })
    }
}
