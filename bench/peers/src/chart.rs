//! The ratios as a picture for a page: one bar for each, on a scale on which twice as good and half as good are equally
//! far from the line in the middle.

use super::figures::{Figures, Ratio};
use std::fmt::Write;

const WIDTH: f64 = 860.0;
const LABEL_WIDTH: f64 = 400.0;
const LINE_HEIGHT: f64 = 22.0;
const BAR_HEIGHT: f64 = 14.0;
const HEAD_HEIGHT: f64 = 58.0;
const FOOT_HEIGHT: f64 = 24.0;
/// Room for the number behind a bar.
const NUMBER_WIDTH: f64 = 60.0;

/// Draws the ratios of these rows.
pub(crate) fn to_svg(figures: &Figures, caption: &str) -> String {
    let ratios = figures.ratios();
    let height = HEAD_HEIGHT + LINE_HEIGHT * ratios.len() as f64 + FOOT_HEIGHT;
    let scale = Scale::of(&ratios);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"system-ui, sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"12\" y=\"24\" font-size=\"16\" font-weight=\"600\" fill=\"#111\">prombus beside its peers: how many times as good</text>\n\
         <text x=\"12\" y=\"44\" fill=\"#555\">{}</text>\n",
        escape(caption)
    );
    for (ratio, line) in ratios.iter().zip(0_u32..) {
        draw(
            &mut svg,
            ratio,
            HEAD_HEIGHT + LINE_HEIGHT * f64::from(line),
            &scale,
        );
    }
    let (line, bottom) = (scale.place(1.0), height - FOOT_HEIGHT);
    // Writing to a string does not fail.
    let _ = writeln!(
        svg,
        "<line x1=\"{line:.1}\" y1=\"{HEAD_HEIGHT}\" x2=\"{line:.1}\" y2=\"{bottom}\" stroke=\"#111\"/>\n\
         <text x=\"{line:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#111\">1</text>\n</svg>",
        bottom + 16.0
    );
    svg
}

fn draw(svg: &mut String, ratio: &Ratio, top: f64, scale: &Scale) {
    let value = ratio.ratios.median();
    let (from, to) = (
        scale.place(1.0_f64.min(value)),
        scale.place(1.0_f64.max(value)),
    );
    let colour = if value >= 1.0 { "#2a7f62" } else { "#c0562f" };
    let middle = top + BAR_HEIGHT - 3.0;
    let label = format!(
        "({}) {} {} / {}",
        ratio.row, ratio.metric.name, ratio.of, ratio.over
    );
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{middle:.1}\" text-anchor=\"end\" fill=\"#333\">{}</text>\n\
         <rect x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{BAR_HEIGHT}\" fill=\"{colour}\"/>\n\
         <text x=\"{:.1}\" y=\"{middle:.1}\" fill=\"#333\">{value:.1}</text>",
        LABEL_WIDTH - 8.0,
        escape(&label),
        (to - from).max(1.0),
        to + 5.0
    );
}

/// From the smallest to the largest ratio, by their logarithms.
struct Scale {
    lowest: f64,
    highest: f64,
}

impl Scale {
    fn of(ratios: &[Ratio]) -> Self {
        let logarithms = || {
            ratios
                .iter()
                .map(|ratio| ratio.ratios.median().ln())
                .filter(|value| value.is_finite())
        };
        Self {
            lowest: logarithms().fold(0.0, f64::min),
            highest: logarithms().fold(f64::EPSILON, f64::max),
        }
    }

    fn place(&self, ratio: f64) -> f64 {
        let share = (ratio.ln() - self.lowest) / (self.highest - self.lowest);
        LABEL_WIDTH + (WIDTH - LABEL_WIDTH - NUMBER_WIDTH) * share.clamp(0.0, 1.0)
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Metric;

    #[test]
    fn bars_grow_away_from_one() {
        let rate = Metric {
            name: "",
            unit: "msgs/s",
            is_lower_better: false,
        };
        let mut figures = Figures::default();
        for (system, value) in [
            ("prombus fsync", 200.0),
            ("redis always", 100.0),
            ("redis everysec", 400.0),
        ] {
            figures.add("a", system, &[rate], &[value]).unwrap();
        }
        let svg = to_svg(&figures, "2 cores <of something>");
        assert_eq!(svg.matches("<rect x=").count(), 2);
        assert_eq!(
            (
                svg.matches("#2a7f62").count(),
                svg.matches("#c0562f").count()
            ),
            (1, 1)
        );
        assert!(
            svg.contains(">2.0</text>") && svg.contains(">0.5</text>"),
            "{svg}"
        );
        assert!(svg.contains("&lt;of something&gt;"), "{svg}");
        // Twice as good and half as good are equally wide.
        let width = format!(
            "width=\"{:.1}\" height=\"{BAR_HEIGHT}\"",
            (WIDTH - LABEL_WIDTH - NUMBER_WIDTH) / 2.0
        );
        assert_eq!(svg.matches(&width).count(), 2, "{svg}");
    }
}
