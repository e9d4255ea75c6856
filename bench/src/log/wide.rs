//! A log with many topics, groups and segments: what it takes in memory, how long opening takes, and how long a single
//! publish waits while such segments are sealed.

use crate::Outcome;
use crate::folder::remove;
use crate::log_work::{draft, make_topics, options, payloads};
use crate::probe;
use crate::report::{Goal, Line, Unit, with_commas};
use crate::sampling::Samples;
use crate::scale::Wide;
use crate::table::Bench;
use prombus_log::{Batch, Change, Durability, Expect, Log, LogOptions, OsFiles};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Topics and groups that are made in one batch.
const TOGETHER: usize = 5_000;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let wide = bench.scale.wide;
    let path = bench.folder.fresh("wide");
    let slowest = fill(&path, bench, wide)?;
    let mut millis = Samples::default();
    let mut resident = Samples::default();
    for _ in 0..bench.scale.repeats {
        let opened = probe::opened(&path)?;
        millis.push(opened.millis);
        resident.push(opened.resident_bytes as f64);
    }
    remove(&path)?;
    let mut slowest_millis = Samples::default();
    slowest_millis.push(slowest.as_secs_f64() * 1e3);
    let [topics, groups, segments] =
        [wide.topics, wide.groups, wide.segments].map(|count| with_commas(count as f64));
    let what = format!("open {topics} topics, {groups} groups, {segments} segments");
    Ok(vec![
        Line::new(what, Unit::Millis, millis).goal(Goal::AtMost(3_000.0)),
        Line::new("resident memory when it is open", Unit::Bytes, resident)
            .goal(Goal::AtMost(300e6)),
        Line::new("the slowest publish", Unit::Millis, slowest_millis).goal(Goal::AtMost(20.0)),
    ])
}

/// Makes the log; returns how long the slowest of its publishes took.
fn fill(path: &Path, bench: &Bench, wide: Wide) -> Outcome<Duration> {
    let options = LogOptions {
        segment_bytes: wide.segment_bytes,
        ..options(&bench.scale)
    };
    let log = Log::open(Arc::new(OsFiles::open(path)?), options)?.0;
    let topics: Vec<Arc<str>> = (0..wide.topics)
        .map(|place| format!("bench.wide-{place:06}").into())
        .collect();
    for some in topics.chunks(TOGETHER) {
        make_topics(&log, some, Durability::Os)?;
    }
    let groups: Vec<usize> = (0..wide.groups).collect();
    for some in groups.chunks(TOGETHER) {
        let mut batch = Batch::new();
        for group in some {
            batch.change(Change::Put {
                key: format!("group/bench.wide/{group:06}").into(),
                value: vec![b'x'; 64].into(),
                expect: Expect::Any,
            });
        }
        log.append(&batch).wait()?;
    }
    let payloads = payloads();
    let mut slowest = Duration::ZERO;
    let mut turns = topics.iter().cycle().zip(payloads.iter().cycle());
    while log.stats().segments < wide.segments as u64 {
        for (topic, payload) in turns.by_ref().take(wide.topics_in_segment) {
            let mut batch = Batch::new();
            batch.publish(topic, &draft(payload));
            let started = Instant::now();
            log.append(&batch).wait()?;
            slowest = slowest.max(started.elapsed());
        }
    }
    log.maintain()?;
    log.close()?;
    Ok(slowest)
}
