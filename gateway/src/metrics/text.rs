//! The text format of Prometheus, version 0.0.4: a `HELP` and a `TYPE` line for each metric, then a line per sample.
//!
//! Every metric is written twice: under the name of the contract with durations in milliseconds, and as `prombus_…` with
//! durations in seconds, as Prometheus recommends.
//!
//! Why not a library: `prometheus-client` would replace `head`, `line` and `escape`, about 60 lines, with three crates
//! more. It writes each metric under one name and in one unit, so every counter would have to be kept twice.

use super::values::{HISTOGRAM_BOUNDS_MICROS, HISTOGRAM_BOUNDS_MS, Histogram, Ratio};
use std::fmt::{Display, Write};

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Labels with their values as they are written between the braces. A series has many lines with the same ones, so they
/// are escaped once.
#[derive(Debug, Clone, Default)]
pub(super) struct Labels(String);

/// Which names and units are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// As the contract has them: no prefix, milliseconds.
    Contract,
    /// With the prefix `prombus_`, in seconds.
    Prefixed,
}

/// The text as far as it is written.
pub(super) struct Text {
    text: String,
    naming: Naming,
    /// The name of the metric whose samples are being written.
    name: String,
    /// The bounds of histograms that are shown, each with its place among those that are counted.
    bounds: Vec<(usize, String)>,
}

impl Labels {
    pub(super) fn new(labels: &[(&str, &str)]) -> Self {
        let mut text = String::new();
        for (at, (label, value)) in labels.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(label);
            text.push_str("=\"");
            escape(&mut text, value, true);
            text.push('"');
        }
        Self(text)
    }
}

impl Text {
    pub(super) fn new() -> Self {
        let mut text = Self {
            text: String::new(),
            naming: Naming::Contract,
            name: String::new(),
            bounds: Vec::new(),
        };
        text.set_naming(Naming::Contract);
        text
    }

    /// Writes other names and units from now on.
    pub(super) fn set_naming(&mut self, naming: Naming) {
        self.naming = naming;
        let bounds = HISTOGRAM_BOUNDS_MICROS.iter().enumerate();
        let is_shown = |micros: u64| {
            naming == Naming::Prefixed || HISTOGRAM_BOUNDS_MS.iter().any(|ms| ms * 1_000 == micros)
        };
        self.bounds = bounds
            .filter(|(_, micros)| is_shown(**micros))
            .map(|(at, micros)| (at, self.duration(*micros).to_string()))
            .collect();
        let all = (HISTOGRAM_BOUNDS_MICROS.len(), "+Inf".to_owned());
        self.bounds.push(all);
    }

    /// Begins a metric. Its samples follow at once.
    pub(super) fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.name = match (self.naming, name.strip_suffix("_ms")) {
            (Naming::Contract, _) => name.to_owned(),
            (Naming::Prefixed, Some(stem)) => format!("prombus_{stem}_seconds"),
            (Naming::Prefixed, None) => format!("prombus_{name}"),
        };
        let text = &mut self.text;
        text.push_str("# HELP ");
        text.push_str(&self.name);
        text.push(' ');
        escape(text, help, false);
        text.push_str("\n# TYPE ");
        text.push_str(&self.name);
        text.push(' ');
        text.push_str(kind);
        text.push('\n');
    }

    pub(super) fn sample(&mut self, labels: &Labels, value: impl Display) {
        self.line("", labels, None, value);
    }

    /// A gauge of milliseconds.
    pub(super) fn duration_gauge(&mut self, labels: &Labels, ms: i64) {
        self.micros_gauge(labels, u64::try_from(ms).unwrap_or(0).saturating_mul(1_000));
    }

    /// The same for what is known more exactly.
    pub(super) fn micros_gauge(&mut self, labels: &Labels, micros: u64) {
        let duration = self.duration(micros);
        self.sample(labels, duration);
    }

    pub(super) fn histogram(&mut self, labels: &Labels, histogram: &Histogram) {
        let counts = histogram.cumulative();
        let bounds = std::mem::take(&mut self.bounds);
        for (at, bound) in &bounds {
            self.line("_bucket", labels, Some(bound), counts[*at]);
        }
        self.bounds = bounds;
        let sum = self.duration(histogram.sum_micros());
        self.line("_sum", labels, None, sum);
        self.line(
            "_count",
            labels,
            None,
            counts[HISTOGRAM_BOUNDS_MICROS.len()],
        );
    }

    pub(super) fn ratio(&mut self, ratio: &Ratio) {
        let sum = self.duration(ratio.sum_micros());
        self.line("_sum", &Labels::default(), None, sum);
        self.line("_count", &Labels::default(), None, ratio.count());
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    fn duration(&self, micros: u64) -> Duration {
        match self.naming {
            Naming::Contract => Duration::Millis(micros),
            Naming::Prefixed => Duration::Seconds(micros),
        }
    }

    fn line(&mut self, suffix: &str, labels: &Labels, bound: Option<&str>, value: impl Display) {
        let text = &mut self.text;
        text.push_str(&self.name);
        text.push_str(suffix);
        if !labels.0.is_empty() || bound.is_some() {
            text.push('{');
            text.push_str(&labels.0);
            if let Some(bound) = bound {
                if !labels.0.is_empty() {
                    text.push(',');
                }
                text.push_str("le=\"");
                text.push_str(bound);
                text.push('"');
            }
            text.push('}');
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, " {value}");
    }
}

/// In help, quotes are not escaped.
fn escape(out: &mut String, text: &str, is_quoted: bool) {
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if is_quoted => out.push_str("\\\""),
            character => out.push(character),
        }
    }
}

/// Microseconds, written in another unit without rounding.
#[derive(Clone, Copy)]
enum Duration {
    Millis(u64),
    Seconds(u64),
}

impl Display for Duration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, rest, digits) = match *self {
            Self::Millis(micros) => (micros / 1_000, micros % 1_000, 3),
            Self::Seconds(micros) => (micros / 1_000_000, micros % 1_000_000, 6),
        };
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let rest = format!("{rest:0digits$}");
        match self {
            Self::Millis(_) => write!(f, "{whole}.{rest}"),
            Self::Seconds(_) => write!(f, "{whole}.{}", rest.trim_end_matches('0')),
        }
    }
}
