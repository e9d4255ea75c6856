//! Opening a large log: how long it takes and how much memory it needs.

use crate::Outcome;
use crate::probe;
use crate::report::{Goal, Line, Unit, with_commas};
use crate::sampling::Samples;
use crate::table::Bench;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let repeats = bench.scale.repeats;
    let events = with_commas(bench.scale.large_log_events() as f64);
    let folder = bench.large_log()?;
    let mut millis = Samples::default();
    let mut resident = Samples::default();
    let mut peak = Samples::default();
    for _ in 0..repeats {
        let opened = probe::opened(folder)?;
        millis.push(opened.millis);
        resident.push(opened.resident_bytes as f64);
        peak.push(opened.peak_bytes as f64);
    }
    let goal = Goal::AtMost(200e6);
    Ok(vec![
        Line::new(
            format!("open a log of {events} events"),
            Unit::Millis,
            millis,
        )
        .goal(Goal::AtMost(2_000.0)),
        Line::new("resident memory when it is open", Unit::Bytes, resident).goal(goal),
        Line::new("the most while it is opened", Unit::Bytes, peak).goal(goal),
    ])
}
