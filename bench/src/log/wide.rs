//! A log with many topics, groups and segments: what it takes in memory, how long opening takes, how long a single
//! publish waits at a steady rate beside a log with one topic, and how much is written for each byte of records.

use crate::Outcome;
use crate::folder::remove;
use crate::log_work::{draft, make_topics, options, payloads};
use crate::probe;
use crate::report::{Goal, Line, Unit, with_commas};
use crate::sampling::Samples;
use crate::scale::Wide;
use crate::table::Bench;
use prombus_log::{Log, LogOptions, OsFiles};
use prombus_store::{Batch, Change, Durability, Expect};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Topics and groups that are made in one batch.
const TOGETHER: usize = 5_000;
/// The steady rate, which seals about two of these small segments a second.
const PER_SECOND: u64 = 5_000;
/// Of so many events one comes with the record of a group.
const EVENTS_PER_GROUP_RECORD: usize = 10;
/// Write amplification is that of so many segments.
const AMPLIFIED_SEGMENTS: u64 = 12;
/// Batches that are appended before the last of them is waited for.
const BATCHES_UNWRITTEN: u64 = 64;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let wide = bench.scale.wide;
    let narrow = Wide {
        topics: 1,
        groups: 1,
        segments: 2,
        ..wide
    };
    let [path, narrow_path] = ["wide", "narrow"].map(|name| bench.folder.fresh(name));
    fill(&path, bench, wide)?;
    fill(&narrow_path, bench, narrow)?;
    let [mut millis, mut resident]: [Samples; 2] = Default::default();
    let [mut slowest, mut slowest_narrow]: [Samples; 2] = Default::default();
    for _ in 0..bench.scale.repeats {
        let opened = probe::opened(&path)?;
        millis.push(opened.millis);
        resident.push(opened.resident_bytes as f64);
        slowest_narrow.push(publish_steadily(&narrow_path, bench, narrow)?);
        slowest.push(publish_steadily(&path, bench, wide)?);
    }
    remove(&path)?;
    remove(&narrow_path)?;
    let (state, all) = write_amplification(&bench.folder.fresh("wide"), bench, wide)?;
    let [topics, groups, segments] =
        [wide.topics, wide.groups, wide.segments].map(|count| with_commas(count as f64));
    let what = format!("open {topics} topics, {groups} groups, {segments} segments");
    Ok(vec![
        Line::new(what, Unit::Millis, millis).goal(Goal::AtMost(3_000.0)),
        Line::new("resident memory when it is open", Unit::Bytes, resident)
            .goal(Goal::AtMost(300e6)),
        Line::new("the slowest publish at 5,000/s", Unit::Millis, slowest)
            .beside("of a log with one topic", slowest_narrow)
            .goal(Goal::AtMost(20.0)),
        Line::new(
            "written for a byte of records, before sealing",
            Unit::Times,
            state,
        )
        .goal(Goal::AtMost(1.2)),
        Line::new("the same with sealing", Unit::Times, all),
    ])
}

fn open(path: &Path, bench: &Bench, wide: Wide) -> Outcome<Log> {
    let options = LogOptions {
        segment_bytes: wide.segment_bytes,
        ..options(&bench.scale)
    };
    Ok(Log::open(Arc::new(OsFiles::open(path)?), options)?.0)
}

fn topics(wide: Wide) -> Vec<Arc<str>> {
    let names = (0..wide.topics).map(|place| format!("bench.wide-{place:06}").into());
    names.collect()
}

fn group_record(group: usize) -> Change {
    Change::Put {
        key: format!("group/bench.wide/{group:06}").into(),
        value: vec![b'x'; 64].into(),
        expect: Expect::Any,
    }
}

/// Makes the log.
fn fill(path: &Path, bench: &Bench, wide: Wide) -> Outcome<()> {
    let log = open(path, bench, wide)?;
    let topics = topics(wide);
    for some in topics.chunks(TOGETHER) {
        make_topics(&log, some, Durability::Os)?;
    }
    let groups: Vec<usize> = (0..wide.groups).collect();
    for some in groups.chunks(TOGETHER) {
        let mut batch = Batch::new();
        for group in some {
            batch.change(group_record(*group));
        }
        log.append(&batch).wait()?;
    }
    let payloads = payloads();
    let mut turns = topics.iter().cycle().zip(payloads.iter().cycle());
    while log.stats().segments < wide.segments as u64 {
        for (topic, payload) in turns.by_ref().take(wide.topics_in_segment) {
            let mut batch = Batch::new();
            batch.publish(topic, &draft(payload));
            log.append(&batch).wait()?;
        }
    }
    log.maintain()?;
    Ok(log.close()?)
}

/// How many milliseconds the slowest publish took from the moment it was due.
fn publish_steadily(path: &Path, bench: &Bench, wide: Wide) -> Outcome<f64> {
    let log = open(path, bench, wide)?;
    let topics = topics(wide);
    let payloads = payloads();
    let mut turns = topics.iter().cycle().zip(payloads.iter().cycle());
    let mut slowest = Duration::ZERO;
    let pause = Duration::from_nanos(1_000_000_000 / PER_SECOND);
    let mut due = Instant::now();
    for number in 0..usize::try_from(bench.scale.paced_events)? {
        let Some((topic, payload)) = turns.next() else {
            break;
        };
        due += pause;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let mut batch = Batch::new();
        batch.publish(topic, &draft(payload));
        let commit = log.append(&batch);
        if number % EVENTS_PER_GROUP_RECORD == 0 {
            // Members acknowledge beside publishers and make none of them wait.
            let mut records = Batch::new();
            records.change(group_record(number % wide.groups));
            drop(log.append(&records));
        }
        commit.wait()?;
        slowest = slowest.max(due.elapsed());
    }
    log.close()?;
    Ok(slowest.as_secs_f64() * 1e3)
}

/// What is written for each byte of records that is appended to segments of the usual size, to all topics in turn: to
/// segments and state runs, and with what sealing writes.
fn write_amplification(path: &Path, bench: &Bench, wide: Wide) -> Outcome<(Samples, Samples)> {
    let wide = Wide {
        segment_bytes: bench.scale.segment_bytes,
        segments: 1,
        ..wide
    };
    fill(path, bench, wide)?;
    let log = open(path, bench, wide)?;
    let topics = topics(wide);
    let payloads = payloads();
    let mut turns = topics.iter().cycle().zip(payloads.iter().cycle());
    let mut groups = (0..wide.groups).cycle();
    for number in 0_u64.. {
        if log.stats().appended_bytes >= wide.segment_bytes * AMPLIFIED_SEGMENTS {
            break;
        }
        let mut batch = Batch::new();
        for (topic, payload) in turns.by_ref().take(EVENTS_PER_GROUP_RECORD) {
            batch.publish(topic, &draft(payload));
        }
        batch.change(group_record(groups.next().unwrap_or_default()));
        let commit = log.append(&batch);
        if number % BATCHES_UNWRITTEN == 0 {
            commit.wait()?;
        }
    }
    log.maintain()?;
    let stats = log.stats();
    log.close()?;
    remove(path)?;
    let of = |bytes: u64| Samples::from_iter([bytes as f64 / stats.appended_bytes as f64]);
    let written = stats.active_bytes + stats.state_bytes;
    Ok((of(written), of(written + stats.sealed_bytes)))
}
