//! Costs at growing numbers of something, each beside the cost at the smallest number.

use crate::report::{Goal, Line, Unit, with_commas};
use crate::sampling::Samples;

/// A cost counts as flat while it is not above the smallest number's by more than this.
const FLAT_RATIO: f64 = 1.25;

/// The samples taken at each number.
pub(super) struct Points(Vec<(f64, Samples)>);

impl Points {
    pub(super) fn new<N: Copy + TryInto<u32>>(numbers: &[N]) -> Self {
        let points = numbers
            .iter()
            .map(|number| (*number).try_into().map_or(f64::NAN, f64::from));
        Self(points.map(|number| (number, Samples::default())).collect())
    }

    /// Adds a cost, in nanoseconds per event, at the number at a place.
    pub(super) fn push(&mut self, at: usize, nanos: f64) {
        self.0[at].1.push(nanos);
    }
}

/// A line for each number; `what` has a place for it.
pub(super) fn lines(what: &str, points: Points) -> Vec<Line> {
    let Some((_, smallest)) = points.0.first().cloned() else {
        return Vec::new();
    };
    let at_smallest = |at: usize| at == 0;
    let lines = points.0.into_iter().enumerate();
    lines
        .map(|(at, (number, samples))| {
            let what = what.replace("{}", &with_commas(number));
            let line = Line::new(what, Unit::NanosPerEvent, samples);
            if at_smallest(at) {
                line
            } else {
                line.beside("at the smallest", smallest.clone())
                    .goal(Goal::RatioAtMost(FLAT_RATIO))
            }
        })
        .collect()
}
