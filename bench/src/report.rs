//! The figures as a table for people and as JSON for programs.

use crate::sampling::Samples;
pub(crate) use prombus_bench::with_commas;
use serde_json::{Value, json};
use std::fmt::Write;

/// One figure of a row, possibly beside another one.
#[derive(Debug)]
pub(crate) struct Line {
    /// The row it belongs to; filled in by whoever runs the row.
    pub(crate) row: &'static str,
    pub(crate) what: String,
    pub(crate) unit: Unit,
    pub(crate) measured: Samples,
    pub(crate) beside: Option<Beside>,
    pub(crate) goal: Option<Goal>,
}

/// What a figure is compared with.
#[derive(Debug)]
pub(crate) struct Beside {
    pub(crate) what: String,
    pub(crate) samples: Samples,
}

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    EventsPerSecond,
    BytesPerSecond,
    NanosPerEvent,
    Millis,
    Bytes,
    /// As many times something.
    Times,
}

/// What a figure, or its ratio to what it is beside, is meant to reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
    RatioAtLeast(f64),
    RatioAtMost(f64),
}

impl Line {
    /// A figure that stands for itself.
    pub(crate) fn new(what: impl Into<String>, unit: Unit, measured: Samples) -> Self {
        Self {
            row: "",
            what: what.into(),
            unit,
            measured,
            beside: None,
            goal: None,
        }
    }

    /// Puts it beside another figure of the same unit, taken in turns with it.
    pub(crate) fn beside(mut self, what: impl Into<String>, samples: Samples) -> Self {
        let what = what.into();
        self.beside = Some(Beside { what, samples });
        self
    }

    pub(crate) fn goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self
    }

    fn ratios(&self) -> Option<Samples> {
        Some(self.measured.ratios(&self.beside.as_ref()?.samples))
    }

    /// Whether the goal is reached; `None` where there is none.
    fn is_met(&self) -> Option<bool> {
        let ratio = self.ratios().map_or(f64::NAN, |ratios| ratios.median());
        Some(match self.goal? {
            Goal::AtLeast(goal) => self.measured.median() >= goal,
            Goal::AtMost(goal) => self.measured.median() <= goal,
            Goal::RatioAtLeast(goal) => ratio >= goal,
            Goal::RatioAtMost(goal) => ratio <= goal,
        })
    }

    fn cells(&self) -> [String; 8] {
        let spread = |samples: &Samples, format: &dyn Fn(f64) -> String| {
            format!(
                "{}..{}",
                format(samples.lowest()),
                format(samples.highest())
            )
        };
        let ratios = self.ratios();
        [
            self.row.to_owned(),
            self.what.clone(),
            self.unit.format(self.measured.median()),
            self.beside.as_ref().map_or(String::new(), |beside| {
                let figure = self.unit.format(beside.samples.median());
                format!("{figure} {}", beside.what)
            }),
            ratios
                .as_ref()
                .map_or(String::new(), |ratios| spell_ratio(ratios.median())),
            match &ratios {
                Some(ratios) => spread(ratios, &spell_ratio),
                None => spread(&self.measured, &|value| self.unit.format(value)),
            },
            self.goal
                .map_or(String::new(), |goal| goal.format(self.unit)),
            match self.is_met() {
                Some(true) => "met".into(),
                Some(false) => "MISSED".into(),
                None => String::new(),
            },
        ]
    }

    fn to_json(&self) -> Value {
        json!({
            "row": self.row,
            "what": self.what,
            "unit": self.unit.name(),
            "median": self.measured.median(),
            "samples": self.measured,
            "beside": self.beside.as_ref().map(|beside| json!({
                "what": beside.what,
                "median": beside.samples.median(),
                "samples": beside.samples,
            })),
            "ratio": self.ratios().map(|ratios| ratios.median()),
            "goal": self.goal.map(|goal| goal.format(self.unit)),
            "met": self.is_met(),
        })
    }
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::EventsPerSecond => "events/s",
            Self::BytesPerSecond => "bytes/s",
            Self::NanosPerEvent => "ns/event",
            Self::Millis => "ms",
            Self::Bytes => "bytes",
            Self::Times => "x",
        }
    }

    fn format(self, value: f64) -> String {
        match self {
            Self::EventsPerSecond => format!("{}/s", with_commas(value)),
            Self::BytesPerSecond => format!("{:.2} GB/s", value / 1e9),
            Self::NanosPerEvent => format!("{} ns", with_commas(value)),
            Self::Millis => format!("{} ms", with_commas(value)),
            Self::Bytes => format!("{:.1} MB", value / 1e6),
            Self::Times => format!("{value:.2} x"),
        }
    }
}

impl Goal {
    fn format(self, unit: Unit) -> String {
        match self {
            Self::AtLeast(value) => format!(">= {}", unit.format(value)),
            Self::AtMost(value) => format!("<= {}", unit.format(value)),
            Self::RatioAtLeast(ratio) => format!("ratio >= {}", spell_ratio(ratio)),
            Self::RatioAtMost(ratio) => format!("ratio <= {}", spell_ratio(ratio)),
        }
    }
}

/// The lines as a table, with each column as wide as it has to be.
pub(crate) fn to_table(lines: &[Line]) -> String {
    const HEAD: [&str; 8] = [
        "row", "what", "measured", "beside", "ratio", "spread", "goal", "",
    ];
    let rows: Vec<[String; 8]> = std::iter::once(HEAD.map(str::to_owned))
        .chain(lines.iter().map(Line::cells))
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..HEAD.len())
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let mut table = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            // Writing to a string does not fail.
            let _ = write!(line, "{cell:<width$}  ");
        }
        table.push_str(line.trim_end());
        table.push('\n');
    }
    table
}

/// The lines with every sample.
pub(crate) fn to_json(lines: &[Line]) -> Value {
    json!({ "lines": lines.iter().map(Line::to_json).collect::<Vec<_>>() })
}

fn spell_ratio(ratio: f64) -> String {
    format!("{ratio:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(list: &[f64]) -> Samples {
        list.iter().copied().collect()
    }

    fn line(goal: Goal) -> Line {
        Line::new("append", Unit::EventsPerSecond, samples(&[500.0, 700.0]))
            .beside("plain", samples(&[1000.0, 1000.0]))
            .goal(goal)
    }

    #[test]
    fn goals_are_about_the_figure_or_its_ratio() {
        for (goal, is_met) in [
            (Goal::AtLeast(600.0), true),
            (Goal::AtLeast(601.0), false),
            (Goal::AtMost(600.0), true),
            (Goal::AtMost(599.0), false),
            (Goal::RatioAtLeast(0.6), true),
            (Goal::RatioAtLeast(0.61), false),
            (Goal::RatioAtMost(0.6), true),
            (Goal::RatioAtMost(0.59), false),
        ] {
            assert_eq!(line(goal).is_met(), Some(is_met), "{goal:?}");
        }
        let alone = Line::new("open", Unit::Millis, samples(&[1.0]));
        assert_eq!(alone.is_met(), None);
        // Without anything to compare with, no goal for the ratio is reached.
        assert_eq!(alone.goal(Goal::RatioAtMost(2.0)).is_met(), Some(false));
    }

    #[test]
    fn the_table_has_a_line_each_and_says_what_was_missed() {
        let table = to_table(&[line(Goal::AtLeast(1.0)), line(Goal::AtLeast(9e9))]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].ends_with("met"), "{table}");
        assert!(lines[2].ends_with("MISSED"), "{table}");
        assert!(lines[1].contains("1,000/s plain"), "{table}");
        assert!(lines[1].contains("0.50..0.70"), "{table}");
    }

    #[test]
    fn json_holds_every_sample() {
        let json = to_json(&[line(Goal::RatioAtLeast(0.6))]);
        assert_eq!(json["lines"][0]["samples"], json!([500.0, 700.0]));
        assert_eq!(
            json["lines"][0]["beside"]["samples"],
            json!([1000.0, 1000.0])
        );
        assert_eq!(json["lines"][0]["met"], json!(true));
    }

    #[test]
    fn numbers_are_spelt_in_groups_of_three() {
        assert_eq!(with_commas(0.4), "0");
        assert_eq!(with_commas(999.0), "999");
        assert_eq!(with_commas(1_234_567.0), "1,234,567");
        assert_eq!(with_commas(-123_456.0), "-123,456");
    }
}
