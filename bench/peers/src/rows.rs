//! The rows of the table: each measures one thing, the same way for every system.

mod consume;
mod fan_out;
mod footprint;
mod idle;
mod latency;
mod mixed;
mod publish;
mod replay;
mod singly;
mod start_up;
mod sustained;

use super::stage::Stage;
use super::systems::{Flavour, Pending};
use crate::disk_probe::per_mille;

/// Something that is measured for each system in turn.
pub(crate) trait Row: Sync {
    /// The letter that it is chosen by.
    fn name(&self) -> &'static str;

    /// What it measures.
    fn what(&self) -> &'static str;

    /// The figures that a measurement comes to, in their order.
    fn metrics(&self) -> &'static [Metric];

    /// The systems that take part.
    fn flavours(&self) -> &'static [Flavour] {
        &Flavour::ALL
    }

    /// Whether its worst cases are those of the disk, so that the machine's own sync is measured beside it.
    fn waits_for_the_disk(&self) -> bool {
        false
    }

    /// What has to be there before it can be measured.
    fn prepare<'a>(&'a self, _: &'a mut Stage) -> Pending<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Measures once. `round` is different each time.
    fn measure<'a>(&'a self, stage: &'a mut Stage, round: usize) -> Pending<'a, Vec<f64>>;
}

/// One figure of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Metric {
    /// Which of several; empty where there is only one.
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) is_lower_better: bool,
}

impl Metric {
    const fn rate(name: &'static str) -> Self {
        Self {
            name,
            unit: "msgs/s",
            is_lower_better: false,
        }
    }

    pub(crate) const fn cost(name: &'static str, unit: &'static str) -> Self {
        Self {
            name,
            unit,
            is_lower_better: true,
        }
    }
}

/// In the order of the table. What is started with a million and with ten million events is one row to its readers.
pub(crate) const ROWS: &[&dyn Row] = &[
    &publish::OneConnection,
    &singly::Singly,
    &publish::ManyConnections,
    &consume::Consume,
    &latency::Latency,
    &fan_out::FanOut,
    &replay::Replay,
    &footprint::Footprint,
    &start_up::StartUp(0),
    &start_up::StartUp(1),
    &idle::Idle,
    &mixed::Mixed,
    &sustained::Sustained,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_names_of_their_own() {
        let metrics = |row: &&dyn Row| {
            row.metrics()
                .iter()
                .map(|metric| (row.name(), metric.name))
                .collect::<Vec<_>>()
        };
        let mut names: Vec<(&str, &str)> = ROWS.iter().flat_map(metrics).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
