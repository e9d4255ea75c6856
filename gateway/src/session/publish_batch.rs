//! PUBLISH: consecutive frames, across messages too, become one batch.

use super::correlation_ids::CorrelationIds;
use super::outbound::Outbound;
use crate::api_error::ApiError;
use crate::error_log::ErrorSource;
use crate::gateway::Gateway;
#[cfg(feature = "otlp")]
use crate::spans::OpenSpan;
use crate::to_bus::to_bus_publish_options;
use prombus::error::PublishError;
use prombus::{BatchFuture, PublishBatch, Published};
use prombus_api::frames::{Publish, write_error, write_published};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The most frames that are put into one batch.
pub(super) const MAX_BATCH_FRAMES: usize = 4_096;

/// PUBLISH frames that were not sent to the bus yet.
#[derive(Debug)]
pub(super) struct PublishFrames {
    batch: PublishBatch,
    frames: PendingFrames,
}

/// PUBLISH frames that were sent to the bus.
#[derive(Debug)]
pub(super) struct PendingPublish {
    answer: BatchFuture,
    frames: PendingFrames,
}

/// Frames that wait for their replies.
#[derive(Debug, Default)]
struct PendingFrames {
    correlation_ids: CorrelationIds,
    /// Frames that were rejected before the bus, by index.
    rejected: Vec<(usize, ApiError)>,
    /// The topics of the others, run-length encoded.
    topics: Vec<(Arc<str>, usize)>,
    /// The bytes of all payloads.
    bytes: usize,
    /// The spans of those that are part of a trace, with their places among what was sent to the bus.
    #[cfg(feature = "otlp")]
    spans: Vec<(usize, OpenSpan)>,
}

impl PublishFrames {
    pub(super) fn new(batch: PublishBatch) -> Self {
        Self {
            batch,
            frames: PendingFrames::default(),
        }
    }

    /// Adds an event.
    pub(super) fn add(&mut self, topic: &Arc<str>, publish: &Publish<'_>, corr: Option<&str>) {
        self.batch.add(
            topic,
            publish.payload,
            &to_bus_publish_options(&publish.options),
        );
        self.frames.correlation_ids.push(corr);
        self.frames.bytes += publish.payload.len();
        match self.frames.topics.last_mut() {
            Some((latest, count)) if Arc::ptr_eq(latest, topic) => *count += 1,
            _ => self.frames.topics.push((topic.clone(), 1)),
        }
    }

    /// Begins the span of the event that is added next, where it is part of a trace.
    #[cfg(feature = "otlp")]
    pub(super) fn trace(&mut self, gateway: &Gateway, topic: &str, publish: &Publish<'_>) {
        let Some(spans) = &gateway.options.spans else {
            return;
        };
        let headers = &publish.options.headers;
        if let Some(span) = spans.publishing(topic, headers, gateway.now_ms()) {
            let at = self.len() - self.frames.rejected.len();
            self.frames.spans.push((at, span));
        }
    }

    /// Rejects a frame; its error takes the place of the event.
    pub(super) fn reject(&mut self, error: ApiError, corr: Option<&str>) {
        self.frames.rejected.push((self.len(), error));
        self.frames.correlation_ids.push(corr);
    }

    pub(super) fn len(&self) -> usize {
        self.frames.correlation_ids.len()
    }

    /// Sends the events to the bus.
    pub(super) fn publish(self, gateway: &Gateway) -> PendingPublish {
        let bus = &gateway.bus;
        PendingPublish {
            // A single event is committed inline, which is faster; with more the socket is read meanwhile.
            answer: match self.len() {
                1 => bus.publish_batch_inline(self.batch),
                _ => bus.publish_batch(self.batch),
            },
            frames: self.frames,
        }
    }
}

impl PendingPublish {
    /// How many frames wait for a reply.
    pub(super) fn frames(&self) -> usize {
        self.frames.correlation_ids.len()
    }

    /// The bytes that are on their way to the store.
    pub(super) fn bytes(&self) -> usize {
        self.frames.bytes
    }

    /// Writes the replies once the events are stored.
    pub(super) fn poll_replies(
        &mut self,
        context: &mut Context<'_>,
        (gateway, source): (&Gateway, &ErrorSource<'_>),
        outbound: &mut Outbound,
    ) -> Poll<()> {
        let Poll::Ready(results) = Pin::new(&mut self.answer).poll(context) else {
            return Poll::Pending;
        };
        self.frames.count(gateway, &results);
        #[cfg(feature = "otlp")]
        self.frames.end_spans(gateway, &results);
        let mut rejected = self.frames.rejected.drain(..).peekable();
        let mut results = results.into_iter();
        for (at, corr) in self.frames.correlation_ids.iter().enumerate() {
            if let Some((_, error)) = rejected.next_if(|(rejected_at, _)| *rejected_at == at) {
                write_api_error(outbound, &error, corr);
                continue;
            }
            match results.next().unwrap_or(Err(PublishError::Closed)) {
                Ok(published) => outbound.frame(|out| {
                    let Published { id, seq, ts, .. } = published;
                    write_published(out, id.as_str(), (seq, ts), published.duplicate, corr);
                }),
                Err(error) => {
                    let error = error.into();
                    gateway.log_error(&error, source);
                    write_api_error(outbound, &error, corr);
                }
            }
        }
        Poll::Ready(())
    }
}

impl PendingFrames {
    #[cfg(feature = "otlp")]
    fn end_spans(&mut self, gateway: &Gateway, results: &[Result<Published, PublishError>]) {
        for (at, span) in self.spans.drain(..) {
            match results.get(at) {
                Some(Ok(published)) => {
                    span.published(published.id.as_str(), published.seq, gateway.now_ms());
                }
                Some(Err(error)) => span.failed(error, gateway.now_ms()),
                None => {}
            }
        }
    }

    fn count(&self, gateway: &Gateway, results: &[Result<Published, PublishError>]) {
        let mut results = results.iter();
        for (topic, count) in &self.topics {
            let run = results.by_ref().take(*count);
            let stored =
                run.filter(|result| matches!(result, Ok(published) if !published.duplicate));
            match stored.count() {
                0 => {}
                stored => gateway.metrics.topic(topic).published.add(stored as u64),
            }
        }
    }
}

/// Adds an ERR.
pub(super) fn write_api_error(outbound: &mut Outbound, error: &ApiError, corr: Option<&str>) {
    outbound.frame(|out| write_error(out, error.code, &error.message, corr, error.details));
}
