//! (a) and (c): publishing with a thousand events in flight, from one connection or from many.

use super::{Metric, Row};
use crate::Outcome;
use crate::publish::{End, Numbers, publish};
use crate::stage::Stage;
use crate::systems::Pending;
use std::time::Instant;

/// Events in flight, of all connections together.
pub(super) const WINDOW: usize = 1_000;

/// (a) One connection.
pub(super) struct OneConnection;

/// (c) Many connections at once.
pub(super) struct ManyConnections;

impl Row for OneConnection {
    fn name(&self) -> &'static str {
        "a"
    }

    fn what(&self) -> &'static str {
        "publish, one connection, 1,000 in flight"
    }

    fn metrics(&self) -> &'static [Metric] {
        const { &[Metric::rate("")] }
    }

    fn measure<'a>(&'a self, stage: &'a mut Stage, round: usize) -> Pending<'a, Vec<f64>> {
        Box::pin(async move {
            let topic = format!("a-{round}");
            stage.system.make_topic(&topic).await?;
            let mut publisher = stage.system.publisher(&topic).await?;
            let begun = Instant::now();
            let numbers = Numbers::during(stage.scale.publish_time);
            let sent = publish(&mut *publisher, numbers, WINDOW).await?;
            let rate = sent as f64 / begun.elapsed().as_secs_f64();
            drop(publisher);
            stage.check_content(&topic, sent).await?;
            stage.system.remove_topic(&topic).await?;
            Ok(vec![rate])
        })
    }
}

impl Row for ManyConnections {
    fn name(&self) -> &'static str {
        "c"
    }

    fn what(&self) -> &'static str {
        "publish, 16 connections at once"
    }

    fn metrics(&self) -> &'static [Metric] {
        const { &[Metric::rate("")] }
    }

    fn measure<'a>(&'a self, stage: &'a mut Stage, round: usize) -> Pending<'a, Vec<f64>> {
        Box::pin(async move {
            let topic = format!("c-{round}");
            stage.system.make_topic(&topic).await?;
            let publishers = stage.scale.publishers;
            let mut connected = Vec::new();
            for _ in 0..publishers {
                connected.push(stage.system.publisher(&topic).await?);
            }
            let begun = Instant::now();
            let end = begun + stage.scale.publish_time;
            let mut working = Vec::new();
            for (mut publisher, next) in connected.into_iter().zip(0..) {
                let numbers = Numbers {
                    next,
                    step: publishers as u64,
                    end: End::At(end),
                };
                let work =
                    async move { publish(&mut *publisher, numbers, WINDOW / publishers).await };
                working.push(tokio::spawn(work));
            }
            let mut sent = Vec::new();
            for work in working {
                sent.push(work.await??);
            }
            let total = sent.iter().sum::<u64>();
            let rate = total as f64 / begun.elapsed().as_secs_f64();
            check_shares(stage, &topic, &sent).await?;
            stage.system.remove_topic(&topic).await?;
            Ok(vec![rate])
        })
    }
}

/// Each publisher has its own numbers, and the faster ones got further: what is there is counted for each.
async fn check_shares(stage: &Stage, topic: &str, sent: &[u64]) -> Outcome<()> {
    use crate::payload::Checker;

    let total = sent.iter().sum::<u64>();
    stage.check_stored(topic, total).await?;
    let publishers = sent.len() as u64;
    let highest = sent.iter().copied().max().unwrap_or_default() * publishers;
    let mut found = vec![0_u64; sent.len()];
    let mut checker = Checker::new(highest);
    let mut see = |payload: &[u8]| {
        if let Some(seen) = checker.see(payload) {
            found[(seen.number % publishers) as usize] += 1;
        }
    };
    stage.system.replay(topic, total, &mut see).await?;
    if found == sent && !checker.is_faulty() {
        Ok(())
    } else {
        Err(format!("of {sent:?} that were sent {found:?} arrived").into())
    }
}
