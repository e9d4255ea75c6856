//! Reading sealed segments from the page cache: a topic that has its log to itself, and one of many that were written
//! interleaved.

use crate::Outcome;
use crate::folder::remove;
use crate::log_work::{
    BATCH_EVENTS, make_log, open_log, payloads, per_second, read_up_to, topic_at,
};
use crate::plain::{self, Records};
use crate::report::{Goal, Line, Unit};
use crate::sampling::{Samples, in_turns};
use crate::table::Bench;
use std::time::Instant;

/// The newest events lie in a segment that is not sealed, so so many in a hundred are left out.
const UNSEALED_PERCENT: u64 = 15;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let (scale, folder) = (&bench.scale, &mut bench.folder);
    let (alone, mixed, plain) = (
        folder.fresh("alone"),
        folder.fresh("mixed"),
        folder.fresh("plain"),
    );
    let topics = scale.interleaved_topics;
    let events = scale.read_events;
    make_log(&alone, scale, 1, events)?;
    make_log(&mixed, scale, topics, events)?;
    let records = Records::new(&payloads())?;
    plain::append(&plain, &records, events / BATCH_EVENTS)?;

    let last_seq = |events: u64| events - events * UNSEALED_PERCENT / 100;
    let alone_log = open_log(&alone, scale)?;
    let mixed_log = open_log(&mixed, scale)?;
    let read_alone = || {
        let started = Instant::now();
        let bytes = read_up_to(&alone_log, &topic_at(0), last_seq(events))?;
        Ok(per_second(bytes, started))
    };
    let (one, beside) = in_turns(scale.repeats, read_alone, || plain::read(&plain, &records))?;
    // One topic of many is too little to time, so all are read, each by itself.
    let read_mixed = || {
        let started = Instant::now();
        let mut bytes = 0;
        for place in 0..topics {
            let last_seq = last_seq(events / topics as u64);
            bytes += read_up_to(&mixed_log, &topic_at(place), last_seq)?;
        }
        Ok(per_second(bytes, started))
    };
    let (of_many, alone_beside): (Samples, Samples) =
        in_turns(scale.repeats, read_mixed, read_alone)?;
    drop((alone_log, mixed_log));
    for path in [alone, mixed, plain] {
        remove(&path)?;
    }
    let what = format!("log read of one topic of {topics} interleaved ones");
    Ok(vec![
        Line::new("log read, pages of 1 MiB", Unit::BytesPerSecond, one)
            .beside("plain read and checksum", beside)
            .goal(Goal::AtLeast(1e9)),
        Line::new(what, Unit::BytesPerSecond, of_many)
            .beside("one topic alone", alone_beside)
            .goal(Goal::RatioAtLeast(0.5)),
    ])
}
