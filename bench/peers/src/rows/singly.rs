//! (b): publishing one event at a time, each acknowledged before the next is sent.

use super::{Metric, Row, per_mille};
use crate::publish::publish_singly;
use crate::stage::Stage;
use crate::systems::Pending;

/// (b) One at a time.
pub(super) struct Singly;

impl Row for Singly {
    fn name(&self) -> &'static str {
        "b"
    }

    fn what(&self) -> &'static str {
        "publish one at a time"
    }

    fn metrics(&self) -> &'static [Metric] {
        const { &[Metric::cost("p50", "ms"), Metric::cost("p99", "ms")] }
    }

    fn measure<'a>(&'a self, stage: &'a mut Stage, round: usize) -> Pending<'a, Vec<f64>> {
        Box::pin(async move {
            let topic = format!("b-{round}");
            stage.system.make_topic(&topic).await?;
            let mut publisher = stage.system.publisher(&topic).await?;
            let mut millis = publish_singly(&mut *publisher, stage.scale.publish_time).await?;
            stage.check_content(&topic, millis.len() as u64).await?;
            stage.system.remove_topic(&topic).await?;
            millis.sort_by(f64::total_cmp);
            Ok(vec![per_mille(&millis, 500), per_mille(&millis, 990)])
        })
    }
}
