//! What the server says while it runs, on stderr.

use crate::config::LogFormat;
use std::io::{IsTerminal, stderr};
use tracing::Level;

/// Begins to write logs. `level` is the least serious that is written.
pub(crate) fn begin(format: LogFormat, level: Level) {
    let logs = tracing_subscriber::fmt()
        .with_writer(stderr)
        .with_max_level(level)
        .with_target(false)
        .with_ansi(stderr().is_terminal());
    // It fails only where logs are being written already.
    let _ = match format {
        LogFormat::Text => logs.try_init(),
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
    };
}
