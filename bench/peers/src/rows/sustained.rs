//! (l): publishing to many topics at a steady rate for so long that segments are sealed, and topics that keep only the
//! latest event of each key are compacted, meanwhile. The peers store the same events.

use super::{Metric, Row, per_mille};
use crate::Outcome;
use crate::payload::Payload;
use crate::stage::Stage;
use crate::systems::{Flavour, Pending, Publisher};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Each of so many topics is compacted where a system can do that.
const COMPACTED_OF: usize = 5;
/// What waits for a publisher that has fallen behind its schedule.
const MAX_OVERDUE: usize = 1 << 20;

/// (l) Publishing while background work goes on.
pub(super) struct Sustained;

impl Row for Sustained {
    fn name(&self) -> &'static str {
        "l"
    }

    fn what(&self) -> &'static str {
        "publish at 20,000/s to 100 topics with sealing and compaction"
    }

    fn metrics(&self) -> &'static [Metric] {
        const {
            &[
                Metric::cost("p50", "ms"),
                Metric::cost("p99", "ms"),
                Metric::cost("p99.9", "ms"),
            ]
        }
    }

    fn flavours(&self) -> &'static [Flavour] {
        const {
            &[
                Flavour::PrombusFsync,
                Flavour::PrombusOs,
                Flavour::JetStreamDefault,
                Flavour::RedisAlways,
            ]
        }
    }

    fn waits_for_the_disk(&self) -> bool {
        true
    }

    fn measure<'a>(&'a self, stage: &'a mut Stage, round: usize) -> Pending<'a, Vec<f64>> {
        Box::pin(async move {
            let count = stage.scale.sustained_topics;
            let topics: Vec<String> = (0..count).map(|at| format!("l-{round}-{at}")).collect();
            let mut publishers = Vec::with_capacity(count);
            for (at, topic) in topics.iter().enumerate() {
                publishers.push(match at % COMPACTED_OF {
                    0 => {
                        stage.system.make_compacted_topic(topic).await?;
                        stage.system.keyed_publisher(topic).await?
                    }
                    _ => {
                        stage.system.make_topic(topic).await?;
                        stage.system.publisher(topic).await?
                    }
                });
            }
            let per_second = stage.scale.sustained_per_second;
            let events = per_second * stage.scale.sustained_time.as_secs();
            let mut millis = publish_in_turns(&mut publishers, per_second, events).await?;
            drop(publishers);
            for (at, topic) in topics.iter().enumerate() {
                if at % COMPACTED_OF != 0 {
                    let expected = (events - at as u64).div_ceil(count as u64);
                    stage.check_stored(topic, expected).await?;
                }
                stage.system.remove_topic(topic).await?;
            }
            millis.sort_by(f64::total_cmp);
            Ok([500, 990, 999]
                .map(|share| per_mille(&millis, share))
                .to_vec())
        })
    }
}

/// Publishes on a schedule, each event to the next topic. How long each took from the moment it was due to its
/// acknowledgement, in milliseconds.
async fn publish_in_turns(
    publishers: &mut [Box<dyn Publisher>],
    per_second: u64,
    events: u64,
) -> Outcome<Vec<f64>> {
    let (due, mut dues) = mpsc::channel(MAX_OVERDUE);
    // A thread sleeps far more exactly than the timers of a runtime.
    std::thread::spawn(move || {
        let pause = Duration::from_nanos(1_000_000_000 / per_second);
        let mut at = Instant::now();
        for number in 0..events {
            at += pause;
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            if due.blocking_send((number, at)).is_err() {
                return;
            }
        }
    });
    let mut millis = Vec::with_capacity(usize::try_from(events)?);
    let mut answers = FuturesUnordered::new();
    let count = publishers.len() as u64;
    loop {
        tokio::select! {
            next = dues.recv() => match next {
                None => break,
                Some((number, at)) => {
                    let publisher = &mut publishers[usize::try_from(number % count)?];
                    let answer = publisher.send(&[Payload::new(number / count, 0)]).await?;
                    answers.push(timed(answer, at));
                }
            },
            Some(taken) = answers.next(), if !answers.is_empty() => millis.push(taken?),
        }
    }
    while let Some(taken) = answers.next().await {
        millis.push(taken?);
    }
    Ok(millis)
}

async fn timed(answer: Pending<'static, ()>, due: Instant) -> Outcome<f64> {
    answer.await?;
    Ok(due.elapsed().as_secs_f64() * 1e3)
}
