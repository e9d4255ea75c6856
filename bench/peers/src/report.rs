//! The run as tables for people and as JSON for programs.

use super::figures::Figures;
use super::goals::{Against, reached};
use super::machine::Machine;
use super::rows::Metric;
use prombus_bench::with_commas;
use serde_json::{Value, json};
use std::fmt::Write;

/// The figures, the ratios and the goals, one table each.
pub(crate) fn to_tables(figures: &Figures, machine: &Machine) -> String {
    let mut text = format!("{machine}\n\n");
    text.push_str(&columns(figure_lines(figures)));
    text.push_str("\nprombus over its peers; above 1 prombus is better\n");
    text.push_str(&columns(ratio_lines(figures)));
    text.push_str("\ngoals\n");
    text.push_str(&columns(goal_lines(figures)));
    text
}

/// Every run and every ratio.
pub(crate) fn to_json(figures: &Figures, machine: &Machine) -> Value {
    let rows = figures.list().iter().map(|figure| {
        json!({
            "row": figure.row,
            "metric": figure.metric.name,
            "system": figure.system,
            "unit": figure.metric.unit,
            "median": figure.runs.median(),
            "runs": figure.runs,
        })
    });
    let ratios = figures.ratios();
    let ratios = ratios.iter().map(|ratio| {
        json!({
            "row": ratio.row,
            "metric": ratio.metric.name,
            "of": ratio.of,
            "over": ratio.over,
            "ratio": ratio.ratios.median(),
        })
    });
    json!({
        "machine": machine,
        "rows": rows.collect::<Vec<_>>(),
        "ratios": ratios.collect::<Vec<_>>(),
    })
}

/// A figure with its unit.
pub(crate) fn format(metric: Metric, value: f64) -> String {
    if value.abs() < 100.0 {
        format!("{value:.3} {}", metric.unit)
    } else {
        format!("{} {}", with_commas(value), metric.unit)
    }
}

fn figure_lines(figures: &Figures) -> Vec<Vec<String>> {
    let mut lines = vec![
        ["row", "", "system", "median", "spread"]
            .map(str::to_owned)
            .to_vec(),
    ];
    lines.extend(figures.list().iter().map(|figure| {
        let format = |value| format(figure.metric, value);
        vec![
            figure.row.to_owned(),
            figure.metric.name.to_owned(),
            figure.system.to_owned(),
            format(figure.runs.median()),
            format!(
                "{} .. {}",
                format(figure.runs.lowest()),
                format(figure.runs.highest())
            ),
        ]
    }));
    lines
}

fn ratio_lines(figures: &Figures) -> Vec<Vec<String>> {
    let mut lines = vec![
        ["row", "", "of", "over", "ratio", "spread"]
            .map(str::to_owned)
            .to_vec(),
    ];
    lines.extend(figures.ratios().iter().map(|ratio| {
        vec![
            ratio.row.to_owned(),
            ratio.metric.name.to_owned(),
            ratio.of.to_owned(),
            ratio.over.to_owned(),
            format!("{:.2}", ratio.ratios.median()),
            format!(
                "{:.2} .. {:.2}",
                ratio.ratios.lowest(),
                ratio.ratios.highest()
            ),
        ]
    }));
    lines
}

fn goal_lines(figures: &Figures) -> Vec<Vec<String>> {
    let line = |(goal, value, is_met): (super::goals::Goal, f64, bool)| {
        let wanted = match goal.against {
            Against::Times(times, over) => format!("{times} x {over}"),
            Against::AtMost(most) => format!("at most {most:.0}"),
        };
        let verdict = if is_met { "met" } else { "MISSED" };
        [
            goal.row,
            goal.metric,
            goal.of,
            &wanted,
            &format!("{value:.2}"),
            verdict,
        ]
        .map(str::to_owned)
        .to_vec()
    };
    reached(figures).into_iter().map(line).collect()
}

/// Lines of cells, with each column as wide as it has to be.
fn columns(lines: Vec<Vec<String>>) -> String {
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..lines.iter().map(Vec::len).max().unwrap_or(0))
        .map(width)
        .collect();
    let mut text = String::new();
    for line in &lines {
        let mut encoded = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            // Writing to a string does not fail.
            let _ = write!(encoded, "{cell:<width$}  ");
        }
        text.push_str(encoded.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured() -> Figures {
        let rate = Metric {
            name: "",
            unit: "msgs/s",
            is_lower_better: false,
        };
        let mut figures = Figures::default();
        for value in [300_000.0, 350_000.0, 310_000.0] {
            figures
                .add("a", "prombus fsync", &[rate], &[value])
                .unwrap();
            figures
                .add("a", "jetstream default", &[rate], &[100_000.0])
                .unwrap();
        }
        figures
    }

    #[test]
    fn json_has_the_shape_that_programs_read() {
        let json = to_json(&measured(), &Machine::default());
        assert_eq!(json["rows"][0]["row"], "a");
        assert_eq!(json["rows"][0]["system"], "prombus fsync");
        assert_eq!(json["rows"][0]["unit"], "msgs/s");
        assert_eq!(json["rows"][0]["median"], 310_000.0);
        assert_eq!(
            json["rows"][0]["runs"],
            json!([300_000.0, 350_000.0, 310_000.0])
        );
        let ratio = json!({"row": "a", "metric": "", "of": "prombus fsync", "over": "jetstream default", "ratio": 3.1});
        assert_eq!(json["ratios"], json!([ratio]));
        assert!(json["machine"].is_object());
    }

    #[test]
    fn tables_show_figures_ratios_and_goals() {
        let text = to_tables(&measured(), &Machine::default());
        assert!(text.contains("310,000 msgs/s"), "{text}");
        assert!(text.contains("3.10   3.00 .. 3.50"), "{text}");
        assert!(text.contains("3 x jetstream default"), "{text}");
        assert!(text.lines().last().unwrap().ends_with("met"), "{text}");
    }
}
