//! Bars on stderr for work that takes long, where somebody watches.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::Read;

/// A reader that shows how far it is.
pub(crate) struct Watched<R> {
    inner: R,
    bar: ProgressBar,
}

/// Shows bytes, against the `total` where it is known. Nothing is drawn where stderr is no terminal.
pub(crate) fn watch<R: Read>(inner: R, total: Option<u64>) -> Watched<R> {
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
    Watched { inner, bar }
}

/// Counts events, for whoever gets them to add to. Nothing is drawn where stderr is no terminal.
pub(crate) fn count_events() -> ProgressBar {
    let bar = ProgressBar::no_length();
    bar.set_draw_target(ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {human_pos} events, {per_sec}") {
        bar.set_style(style);
    }
    bar
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
