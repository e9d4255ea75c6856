//! (k): publishing as in (a) and consuming as in (d), at the same time.

use super::publish::WINDOW;
use super::{Metric, Row};
use crate::Outcome;
use crate::publish::{End, Numbers, publish};
use crate::stage::Stage;
use crate::systems::{Flavour, Pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const STORED: &str = "k-stored";

/// (k) Everything at once.
pub(super) struct Mixed;

impl Row for Mixed {
    fn name(&self) -> &'static str {
        "k"
    }

    fn what(&self) -> &'static str {
        "publish and consume at once"
    }

    fn metrics(&self) -> &'static [Metric] {
        const { &[Metric::rate("publish"), Metric::rate("consume")] }
    }

    fn flavours(&self) -> &'static [Flavour] {
        &Flavour::ONE_EACH
    }

    fn prepare<'a>(&'a self, stage: &'a mut Stage) -> Pending<'a, ()> {
        Box::pin(async move { stage.fill(STORED, stage.scale.consume_events).await })
    }

    fn measure<'a>(&'a self, stage: &'a mut Stage, round: usize) -> Pending<'a, Vec<f64>> {
        Box::pin(async move {
            let (topic, group) = (format!("k-{round}"), format!("group-{round}"));
            let count = stage.scale.consume_events;
            stage.system.make_topic(&topic).await?;
            let mut publisher = stage.system.publisher(&topic).await?;
            let consumer = stage.system.consumer(STORED, &group).await?;
            let is_over = Arc::new(AtomicBool::new(false));
            let numbers = Numbers {
                next: 0,
                step: 1,
                end: End::Told(is_over.clone()),
            };
            let begun = Instant::now();
            let publishing = tokio::spawn(async move {
                let sent = publish(&mut *publisher, numbers, WINDOW).await?;
                Outcome::Ok((sent, begun.elapsed().as_secs_f64()))
            });
            let consumed = stage.consume(STORED, &group, consumer, count).await;
            let consume_seconds = begun.elapsed().as_secs_f64();
            is_over.store(true, Ordering::Relaxed);
            let (sent, publish_seconds) = publishing.await??;
            consumed?;
            stage.check_content(&topic, sent).await?;
            stage.system.remove_topic(&topic).await?;
            Ok(vec![
                sent as f64 / publish_seconds,
                count as f64 / consume_seconds,
            ])
        })
    }
}
