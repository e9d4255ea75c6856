//! What was measured in this run, and the ratios between systems. A ratio exists only where both sides were measured
//! here, in turns.

use super::rows::{Metric, ROWS};
use super::systems::Flavour;
use crate::Outcome;
use crate::sampling::Samples;

/// One figure of one system.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub(crate) row: &'static str,
    pub(crate) metric: Metric,
    pub(crate) system: &'static str,
    pub(crate) runs: Samples,
}

/// How much better one system is than another: above 1 it is better, whether high or low figures are good.
#[derive(Debug, Clone)]
pub(crate) struct Ratio {
    pub(crate) row: &'static str,
    pub(crate) metric: Metric,
    pub(crate) of: &'static str,
    pub(crate) over: &'static str,
    pub(crate) ratios: Samples,
}

/// All figures of this run.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    list: Vec<Figure>,
}

impl Figures {
    /// Adds what one measurement of a row came to.
    pub(crate) fn add(
        &mut self,
        row: &'static str,
        system: &'static str,
        metrics: &[Metric],
        values: &[f64],
    ) -> Outcome<()> {
        if metrics.len() != values.len() {
            return Err(format!("row {row} came to {} figures", values.len()).into());
        }
        for (metric, value) in metrics.iter().zip(values) {
            match self
                .list
                .iter_mut()
                .find(|found| found.is(row, metric.name, system))
            {
                Some(figure) => figure.runs.push(*value),
                None => self.list.push(Figure {
                    row,
                    metric: *metric,
                    system,
                    runs: [*value].into_iter().collect(),
                }),
            }
        }
        Ok(())
    }

    /// Puts them into the order of the rows, their metrics and the systems, whichever was measured first.
    pub(crate) fn arrange(&mut self) {
        let metrics = || {
            ROWS.iter().flat_map(|row| {
                let name = row.name();
                row.metrics().iter().map(move |metric| (name, *metric))
            })
        };
        let place = |figure: &Figure| {
            let metric = metrics().position(|found| found == (figure.row, figure.metric));
            let system = Flavour::ALL
                .iter()
                .position(|flavour| flavour.name() == figure.system);
            // What is no row of a system stays behind those.
            (metric.unwrap_or(usize::MAX), system)
        };
        self.list.sort_by_key(place);
    }

    pub(crate) fn list(&self) -> &[Figure] {
        &self.list
    }

    pub(crate) fn find(&self, row: &str, metric: &str, system: &str) -> Option<&Figure> {
        self.list.iter().find(|found| found.is(row, metric, system))
    }

    /// One system by another. It is refused where one of them was not measured in this run, or not as often.
    pub(crate) fn ratio(&self, row: &str, metric: &str, of: &str, over: &str) -> Outcome<Ratio> {
        let side = |system: &str| {
            let found = self.find(row, metric, system);
            found.ok_or_else(|| format!("row {row}: {system} was not measured in this run"))
        };
        let (one, other) = (side(of)?, side(over)?);
        if one.runs.len() != other.runs.len() {
            return Err(format!("row {row}: {of} and {over} were not measured in turns").into());
        }
        let ratios = if one.metric.is_lower_better {
            other.runs.ratios(&one.runs)
        } else {
            one.runs.ratios(&other.runs)
        };
        Ok(Ratio {
            row: one.row,
            metric: one.metric,
            of: one.system,
            over: other.system,
            ratios,
        })
    }

    /// prombus by each peer, wherever both were measured.
    pub(crate) fn ratios(&self) -> Vec<Ratio> {
        let is_ours = |figure: &&Figure| figure.flavour().is_some_and(Flavour::is_prombus);
        let is_peer = |figure: &&Figure| {
            figure
                .flavour()
                .is_some_and(|flavour| !flavour.is_prombus())
        };
        let ours = self.list.iter().filter(is_ours);
        let pairs = ours.flat_map(|one| {
            self.list
                .iter()
                .filter(is_peer)
                .map(move |other| (one, other))
        });
        let pairs = pairs.filter(|(one, other)| one.row == other.row && one.metric == other.metric);
        pairs
            .filter_map(|(one, other)| {
                self.ratio(one.row, one.metric.name, one.system, other.system)
                    .ok()
            })
            .collect()
    }
}

impl Figure {
    fn is(&self, row: &str, metric: &str, system: &str) -> bool {
        self.row == row && self.metric.name == metric && self.system == system
    }

    /// The system; a limit of the machine is none.
    fn flavour(&self) -> Option<Flavour> {
        Flavour::ALL
            .into_iter()
            .find(|flavour| flavour.name() == self.system)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Metric = Metric {
        name: "",
        unit: "msgs/s",
        is_lower_better: false,
    };
    const MILLIS: Metric = Metric {
        name: "p50",
        unit: "ms",
        is_lower_better: true,
    };

    fn figures(rows: &[(&'static str, &'static str, Metric, f64)]) -> Figures {
        let mut figures = Figures::default();
        for (row, system, metric, value) in rows {
            figures.add(row, system, &[*metric], &[*value]).unwrap();
        }
        figures
    }

    #[test]
    fn above_one_means_better_for_rates_and_for_costs() {
        let figures = figures(&[
            ("a", "prombus fsync", RATE, 300.0),
            ("a", "redis always", RATE, 100.0),
            ("b", "prombus fsync", MILLIS, 1.0),
            ("b", "redis always", MILLIS, 4.0),
        ]);
        let found: Vec<(&str, f64)> = figures
            .ratios()
            .iter()
            .map(|ratio| (ratio.row, ratio.ratios.median()))
            .collect();
        assert_eq!(found, [("a", 3.0), ("b", 4.0)]);
    }

    #[test]
    fn a_side_that_did_not_run_has_no_ratio() {
        let mut figures = figures(&[
            ("a", "prombus fsync", RATE, 300.0),
            ("d", "redis always", RATE, 100.0),
        ]);
        assert!(figures.ratios().is_empty());
        let refused = figures
            .ratio("a", "", "prombus fsync", "redis always")
            .unwrap_err()
            .to_string();
        assert_eq!(refused, "row a: redis always was not measured in this run");
        figures.add("a", "redis always", &[RATE], &[1.0]).unwrap();
        figures.add("a", "redis always", &[RATE], &[1.0]).unwrap();
        let refused = figures
            .ratio("a", "", "prombus fsync", "redis always")
            .unwrap_err()
            .to_string();
        assert!(refused.ends_with("were not measured in turns"), "{refused}");
    }

    #[test]
    fn figures_are_in_the_order_of_the_table() {
        let cost = |name| Metric {
            name,
            unit: "ms",
            is_lower_better: true,
        };
        let mut figures = figures(&[
            ("limits", "machine", RATE, 1.0),
            ("b", "redis always", cost("p99"), 1.0),
            ("b", "redis always", cost("p50"), 1.0),
            ("b", "prombus os", cost("p99"), 1.0),
            ("a", "redis always", RATE, 1.0),
        ]);
        figures.arrange();
        let order = figures
            .list()
            .iter()
            .map(|figure| (figure.row, figure.metric.name, figure.system));
        let expected = [
            ("a", "", "redis always"),
            ("b", "p50", "redis always"),
            ("b", "p99", "prombus os"),
            ("b", "p99", "redis always"),
            ("limits", "", "machine"),
        ];
        assert_eq!(order.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_row_that_comes_to_something_else_is_refused() {
        assert!(
            Figures::default()
                .add("a", "prombus os", &[RATE], &[])
                .is_err()
        );
    }
}
