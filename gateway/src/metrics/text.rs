//! The text format of Prometheus, version 0.0.4: a `HELP` and a `TYPE` line for each metric, then a line per sample.
//!
//! Every metric is written twice: under the name of the contract with durations in milliseconds, and as `prombus_…` with
//! durations in seconds, as Prometheus recommends.

use super::values::{HISTOGRAM_BOUNDS_MS, Histogram, Ratio};
use std::fmt::{Display, Write};

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Labels with their values.
type Labels<'a> = [(&'a str, &'a str)];

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
    pub(super) naming: Naming,
}

impl Text {
    pub(super) fn new() -> Self {
        Self {
            text: String::new(),
            naming: Naming::Contract,
        }
    }

    /// Begins a metric. Its samples follow at once.
    pub(super) fn head(&mut self, name: &str, kind: &str, help: &str) {
        let name = self.name(name);
        self.write(format_args!("# HELP {name} "));
        self.escaped(help, false);
        self.write(format_args!("\n# TYPE {name} {kind}\n"));
    }

    pub(super) fn sample(&mut self, name: &str, labels: &Labels<'_>, value: impl Display) {
        self.line(name, "", labels, None, value);
    }

    /// A gauge; one of milliseconds has `_ms` at the end of its name.
    pub(super) fn gauge(&mut self, name: &str, labels: &Labels<'_>, value: i64) {
        if name.ends_with("_ms") {
            let micros = u64::try_from(value).unwrap_or(0).saturating_mul(1_000);
            let duration = self.duration(micros);
            self.sample(name, labels, duration);
        } else {
            self.sample(name, labels, value);
        }
    }

    pub(super) fn histogram(&mut self, name: &str, labels: &Labels<'_>, histogram: &Histogram) {
        let mut total = 0;
        for (bound_micros, count) in histogram.cumulative() {
            total = count;
            let is_shown = |micros: u64| {
                self.naming == Naming::Prefixed
                    || HISTOGRAM_BOUNDS_MS.iter().any(|ms| ms * 1_000 == micros)
            };
            let bound = match bound_micros {
                Some(micros) if !is_shown(micros) => continue,
                Some(micros) => self.duration(micros).to_string(),
                None => "+Inf".to_owned(),
            };
            self.line(name, "_bucket", labels, Some(&bound), count);
        }
        let sum = self.duration(histogram.sum_micros());
        self.line(name, "_sum", labels, None, sum);
        self.line(name, "_count", labels, None, total);
    }

    pub(super) fn ratio(&mut self, name: &str, ratio: &Ratio) {
        let sum = self.duration(ratio.sum_micros());
        self.line(name, "_sum", &[], None, sum);
        self.line(name, "_count", &[], None, ratio.count());
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    /// The name as it is written.
    fn name(&self, name: &str) -> String {
        match (self.naming, name.strip_suffix("_ms")) {
            (Naming::Contract, _) => name.to_owned(),
            (Naming::Prefixed, Some(stem)) => format!("prombus_{stem}_seconds"),
            (Naming::Prefixed, None) => format!("prombus_{name}"),
        }
    }

    fn duration(&self, micros: u64) -> Duration {
        match self.naming {
            Naming::Contract => Duration::Millis(micros),
            Naming::Prefixed => Duration::Seconds(micros),
        }
    }

    fn line(
        &mut self,
        name: &str,
        suffix: &str,
        labels: &Labels<'_>,
        bound: Option<&str>,
        value: impl Display,
    ) {
        let name = self.name(name);
        self.text.push_str(&name);
        self.text.push_str(suffix);
        let mut separator = '{';
        for (label, text) in labels
            .iter()
            .copied()
            .chain(bound.map(|bound| ("le", bound)))
        {
            self.write(format_args!("{separator}{label}=\""));
            self.escaped(text, true);
            self.text.push('"');
            separator = ',';
        }
        if separator == ',' {
            self.text.push('}');
        }
        self.write(format_args!(" {value}\n"));
    }

    /// In help, quotes are not escaped.
    fn escaped(&mut self, text: &str, is_quoted: bool) {
        for character in text.chars() {
            match character {
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                '"' if is_quoted => self.text.push_str("\\\""),
                character => self.text.push(character),
            }
        }
    }

    fn write(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.text.write_fmt(arguments);
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
