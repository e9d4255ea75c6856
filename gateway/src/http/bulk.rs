//! Bodies of many lines: `POST /publish/:topic` with NDJSON, and `POST /import`. Lines are gathered into batches while
//! the batch before is on its way to the disk, so memory is bounded however long the body is, and a slow disk slows
//! the sender.
//!
//! Rate limits slow such a body down instead of refusing lines in the middle of it, which would lose them.

use super::body::Arriving;
use super::call::Call;
use super::connection::Connection;
use super::lines::{Line, Lines};
use super::publish::{event_headers, has_idempotency_key};
use super::reply;
use crate::auth::Action;
use crate::denied::Denied;
use crate::said::as_said;
use axum::http::StatusCode;
use axum::response::Response;
use prombus::error::PublishError;
use prombus::{BatchAnswer, PublishBatch, Published};
use prombus_api::Code;
use prombus_api::http::{Body as _, BulkReply, Envelope, ErrorBody, publish_query};
use prombus_api::options::PublishOptions as Said;
use std::sync::Arc;

/// About how many bytes of lines one batch gathers.
const BATCH_BYTES: usize = 256 << 10;
/// How many lines one batch gathers at most.
const BATCH_LINES: usize = 2_048;
/// How many bad lines the reply tells; the others are counted.
const MAX_TOLD_LINES: usize = 1_000;
/// How much longer than a payload a line may be that has an envelope around it.
const ENVELOPE_BYTES: usize = 384 << 10;

/// What stands on a line.
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
    /// What the request says of every line that does not say it itself.
    said: Said<'c>,
    batch: Gathered,
    /// The batch that is on its way.
    under_way: Option<(BatchAnswer, Vec<u64>)>,
    line: u64,
    reply: BulkReply,
    stopped: Option<Denied>,
}

/// Lines that were gathered.
struct Gathered {
    batch: PublishBatch,
    /// Their numbers.
    lines: Vec<u64>,
    bytes: usize,
}

/// Publishes each line.
pub(super) async fn publish(mut call: Call) -> Result<Response, Denied> {
    let body = call.take_body();
    let query = call.query()?;
    let said = Said {
        headers: event_headers(&call.parts.headers)?,
        ..publish_query(&query)?
    };
    if said.id.is_some() || has_idempotency_key(&call.parts.headers) {
        let why = "id: one id cannot name many lines; with envelope=1 each line has its own";
        return Err(Denied::new(Code::BadFrame, why));
    }
    let content = match query.flag("envelope")?.unwrap_or(false) {
        true => Content::Envelope,
        false => Content::Payload,
    };
    let bulk = Bulk::new(call.connection.clone(), content, said, &call.topic);
    Ok(bulk.take_in(body).await)
}

/// Stores each line's record, keeping its id and ts.
pub(super) async fn import(mut call: Call) -> Result<Response, Denied> {
    let body = call.take_body();
    let query = call.query()?;
    let topic = query.required("topic")?;
    call.allow(Action::Publish, topic, None)?;
    let said = Said::default();
    let bulk = Bulk::new(call.connection.clone(), Content::Record, said, topic);
    Ok(bulk.take_in(body).await)
}

impl<'c> Bulk<'c> {
    fn new(connection: Arc<Connection>, content: Content, said: Said<'c>, topic: &str) -> Self {
        let reply = BulkReply {
            topic: topic.to_owned(),
            ..BulkReply::default()
        };
        Self {
            batch: Gathered::new(connection.gateway.bus.batch()),
            connection,
            content,
            said,
            under_way: None,
            line: 0,
            reply,
            stopped: None,
        }
    }

    async fn take_in(mut self, body: axum::body::Body) -> Response {
        let options = &self.connection.gateway.options;
        let mut arriving = Arriving::new(body, options.request_timeout_ms);
        let mut lines = Lines::new(match self.content {
            Content::Payload => options.limits.max_payload_bytes,
            _ => options.limits.max_payload_bytes + ENVELOPE_BYTES,
        });
        while self.stopped.is_none() {
            let nothing_under_way = self.under_way.is_none();
            let piece = tokio::select! {
                biased;
                piece = arriving.next() => piece,
                results = landed(&mut self.under_way) => {
                    self.count(results);
                    continue;
                }
                // Nothing more has arrived yet, so what has need not wait for it.
                () = std::future::ready(()), if nothing_under_way && !self.batch.is_empty() => {
                    self.send().await;
                    arriving.restart();
                    continue;
                }
            };
            match piece {
                Ok(Some(piece)) => {
                    self.piece(&mut lines, &piece).await;
                    arriving.restart();
                }
                Ok(None) => {
                    if let Some(line) = lines.finish() {
                        self.add(line).await;
                    }
                    break;
                }
                Err(denied) => self.stopped = Some(denied),
            }
        }
        self.land().await;
        if self.has_failed() {
            arriving.discard().await;
        } else {
            self.send().await;
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
                self.fail(self.line, Code::TooLarge, "the line is too long");
            }
            Line::Text(text) if text.trim_ascii().is_empty() => {}
            Line::Text(text) => {
                self.reply.lines += 1;
                if let Err(denied) = self.gather(text.trim_ascii()) {
                    self.fail(self.line, denied.code, denied.message);
                }
            }
        }
        if self.batch.is_full() {
            self.land().await;
            if self.stopped.is_none() {
                self.send().await;
            }
        }
    }

    fn gather(&mut self, line: &[u8]) -> Result<(), Denied> {
        let topic = &self.reply.topic;
        let batch = &mut self.batch.batch;
        if self.content == Content::Payload {
            let payload = std::str::from_utf8(line)
                .map_err(|_| Denied::new(Code::BadJson, "the line is not UTF-8"))?;
            batch.add(topic, payload, &as_said(&self.said));
        } else {
            let envelope = Envelope::parse(line)?;
            if self.content == Content::Record && envelope.options.id.is_none() {
                return Err(Denied::new(Code::BadFrame, "id: it is missing"));
            }
            let said = with_defaults(envelope.options, &self.said);
            batch.add(topic, envelope.payload, &as_said(&said));
        }
        self.batch.lines.push(self.line);
        self.batch.bytes += line.len();
        Ok(())
    }

    /// Sends the batch off, once the limits allow it.
    async fn send(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let events = u32::try_from(self.batch.lines.len()).unwrap_or(u32::MAX);
        let topic = &self.reply.topic;
        self.connection.publish_in_time(topic, events).await;
        let bus = &self.connection.gateway.bus;
        let sent = std::mem::replace(&mut self.batch, Gathered::new(bus.batch()));
        self.under_way = Some((bus.publish_batch(sent.batch), sent.lines));
    }

    /// Waits for the batch that is under way, if there is one.
    async fn land(&mut self) {
        if self.under_way.is_some() {
            let results = landed(&mut self.under_way).await;
            self.count(results);
        }
    }

    fn count(&mut self, results: Vec<(u64, Result<Published, PublishError>)>) {
        let before = self.reply.published;
        for (line, result) in results {
            match result {
                Ok(published) if published.duplicate => self.reply.duplicates += 1,
                Ok(_) => self.reply.published += 1,
                Err(error) => {
                    let denied = Denied::from(error);
                    self.fail(line, denied.code, denied.message.clone());
                    if is_final(denied.code) {
                        self.stopped.get_or_insert(denied);
                    }
                }
            }
        }
        let stored = self.reply.published - before;
        let series = self.connection.gateway.metrics.topic(&self.reply.topic);
        series.published.add(stored);
    }

    fn fail(&mut self, line: u64, code: Code, why: impl Into<String>) {
        self.reply.fail(line, code, why, MAX_TOLD_LINES);
    }

    /// Whether the store takes no more, so that there is no use in sending on.
    fn has_failed(&self) -> bool {
        self.stopped
            .as_ref()
            .is_some_and(|denied| is_final(denied.code))
    }

    fn into_reply(mut self) -> Response {
        self.reply.errors.sort_by_key(|error| error.line);
        let status = match self.stopped {
            None => StatusCode::OK,
            Some(denied) => {
                let status = reply::status_of(denied.code);
                self.reply.stopped = Some(ErrorBody::new(denied.code, denied.message));
                status
            }
        };
        reply::with_status(status, &self.reply)
    }
}

impl Gathered {
    fn new(batch: PublishBatch) -> Self {
        Self {
            batch,
            lines: Vec::new(),
            bytes: 0,
        }
    }

    fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    fn is_full(&self) -> bool {
        self.bytes >= BATCH_BYTES || self.lines.len() >= BATCH_LINES
    }
}

/// What became of the lines that are under way; for ever where none are.
async fn landed(
    under_way: &mut Option<(BatchAnswer, Vec<u64>)>,
) -> Vec<(u64, Result<Published, PublishError>)> {
    let Some((answer, _)) = under_way else {
        return std::future::pending().await;
    };
    let results = answer.await;
    let lines = under_way.take().map(|(_, lines)| lines);
    lines.unwrap_or_default().into_iter().zip(results).collect()
}

/// What stands on the line goes before what the request says of all lines.
fn with_defaults<'a>(mut said: Said<'a>, defaults: &Said<'a>) -> Said<'a> {
    said.ts = said.ts.or(defaults.ts);
    said.key = said.key.or_else(|| defaults.key.clone());
    said.sid = said.sid.or_else(|| defaults.sid.clone());
    if said.tags.is_empty() {
        said.tags.clone_from(&defaults.tags);
    }
    for (name, value) in &defaults.headers {
        if !said.headers.iter().any(|(own, _)| own == name) {
            said.headers.push((name.clone(), value.clone()));
        }
    }
    said
}

fn is_final(code: Code) -> bool {
    matches!(code, Code::PublishFailed | Code::ShuttingDown)
}
