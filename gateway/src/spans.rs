//! Spans of what happens to events that are part of a trace: those whose header `traceparent` is valid and says that the
//! trace is sampled. Publishing, delivery and the acknowledgement each become one, with the event's `traceparent` as their
//! parent. Recording one puts it into a queue with a bound and never waits; a task sends what is there to a collector.

mod encode;
mod exporter;
mod trace_parent;

pub use exporter::{BadEndpoint, Exporter};
use trace_parent::TraceParent;

use crate::metrics::Counter;
use prombus::{Delivery, EventFields};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;

/// The most spans that wait to be sent; more are dropped and counted.
pub const MAX_QUEUED_SPANS: usize = 8_192;
/// The header that names an event's trace.
const HEADER: &str = "traceparent";

/// Takes spans. Cloning it is cheap.
#[derive(Clone)]
pub struct Spans {
    inner: Arc<Inner>,
}

struct Inner {
    queue: mpsc::Sender<Span>,
    counts: Arc<SpanCounts>,
    /// Make ids that others do not make.
    numbers: AtomicU64,
    hashes: RandomState,
}

/// What became of spans.
#[derive(Debug, Default)]
pub struct SpanCounts {
    /// Taken by the collector.
    pub exported: Counter,
    /// Lost, because the collector was away or refused them.
    pub dropped: Counter,
}

/// What a span is about, in the numbers of OpenTelemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Producer = 4,
    Consumer = 5,
}

/// A span that has ended.
#[derive(Debug)]
struct Span {
    parent: TraceParent,
    span_id: u64,
    operation: &'static str,
    kind: Kind,
    topic: Arc<str>,
    group: Option<Arc<str>>,
    id: Option<String>,
    seq: Option<u64>,
    /// How often the event was delivered.
    attempt: Option<u32>,
    start_ms: u64,
    end_ms: u64,
    /// What went wrong.
    error: Option<String>,
}

/// A span that has not ended yet. Letting go of it forgets it.
pub(crate) struct OpenSpan {
    spans: Spans,
    span: Box<Span>,
}

impl Spans {
    fn new(queue: mpsc::Sender<Span>, counts: Arc<SpanCounts>) -> Self {
        Self {
            inner: Arc::new(Inner {
                queue,
                counts,
                numbers: AtomicU64::new(0),
                hashes: RandomState::new(),
            }),
        }
    }

    /// What became of spans so far.
    pub fn counts(&self) -> &SpanCounts {
        &self.inner.counts
    }

    /// Begins the span of publishing an event; `None` where it is not part of a trace.
    pub(crate) fn publishing(
        &self,
        topic: &str,
        headers: &[(String, String)],
        now_ms: u64,
    ) -> Option<OpenSpan> {
        let (_, text) = headers.iter().find(|(name, _)| name == HEADER)?;
        let parent = TraceParent::parse(text)?;
        let span = self.span(parent, ("publish", Kind::Producer), topic, now_ms);
        Some(self.open(span))
    }

    /// Records a delivery, and begins the span that ends with its acknowledgement; `None` where the event is not part of
    /// a trace.
    pub(crate) fn delivered(
        &self,
        delivery: &Delivery,
        group: &Arc<str>,
        now_ms: u64,
    ) -> Option<OpenSpan> {
        let event = &delivery.event;
        // Reading the headers costs more than looking for the one that matters.
        if !event.json().contains(HEADER) {
            return None;
        }
        let fields = EventFields::of(event);
        let parent = TraceParent::parse(fields.headers.get(HEADER)?)?;
        let span = |operation| Span {
            group: Some(group.clone()),
            id: Some(event.id().into_owned()),
            seq: Some(event.seq()),
            attempt: Some(delivery.context.attempt),
            ..self.span(parent, (operation, Kind::Consumer), event.topic(), now_ms)
        };
        self.record(span("deliver"));
        Some(self.open(span("ack")))
    }

    fn span(
        &self,
        parent: TraceParent,
        (operation, kind): (&'static str, Kind),
        topic: &str,
        now_ms: u64,
    ) -> Span {
        let number = self.inner.numbers.fetch_add(1, Ordering::Relaxed);
        Span {
            parent,
            // Zero is no id.
            span_id: self.inner.hashes.hash_one(number).max(1),
            operation,
            kind,
            topic: topic.into(),
            group: None,
            id: None,
            seq: None,
            attempt: None,
            start_ms: now_ms,
            end_ms: now_ms,
            error: None,
        }
    }

    fn open(&self, span: Span) -> OpenSpan {
        OpenSpan {
            spans: self.clone(),
            span: Box::new(span),
        }
    }

    fn record(&self, span: Span) {
        if self.inner.queue.try_send(span).is_err() {
            self.inner.counts.dropped.increment();
        }
    }
}

impl OpenSpan {
    /// The event was stored.
    pub(crate) fn published(mut self, id: &str, seq: u64, now_ms: u64) {
        self.span.id = Some(id.to_owned());
        self.span.seq = Some(seq);
        self.end(now_ms);
    }

    /// What was attempted failed.
    pub(crate) fn failed(mut self, error: impl fmt::Display, now_ms: u64) {
        self.span.error = Some(error.to_string());
        self.end(now_ms);
    }

    /// The event was acknowledged, or not.
    pub(crate) fn settled(mut self, is_acked: bool, now_ms: u64) {
        if !is_acked {
            self.span.operation = "nack";
            self.span.error = Some("the handler failed".to_owned());
        }
        self.end(now_ms);
    }

    fn end(mut self, now_ms: u64) {
        // The clock may step back.
        self.span.end_ms = now_ms.max(self.span.start_ms);
        self.spans.record(*self.span);
    }
}

impl fmt::Debug for Spans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spans")
            .field("counts", &self.inner.counts)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for OpenSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.span.fmt(f)
    }
}
