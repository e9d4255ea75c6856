//! Progress bars on stderr for work that takes long, where stderr is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Read;

/// A reader that shows how far it is.
pub(crate) struct Watched<R> {
    inner: R,
    bar: ProgressBar,
}

/// Shows bytes, against the `total` where it is known.
pub(crate) fn watch<R: Read>(inner: R, total: Option<u64>) -> Watched<R> {
    Watched {
        inner,
        bar: count_bytes(total),
    }
}

/// A bar of bytes for callers that count themselves.
pub(crate) fn count_bytes(total: Option<u64>) -> ProgressBar {
    let bar = match total {
        Some(total) => ProgressBar::new(total),
        None => ProgressBar::no_length(),
    };
    bar.set_draw_target(ProgressDrawTarget::stderr());
    let template = match total {
        Some(_) => "{wide_bar} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}",
        None => "{spinner} {bytes} {binary_bytes_per_sec}",
    };
    // The template is ours; one that does not parse would only look plainer.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}

/// A counter of events for callers that count themselves.
pub(crate) fn count_events() -> ProgressBar {
    let bar = ProgressBar::no_length();
    bar.set_draw_target(ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {human_pos} events, {per_sec}") {
        bar.set_style(style);
    }
    bar
}

/// How many bytes there are to read, where the input is a file.
#[cfg(unix)]
pub(crate) fn input_bytes(input: &impl std::os::fd::AsFd) -> Option<u64> {
    let file = std::fs::File::from(input.as_fd().try_clone_to_owned().ok()?);
    let metadata = file.metadata().ok()?;
    metadata.is_file().then_some(metadata.len())
}

/// How many bytes there are to read, where that is known.
#[cfg(not(unix))]
pub(crate) fn input_bytes<T>(_: &T) -> Option<u64> {
    None
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(into)?;
        self.bar.inc(count as u64);
        Ok(count)
    }
}

impl<R> Drop for Watched<R> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
