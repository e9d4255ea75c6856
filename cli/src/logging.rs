//! The server's log, on stderr.

use crate::config::LogFormat;
use std::io::{self, IsTerminal, Write, stderr};
use tracing::Level;

/// Starts logging from `level` upwards.
pub(crate) fn init(format: LogFormat, level: Level) {
    let logs = tracing_subscriber::fmt()
        .with_writer(|| Lossy)
        .with_max_level(level)
        .with_target(false)
        .with_ansi(stderr().is_terminal())
        // It would be written to stderr, too, and panic where that fails.
        .log_internal_errors(false);
    // It fails only where logging was started before.
    let _ = match format {
        LogFormat::Text => logs.try_init(),
        LogFormat::Json => logs.json().flatten_event(true).try_init(),
    };
}

/// Stderr, as far as it can be written: a log line that is lost on a full disk must not fail the request it is about.
struct Lossy;

impl Write for Lossy {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = stderr().flush();
        Ok(())
    }
}
