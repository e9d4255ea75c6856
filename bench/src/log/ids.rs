//! Whether publishing with random client ids costs the same on a log with few of them and with many. The largest number
//! of millions can be raised with `PROMBUS_BENCH_ID_MILLIONS`.

use crate::Outcome;
use crate::folder::remove;
use crate::log_work::{BATCH_EVENTS, draft, make_topics, nanos_each, open_log, topic_at};
use crate::report::{Goal, Line, Unit, with_commas};
use crate::sampling::Samples;
use crate::table::Bench;
use prombus_log::Log;
use prombus_store::{Batch, Draft, Durability, Id};
use std::sync::Arc;
use std::time::Instant;

/// Sets the largest number of stored events, in millions.
const MILLIONS: &str = "PROMBUS_BENCH_ID_MILLIONS";
/// What publishing at the largest number may cost, beside the smallest.
const MOST_TIMES: f64 = 1.5;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let mut counts = bench.scale.id_events.clone();
    if let (Ok(millions), Some(last)) = (std::env::var(MILLIONS), counts.last_mut()) {
        *last = millions.parse::<u64>()? * 1_000_000;
    }
    let sample = bench.scale.id_publish_events;
    let path = bench.folder.fresh("ids");
    let log = open_log(&path, &bench.scale)?;
    let topic = topic_at(0);
    make_topics(&log, std::slice::from_ref(&topic), Durability::Os)?;
    let mut random = Random(1);
    let mut costs: Vec<Samples> = Vec::new();
    let mut stored = 0;
    for &count in &counts {
        publish(&log, &topic, &mut random, count.saturating_sub(stored))?;
        stored = stored.max(count);
        log.maintain()?;
        let mut samples = Samples::default();
        for _ in 0..bench.scale.repeats {
            let started = Instant::now();
            publish(&log, &topic, &mut random, sample)?;
            samples.push(nanos_each(sample, started));
            stored += sample;
        }
        costs.push(samples);
    }
    log.close()?;
    drop(log);
    remove(&path)?;
    let smallest = costs.first().cloned().unwrap_or_default();
    let lines = counts
        .iter()
        .zip(costs)
        .enumerate()
        .map(|(at, (&count, cost))| {
            let count = with_commas(count as f64);
            let what = format!("publish with random ids, {count} stored");
            let line = Line::new(what, Unit::NanosPerEvent, cost);
            if at == 0 {
                return line;
            }
            line.beside("at the smallest", smallest.clone())
                .goal(Goal::RatioAtMost(MOST_TIMES))
        });
    Ok(lines.collect())
}

/// Appends events with ids as UUIDs of version 4 have them, in batches that are waited for.
fn publish(log: &Log, topic: &Arc<str>, random: &mut Random, events: u64) -> Outcome<()> {
    for _ in 0..events / BATCH_EVENTS {
        let mut batch = Batch::new();
        for _ in 0..BATCH_EVENTS {
            let id = random.uuid();
            let id = Id::from_client(&id).ok_or("an id that the log does not take")?;
            let event = Draft {
                id: Some(id),
                ..draft("{\"done\":true}")
            };
            batch.publish(topic, &event);
        }
        log.append(&batch).wait()?;
    }
    Ok(())
}

/// Numbers by splitmix64.
struct Random(u64);

impl Random {
    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn uuid(&mut self) -> String {
        let (high, low) = (self.number(), self.number());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xffff,
            high & 0xfff,
            low >> 48 & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff,
        )
    }
}
