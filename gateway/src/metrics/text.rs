//! The text format of Prometheus, version 0.0.4: a `HELP` and a `TYPE` line for each metric, then a line per sample.

use super::values::{Histogram, Ratio};
use std::fmt::{Display, Write};

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Labels with their values.
type Labels<'a> = [(&'a str, &'a str)];

/// The text as far as it is written.
#[derive(Default)]
pub(super) struct Text(String);

impl Text {
    /// Begins a metric. Its samples follow at once.
    pub(super) fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.write(format_args!("# HELP {name} "));
        self.escaped(help, false);
        self.write(format_args!("\n# TYPE {name} {kind}\n"));
    }

    pub(super) fn sample(&mut self, name: &str, labels: &Labels<'_>, value: impl Display) {
        self.line(name, "", labels, None, value);
    }

    pub(super) fn histogram(&mut self, name: &str, labels: &Labels<'_>, histogram: &Histogram) {
        let mut total = 0;
        for (bound_ms, count) in histogram.cumulative() {
            let bound = bound_ms.map_or("+Inf".to_owned(), |bound_ms| bound_ms.to_string());
            self.line(name, "_bucket", labels, Some(&bound), count);
            total = count;
        }
        let sum = Millis(histogram.sum_micros());
        self.line(name, "_sum", labels, None, sum);
        self.line(name, "_count", labels, None, total);
    }

    pub(super) fn ratio(&mut self, name: &str, ratio: &Ratio) {
        self.line(name, "_sum", &[], None, Millis(ratio.sum_micros()));
        self.line(name, "_count", &[], None, ratio.count());
    }

    pub(super) fn finish(self) -> String {
        self.0
    }

    fn line(
        &mut self,
        name: &str,
        suffix: &str,
        labels: &Labels<'_>,
        bound: Option<&str>,
        value: impl Display,
    ) {
        self.0.push_str(name);
        self.0.push_str(suffix);
        let mut separator = '{';
        for (label, text) in labels
            .iter()
            .copied()
            .chain(bound.map(|bound| ("le", bound)))
        {
            self.write(format_args!("{separator}{label}=\""));
            self.escaped(text, true);
            self.0.push('"');
            separator = ',';
        }
        if separator == ',' {
            self.0.push('}');
        }
        self.write(format_args!(" {value}\n"));
    }

    /// In help, quotes stand for themselves.
    fn escaped(&mut self, text: &str, is_quoted: bool) {
        for character in text.chars() {
            match character {
                '\\' => self.0.push_str("\\\\"),
                '\n' => self.0.push_str("\\n"),
                '"' if is_quoted => self.0.push_str("\\\""),
                character => self.0.push(character),
            }
        }
    }

    fn write(&mut self, arguments: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.0.write_fmt(arguments);
    }
}

/// Microseconds, written as milliseconds.
struct Millis(u64);

impl Display for Millis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.0 / 1_000, self.0 % 1_000) {
            (ms, 0) => write!(f, "{ms}"),
            (ms, micros) => write!(f, "{ms}.{micros:03}"),
        }
    }
}
