//! What a group that is far behind costs in memory, beside one that is caught up.

use crate::Outcome;
use crate::probe;
use crate::report::{Goal, Line, Unit, with_commas};
use crate::sampling::Samples;
use crate::table::Bench;

pub(super) fn run(bench: &mut Bench) -> Outcome<Vec<Line>> {
    let repeats = bench.scale.repeats;
    let events = with_commas(bench.scale.large_log_events() as f64);
    let folder = bench.large_log()?;
    let mut resident = [Samples::default(), Samples::default()];
    let mut peak = [Samples::default(), Samples::default()];
    for _ in 0..repeats {
        for (at, probe) in [probe::behind, probe::caught_up].into_iter().enumerate() {
            let served = probe(folder)?;
            resident[at].push(served.resident_bytes);
            peak[at].push(served.peak_bytes);
        }
    }
    let line = |what: String, [behind, caught_up]: [Samples; 2]| {
        Line::new(what, Unit::Bytes, behind).beside("caught up", caught_up)
    };
    let resting = format!("memory of a group {events} events behind");
    let most = "the most while it was served".to_owned();
    Ok(vec![
        line(resting, resident),
        line(most, peak).goal(Goal::RatioAtMost(1.25)),
    ])
}
