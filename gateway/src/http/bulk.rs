//! Bodies of many lines: `POST /publish/:topic` with NDJSON, and `POST /import`. Lines are gathered into batches while
//! the batch before is on its way to the disk, so memory is bounded however long the body is, and a slow disk slows
//! the sender.
//!
//! Each line takes a token from the buckets when it is read. Where they are empty the body waits, so that it goes as fast
//! as the limits allow and never overdraws what others share; a line that waits too long ends it with `rate_limited`.

use super::body::BodyReader;
use super::call::Call;
use super::connection::Connection;
use super::lines::{Line, Lines};
use super::message::Response;
use super::publish::{event_headers, has_idempotency_key, has_if_match};
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use crate::batch_spans::BatchSpans;
use crate::to_bus::{check_no_own_commit, to_bus_publish_options};
use hyper::StatusCode;
use prombus::error::PublishError;
use prombus::{BatchFuture, PublishBatch, Published};
use prombus_api::Code;
use prombus_api::http::{Body as _, BulkReply, Envelope, ErrorBody, publish_query};
use prombus_api::options::PublishOptions as WireOptions;
use std::sync::Arc;
use std::time::Duration;

/// About how many bytes of lines one batch gathers.
const BATCH_BYTES: usize = 256 << 10;
/// How many lines one batch gathers at most.
const BATCH_LINES: usize = 2_048;
/// The most bad lines that the reply lists; the others are counted.
const MAX_REPORTED_LINES: usize = 1_000;
/// The longest that one line waits for a token.
const MAX_TOKEN_WAIT_MS: u64 = 30_000;
/// How much longer than a payload a line may be that has an envelope around it.
const ENVELOPE_BYTES: usize = 384 << 10;

/// The format of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Payload,
    Envelope,
    /// An envelope that has to have an id, so that running the import again changes nothing.
    Record,
}

/// A body that is being taken in.
struct Bulk<'c> {
    connection: Arc<Connection>,
    content: Content,
    /// Defaults from the request for every line.
    defaults: WireOptions<'c>,
    batch: LineBatch,
    /// The batch that is being stored.
    in_flight: Option<InFlight>,
    line: u64,
    reply: BulkReply,
    stopped: Option<ApiError>,
}

/// Lines of the batch that is being filled.
struct LineBatch {
    batch: PublishBatch,
    /// Their numbers.
    lines: Vec<u64>,
    bytes: usize,
    spans: BatchSpans,
}

/// A batch that is being stored.
struct InFlight {
    answer: BatchFuture,
    /// The numbers of its lines.
    lines: Vec<u64>,
    spans: BatchSpans,
}

/// Publishes each line.
pub(super) async fn publish(mut call: Call) -> Result<Response, ApiError> {
    let reader = call.body_reader();
    let query = call.query()?;
    let options = WireOptions {
        headers: event_headers(&call.parts.headers)?,
        ..publish_query(&query)?
    };
    if options.id.is_some() || has_idempotency_key(&call.parts.headers) {
        let message = "id: not allowed with NDJSON; use envelope=1 and an id on each line";
        return Err(ApiError::new(Code::BadFrame, message));
    }
    check_no_own_commit(&options)?;
    if options.expect_seq.is_some()
        || options.expect_key_seq.is_some()
        || has_if_match(&call.parts.headers)
    {
        let message = "expect_seq, expect_key_seq and If-Match: not allowed with NDJSON; use envelope=1 and say it on each line";
        return Err(ApiError::new(Code::BadFrame, message));
    }
    let content = if query.flag("envelope")?.unwrap_or(false) {
        Content::Envelope
    } else {
        Content::Payload
    };
    let bulk = Bulk::new(call.connection.clone(), content, options, &call.topic);
    Ok(bulk.run(reader).await)
}

/// Stores each line's record, keeping its id and ts.
pub(super) async fn import(mut call: Call) -> Result<Response, ApiError> {
    let reader = call.body_reader();
    let query = call.query()?;
    let topic = query.required("topic")?;
    call.allow(Action::Publish, topic, None)?;
    let options = WireOptions::default();
    let bulk = Bulk::new(call.connection.clone(), Content::Record, options, topic);
    Ok(bulk.run(reader).await)
}

impl<'c> Bulk<'c> {
    fn new(
        connection: Arc<Connection>,
        content: Content,
        defaults: WireOptions<'c>,
        topic: &str,
    ) -> Self {
        let reply = BulkReply {
            topic: topic.to_owned(),
            ..BulkReply::default()
        };
        Self {
            batch: LineBatch::new(connection.gateway.bus.batch()),
            connection,
            content,
            defaults,
            in_flight: None,
            line: 0,
            reply,
            stopped: None,
        }
    }

    async fn run(mut self, mut reader: BodyReader) -> Response {
        let options = &self.connection.gateway.options;
        let mut lines = Lines::new(match self.content {
            Content::Payload => options.limits.max_payload_bytes,
            _ => options.limits.max_payload_bytes + ENVELOPE_BYTES,
        });
        while self.stopped.is_none() {
            let nothing_under_way = self.in_flight.is_none();
            let piece = tokio::select! {
                biased;
                piece = reader.next() => piece,
                (landed, results) = completed(&mut self.in_flight) => {
                    self.count(landed, results);
                    continue;
                }
                // Nothing more has arrived yet, so what has need not wait for it.
                () = std::future::ready(()), if nothing_under_way && !self.batch.is_empty() => {
                    self.send();
                    reader.restart();
                    continue;
                }
            };
            match piece {
                Ok(Some(piece)) => {
                    self.piece(&mut lines, &piece).await;
                    reader.restart();
                }
                Ok(None) => {
                    if let Some(line) = lines.finish() {
                        self.add(line).await;
                    }
                    break;
                }
                Err(error) => self.stopped = Some(error),
            }
        }
        self.land().await;
        if !self.has_failed() {
            self.send();
            self.land().await;
        }
        self.into_reply()
    }

    async fn piece(&mut self, lines: &mut Lines, piece: &[u8]) {
        let mut rest = piece;
        while let Some(line) = lines.next(&mut rest) {
            self.add(line).await;
            if self.stopped.is_some() {
                return;
            }
        }
    }

    /// Adds a line to the batch, which is sent where it is full.
    async fn add(&mut self, line: Line<'_>) {
        self.line += 1;
        match line {
            Line::TooLong => {
                self.reply.lines += 1;
                self.fail(self.line, Code::TooLarge, "line is too long");
            }
            Line::Text(text) if text.trim_ascii().is_empty() => {}
            Line::Text(text) => {
                if let Err(limited) = self.wait_for_token().await {
                    self.stopped.get_or_insert(limited);
                    return;
                }
                self.reply.lines += 1;
                if let Err(error) = self.gather(text.trim_ascii()) {
                    self.fail(self.line, error.code, error.message);
                }
            }
        }
        if self.batch.is_full() {
            self.land().await;
            if self.stopped.is_none() {
                self.send();
            }
        }
    }

    fn gather(&mut self, line: &[u8]) -> Result<(), ApiError> {
        let topic = &self.reply.topic;
        let gateway = &self.connection.gateway;
        let LineBatch { batch, spans, .. } = &mut self.batch;
        if self.content == Content::Payload {
            let payload = std::str::from_utf8(line)
                .map_err(|_| ApiError::new(Code::BadJson, "line is not UTF-8"))?;
            batch.add(topic, payload, &to_bus_publish_options(&self.defaults));
            spans.add(gateway, topic, &self.defaults.headers);
        } else {
            let envelope = Envelope::parse(line)?;
            if self.content == Content::Record && envelope.options.id.is_none() {
                return Err(ApiError::new(Code::BadFrame, "id: missing"));
            }
            check_no_own_commit(&envelope.options)?;
            let options = envelope.options.or(&self.defaults);
            batch.add(topic, envelope.payload, &to_bus_publish_options(&options));
            spans.add(gateway, topic, &options.headers);
        }
        self.batch.lines.push(self.line);
        self.batch.bytes += line.len();
        Ok(())
    }

    /// Takes the token of a line. While there is none, what was read before is stored.
    async fn wait_for_token(&mut self) -> Result<(), ApiError> {
        let mut waited_ms = 0;
        loop {
            let Err(limited) = self.connection.publish(&self.reply.topic, 1) else {
                return Ok(());
            };
            let wait_ms = limited.retry.ms.max(1);
            if waited_ms + wait_ms > MAX_TOKEN_WAIT_MS {
                return Err(limited.into());
            }
            if !self.batch.is_empty() {
                self.land().await;
                self.send();
            }
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            waited_ms += wait_ms;
        }
    }

    /// Sends the batch to the bus.
    fn send(&mut self) {
        if self.batch.is_empty() || self.has_failed() {
            return;
        }
        let bus = &self.connection.gateway.bus;
        let sent = std::mem::replace(&mut self.batch, LineBatch::new(bus.batch()));
        self.in_flight = Some(InFlight {
            answer: bus.publish_batch(sent.batch),
            lines: sent.lines,
            spans: sent.spans,
        });
    }

    /// Waits for the batch that is being stored, if there is one.
    async fn land(&mut self) {
        if self.in_flight.is_some() {
            let (landed, results) = completed(&mut self.in_flight).await;
            self.count(landed, results);
        }
    }

    fn count(&mut self, landed: InFlight, results: Vec<Result<Published, PublishError>>) {
        landed.spans.end(&self.connection.gateway, &results);
        let before = self.reply.published;
        for (line, result) in landed.lines.into_iter().zip(results) {
            match result {
                Ok(published) if published.duplicate => self.reply.duplicates += 1,
                Ok(_) => self.reply.published += 1,
                Err(error) => {
                    let error = ApiError::from(error);
                    self.fail(line, error.code, error.message.clone());
                    if is_final(error.code) {
                        self.stopped.get_or_insert(error);
                    }
                }
            }
        }
        let stored = self.reply.published - before;
        let series = self.connection.gateway.metrics.topic(&self.reply.topic);
        series.published.add(stored);
    }

    fn fail(&mut self, line: u64, code: Code, reason: impl Into<String>) {
        self.reply.fail(line, code, reason, MAX_REPORTED_LINES);
    }

    /// Whether the store takes no more, so that there is no use in sending on.
    fn has_failed(&self) -> bool {
        self.stopped
            .as_ref()
            .is_some_and(|error| is_final(error.code))
    }

    fn into_reply(mut self) -> Response {
        self.reply.errors.sort_by_key(|error| error.line);
        let status = match self.stopped {
            None => StatusCode::OK,
            Some(error) => {
                let status = reply::status_of(error.code);
                self.reply.stopped = Some(ErrorBody {
                    retry_after_ms: error.details.retry_after_ms,
                    actual: error.details.actual,
                    ..ErrorBody::new(error.code, error.message)
                });
                status
            }
        };
        reply::with_status(status, &self.reply)
    }
}

impl LineBatch {
    fn new(batch: PublishBatch) -> Self {
        Self {
            batch,
            lines: Vec::new(),
            bytes: 0,
            spans: BatchSpans::default(),
        }
    }

    fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    fn is_full(&self) -> bool {
        self.bytes >= BATCH_BYTES || self.lines.len() >= BATCH_LINES
    }
}

/// The batch that was being stored with its results; pending for ever where there is none.
async fn completed(
    in_flight: &mut Option<InFlight>,
) -> (InFlight, Vec<Result<Published, PublishError>>) {
    loop {
        let results = match in_flight {
            Some(stored) => (&mut stored.answer).await,
            None => std::future::pending().await,
        };
        if let Some(landed) = in_flight.take() {
            return (landed, results);
        }
    }
}

fn is_final(code: Code) -> bool {
    matches!(code, Code::PublishFailed | Code::ShuttingDown)
}
