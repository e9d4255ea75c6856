//! Appending with `os` durability, beside a loop that checksums and writes the same bytes.

use crate::Outcome;
use crate::bus_work::block_on;
use crate::folder::remove;
use crate::log_work::{
    BATCH_EVENTS, STORED_BYTES, append, make_topics, open_log, payloads, per_second, topic_at,
};
use crate::plain::{self, Appended, Records};
use crate::report::{Goal, Line, Unit};
use crate::sampling::Samples;
use crate::scale::Scale;
use crate::table::Bench;
use prombus_store::Durability;
use std::path::Path;
use std::time::Instant;

/// Spelling the events' JSON into batches counts for the log, while the loop has its bytes ready; a second loop spells
/// them too. And the log sends what is written to the disk as it goes, the loops only at the end; so the last line
/// counts until everything is there.
pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let payloads = payloads();
    let records = Records::new(&payloads)?;
    let batches = bench.scale.events / BATCH_EVENTS;
    let mut log = Both::default();
    let (mut plain, mut encoding) = (Both::default(), Both::default());
    for repeat in 0..=bench.scale.repeats {
        let through_log = measured(bench, |path, scale| through_log(path, scale, &payloads))?;
        let plainly = measured(bench, |path, _| plain::append(path, &records, batches))?;
        let encoded = measured(bench, |path, _| {
            plain::spell_and_append(path, &payloads, batches)
        })?;
        // The first round is for nothing: it pays for memory that the system has to find.
        if repeat > 0 {
            log.push(through_log);
            plain.push(plainly);
            encoding.push(encoded);
        }
    }
    let line = |what: &str, samples| Line::new(what, Unit::EventsPerSecond, samples);
    let what = "log append, os, batches of 1,000";
    Ok(vec![
        line(what, log.written.clone())
            .beside("plain checksum and write", plain.written)
            .goal(Goal::RatioAtLeast(0.6)),
        line(what, log.written).beside("plain, encoding the records too", encoding.written),
        line("the same until all is on the disk", log.synced)
            .beside("plain, and one fdatasync", plain.synced),
    ])
}

fn measured(
    bench: &mut Bench,
    append: impl Fn(&Path, &Scale) -> Outcome<Appended>,
) -> Outcome<Appended> {
    bench.folder.warm(bench.scale.events * STORED_BYTES)?;
    let path = bench.folder.fresh("append");
    let appended = append(&path, &bench.scale)?;
    remove(&path)?;
    Ok(appended)
}

/// The samples of both figures.
#[derive(Default)]
struct Both {
    written: Samples,
    synced: Samples,
}

impl Both {
    fn push(&mut self, appended: Appended) {
        self.written.push(appended.written);
        self.synced.push(appended.synced);
    }
}

fn through_log(path: &Path, scale: &Scale, payloads: &[String]) -> Outcome<Appended> {
    let log = open_log(path, scale)?;
    let topics = [topic_at(0)];
    make_topics(&log, &topics, Durability::Os)?;
    let started = Instant::now();
    append(&log, &topics, payloads, scale.events)?;
    let written = per_second(scale.events, started);
    block_on(log.sync())??;
    let synced = per_second(scale.events, started);
    log.close()?;
    Ok(Appended { written, synced })
}
