//! What every bench needs: processes under test, payloads that can be checked, folders that go away, and samples.
//! `prombus-bench` measures prombus alone; `bench/peers`, a workspace of its own, measures it beside other servers.

#![allow(
    clippy::disallowed_methods,
    reason = "reading the time is what a bench is for; nothing is decided by it"
)]

pub mod disk_probe;
pub mod folder;
pub mod http;
pub mod payload;
pub mod process;
pub mod program;
pub mod sampling;

use std::io::Write;

/// Whatever goes wrong while measuring ends the run, so its text is all that is needed.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Writes a line to stderr; the figures themselves go to stdout.
pub fn log_progress(text: &str) {
    // A closed stderr does not stop the run.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Writes to stdout.
pub fn print(text: &str) -> Outcome<()> {
    Ok(writeln!(std::io::stdout().lock(), "{text}")?)
}

/// A number with commas between its thousands, without a fraction.
pub fn with_commas(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 && digit.is_ascii_digit() && !out.ends_with('-') {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
