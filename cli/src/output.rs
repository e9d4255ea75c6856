//! What commands write: data to stdout, everything else to stderr. A reader of stdout that goes away, as `head` does,
//! ends a command quietly; a stderr that cannot be written ends nothing.

use crate::escape;
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use std::fmt::{self, Display};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

/// The reader of stdout has gone away.
#[derive(Debug)]
struct StdoutClosed;

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Tables and sentences.
    Text,
    /// One JSON document, or one per line where there are many.
    Json,
}

impl Format {
    pub(crate) fn is_json(self) -> bool {
        self == Self::Json
    }
}

/// stdout as a writer whose closing is told apart from other errors.
pub(crate) struct Stdout(io::StdoutLock<'static>);

/// Locks stdout.
pub(crate) fn stdout() -> Stdout {
    Stdout(io::stdout().lock())
}

/// Writes a line of data.
pub(crate) fn line(text: impl Display) -> anyhow::Result<()> {
    Ok(writeln!(stdout(), "{text}")?)
}

/// Writes a line of JSON, which may come from a server as it is.
pub(crate) fn json_text(text: &str) -> anyhow::Result<()> {
    if io::stdout().is_terminal() {
        line(escape::controls(text.trim_end()))
    } else {
        line(text.trim_end())
    }
}

/// Writes a value as a line of JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    json_text(&serde_json::to_string(value)?)
}

/// Writes a line for people to stderr.
pub(crate) fn notice(text: impl Display) {
    // Nobody is left to be told of a stderr that cannot be written.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether the error is that the reader of stdout has gone away.
pub(crate) fn is_closed_stdout(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let io = cause.downcast_ref::<io::Error>();
        io.and_then(io::Error::get_ref)
            .is_some_and(|inner| inner.is::<StdoutClosed>())
    })
}

/// Whether stdout is a terminal that shows colours.
pub(crate) fn has_colours() -> bool {
    static HAS_COLOURS: OnceLock<bool> = OnceLock::new();
    *HAS_COLOURS.get_or_init(|| {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb
    })
}

/// A heading.
pub(crate) fn bold(text: &str) -> String {
    styled(Style::new().bold(), text)
}

/// What matters less.
pub(crate) fn dim(text: &str) -> String {
    styled(Style::new().dimmed(), text)
}

/// Something good.
pub(crate) fn green(text: &str) -> String {
    styled(AnsiColor::Green.on_default(), text)
}

/// Something to look at.
pub(crate) fn yellow(text: &str) -> String {
    styled(AnsiColor::Yellow.on_default(), text)
}

/// Something bad.
pub(crate) fn red(text: &str) -> String {
    styled(AnsiColor::Red.on_default(), text)
}

fn styled(style: Style, text: &str) -> String {
    if has_colours() {
        format!("{style}{text}{style:#}")
    } else {
        text.to_owned()
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(closed)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(closed)
    }
}

fn closed(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::BrokenPipe => io::Error::new(ErrorKind::BrokenPipe, StdoutClosed),
        _ => error,
    }
}

impl Display for StdoutClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stdout was closed")
    }
}

impl std::error::Error for StdoutClosed {}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn only_a_closed_stdout_is_quiet() {
        let stdout = closed(ErrorKind::BrokenPipe.into());
        let error = anyhow::Error::new(stdout).context("the export broke off");
        assert!(is_closed_stdout(&error));
        let socket: io::Error = ErrorKind::BrokenPipe.into();
        assert!(!is_closed_stdout(&anyhow::Error::new(socket)));
        let disk = closed(ErrorKind::StorageFull.into());
        let written: Result<(), _> = Err(disk);
        assert!(!is_closed_stdout(&written.context("x").unwrap_err()));
    }
}
