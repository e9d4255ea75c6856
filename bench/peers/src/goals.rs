//! Where prombus has to be: how many times better than whom, and what it may cost at most.

use super::figures::Figures;
use Against::{AtMost, Times};

/// What one figure of prombus is held against.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Goal {
    pub(crate) row: &'static str,
    pub(crate) metric: &'static str,
    pub(crate) of: &'static str,
    pub(crate) against: Against,
}

/// A peer, or a number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Against {
    /// So many times as good as this peer, or as this limit of the machine.
    Times(f64, &'static str),
    /// No more than this.
    AtMost(f64),
}

const FSYNC: &str = "prombus fsync";
const OS: &str = "prombus os";
const JETSTREAM: &str = "jetstream default";
const JETSTREAM_ALWAYS: &str = "jetstream always";
const REDIS: &str = "redis everysec";
const REDIS_ALWAYS: &str = "redis always";

/// All goals, by row.
const GOALS: &[Goal] = &[
    goal("a", "", FSYNC, Times(3.0, JETSTREAM)),
    goal("a", "", FSYNC, Times(60.0, JETSTREAM_ALWAYS)),
    goal("a", "", FSYNC, Times(2.5, REDIS_ALWAYS)),
    goal("a", "", OS, Times(5.0, JETSTREAM)),
    goal("a", "", OS, Times(1.7, REDIS)),
    goal("b", "p50", FSYNC, Times(1.0, REDIS_ALWAYS)),
    goal("b", "p50", OS, Times(1.0, JETSTREAM)),
    goal("c", "", FSYNC, Times(3.0, JETSTREAM)),
    goal("c", "", FSYNC, Times(2.0, REDIS_ALWAYS)),
    goal("c", "", OS, Times(3.0, JETSTREAM)),
    goal("d", "", FSYNC, Times(3.0, JETSTREAM)),
    goal("d", "", FSYNC, Times(2.5, REDIS)),
    goal("e", "p99", FSYNC, Times(1.0, REDIS_ALWAYS)),
    goal("e", "p99.9", FSYNC, Times(1.0, REDIS_ALWAYS)),
    goal("e", "p50", OS, Times(1.0, JETSTREAM)),
    goal("e", "p99", OS, Times(1.0, JETSTREAM)),
    goal("e", "p99.9", OS, Times(1.0, JETSTREAM)),
    goal("f", "", FSYNC, Times(2.0, JETSTREAM)),
    goal("g", "", FSYNC, Times(6.0, JETSTREAM)),
    goal("g", "", FSYNC, Times(6.0, REDIS)),
    goal("h", "memory", FSYNC, Times(1.0, JETSTREAM)),
    goal("h", "disk", FSYNC, AtMost(1.3 * 256.0 + 100.0)),
    goal("i", "1 million", FSYNC, Times(1.0, JETSTREAM)),
    goal("i", "10 million", FSYNC, AtMost(2_000.0)),
    goal("l", "p99", FSYNC, Times(1.0, REDIS_ALWAYS)),
    goal("l", "p99.9", FSYNC, Times(1.0, REDIS_ALWAYS)),
    goal("l", "p99", OS, Times(1.0, JETSTREAM)),
    goal("l", "p99.9", OS, Times(1.0, JETSTREAM)),
];

const fn goal(row: &'static str, metric: &'static str, of: &'static str, against: Against) -> Goal {
    Goal {
        row,
        metric,
        of,
        against,
    }
}

/// The goals with what was reached, where everything that a goal needs was measured in this run.
pub(crate) fn reached(figures: &Figures) -> Vec<(Goal, f64, bool)> {
    let reached = |goal: &Goal| match goal.against {
        Times(times, over) => {
            let ratio = figures
                .ratio(goal.row, goal.metric, goal.of, over)
                .ok()?
                .ratios
                .median();
            Some((*goal, ratio, ratio >= times))
        }
        AtMost(most) => {
            let median = figures.find(goal.row, goal.metric, goal.of)?.runs.median();
            Some((*goal, median, median <= most))
        }
    };
    GOALS.iter().filter_map(reached).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{ROWS, Row};
    use crate::systems::Flavour;

    #[test]
    fn goals_are_about_what_is_measured() {
        for goal in GOALS {
            let has_metric = |row: &&&dyn Row| {
                row.metrics()
                    .iter()
                    .any(|metric| metric.name == goal.metric)
            };
            let mut rows = ROWS.iter().filter(|row| row.name() == goal.row);
            let row = rows.find(has_metric).unwrap();
            let is_there = |system: &str| {
                row.flavours()
                    .iter()
                    .any(|flavour: &Flavour| flavour.name() == system)
            };
            assert!(is_there(goal.of), "{goal:?}");
            if let Times(_, over) = goal.against {
                assert!(is_there(over), "{goal:?}");
            }
        }
    }
}
