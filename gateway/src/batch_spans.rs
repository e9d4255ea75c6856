//! Spans of events that are published together. Without the feature `otlp` there are none, and nothing is kept.

use crate::gateway::Gateway;
#[cfg(feature = "otlp")]
use crate::spans::OpenSpan;
use prombus::Published;
use std::fmt;

/// The spans of those events of a batch that are part of a trace.
#[derive(Debug, Default)]
pub(crate) struct BatchSpans {
    /// With their places in the batch.
    #[cfg(feature = "otlp")]
    spans: Vec<(usize, OpenSpan)>,
    #[cfg(feature = "otlp")]
    len: usize,
}

#[cfg(feature = "otlp")]
impl BatchSpans {
    /// Begins the span of the next event of the batch, where it is part of a trace.
    pub(crate) fn add(&mut self, gateway: &Gateway, topic: &str, headers: &[(String, String)]) {
        let Some(spans) = &gateway.options.spans else {
            return;
        };
        if let Some(span) = spans.publishing(topic, headers, gateway.now_ms()) {
            self.spans.push((self.len, span));
        }
        self.len += 1;
    }

    /// What became of each event of the batch.
    pub(crate) fn end<E: fmt::Display>(self, gateway: &Gateway, results: &[Result<Published, E>]) {
        for (at, span) in self.spans {
            match results.get(at) {
                Some(Ok(published)) => {
                    span.published(published.id.as_str(), published.seq, gateway.now_ms());
                }
                Some(Err(error)) => span.failed(error, gateway.now_ms()),
                None => {}
            }
        }
    }

    /// What became of a batch that is stored as a whole or not at all.
    pub(crate) fn end_atomic<E: fmt::Display>(
        self,
        gateway: &Gateway,
        result: &Result<Vec<Published>, E>,
    ) {
        for (at, span) in self.spans {
            match result {
                Ok(stored) => {
                    if let Some(published) = stored.get(at) {
                        span.published(published.id.as_str(), published.seq, gateway.now_ms());
                    }
                }
                Err(error) => span.failed(error, gateway.now_ms()),
            }
        }
    }
}

#[cfg(not(feature = "otlp"))]
#[allow(
    clippy::unused_self,
    reason = "callers are the same with and without the feature"
)]
impl BatchSpans {
    pub(crate) fn add(&mut self, _: &Gateway, _: &str, _: &[(String, String)]) {}

    pub(crate) fn end<E: fmt::Display>(self, _: &Gateway, _: &[Result<Published, E>]) {}

    pub(crate) fn end_atomic<E: fmt::Display>(self, _: &Gateway, _: &Result<Vec<Published>, E>) {}
}
