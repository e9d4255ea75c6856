//! `GET /sse`: a topic as server-sent events, read from the store as fast as the client takes them. It leaves nothing
//! behind and holds nothing up; `Last-Event-ID` resumes.

use super::call::Call;
use super::connection::Connection;
use super::events::{first_seq, upcast};
use super::message::Response;
use super::reply;
use super::stream::{self, ChunkSender, Gone, StreamError};
use crate::api_error::ApiError;
use crate::auth::{Action, Grant};
use crate::cloudevents::{Format, write_event};
use hyper::header::{self, HeaderName, HeaderValue};
use prombus::{Find, ReadError, ReadFrom, ReadLimit, StartAt, Store, StoredEvent};
use prombus_api::Code;
use prombus_api::http::{ErrorBody, ReadQuery};
use std::sync::Arc;
use std::time::Duration;

/// How much is read and sent at a time.
const PAGE: ReadLimit = ReadLimit {
    events: 256,
    bytes: 256 << 10,
};
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Tells proxies that gather replies to let this one through.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A topic that is followed.
struct Tail {
    connection: Arc<Connection>,
    grant: Grant,
    topic: Arc<str>,
    next_seq: u64,
    /// Whether the topic has been seen; one that does not exist yet is waited for.
    exists: bool,
    /// What is sent first: that the `Last-Event-ID` is not there.
    gap: Option<ApiError>,
    is_upcast: bool,
    format: Format,
}

pub(super) async fn follow(call: Call) -> Result<Response, ApiError> {
    let wanted = ReadQuery::parse(&call.query()?)?;
    call.allow(Action::Subscribe, &wanted.topic, None)?;
    let last_id = call.parts.headers.get(LAST_EVENT_ID);
    let last_id = last_id.and_then(|id| id.to_str().ok());
    let last_id = last_id.filter(|id| !id.is_empty());
    let known = call.known(&wanted.topic).ok();
    let exists = known.is_some();
    let topic = known.unwrap_or_else(|| wanted.topic.as_str().into());
    let store = call.gateway().bus.store();
    // A browser that reconnects sends the query that it began with, so the header wins.
    let (next_seq, gap) = match last_id {
        Some(id) => resume(&**store, &topic, exists, id).await?,
        None if exists => {
            let start = wanted.start.unwrap_or(StartAt::Latest);
            (first_seq(&**store, &topic, start).await?, None)
        }
        None => (first_seq_of_new(&topic, wanted.start)?, None),
    };
    let tail = Tail {
        connection: call.connection.clone(),
        grant: call.grant.clone(),
        topic,
        next_seq,
        exists,
        gap,
        is_upcast: wanted.upcast,
        format: Format::accepted(&call.parts.headers),
    };
    let body = stream::body(|chunks| tail.run(chunks));
    let mut response = reply::typed(HeaderValue::from_static("text/event-stream"), body);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    Ok(response)
}

/// The position after an id. Where the topic does not hold it, an error status would stop a browser for good, so the
/// stream begins at the oldest kept event and says so.
async fn resume(
    store: &dyn Store,
    topic: &Arc<str>,
    exists: bool,
    id: &str,
) -> Result<(u64, Option<ApiError>), ApiError> {
    let found = if exists {
        store.find(topic, Find::Id(id)).await?
    } else {
        None
    };
    Ok(match found {
        Some(seq) => (seq + 1, None),
        None => {
            let message = format!("no event {id:?} in topic {topic}; resumed at the oldest event");
            (1, Some(ApiError::new(Code::UnknownId, message)))
        }
    })
}

/// Where a topic that does not exist yet begins.
fn first_seq_of_new(topic: &str, start: Option<StartAt>) -> Result<u64, ApiError> {
    match start {
        None | Some(StartAt::Latest | StartAt::Earliest | StartAt::Ts(_)) => Ok(1),
        Some(StartAt::Seq(seq)) => Ok(seq.max(1)),
        Some(StartAt::AfterId(id)) => {
            let message = format!("no event {id:?} in topic {topic}");
            Err(ApiError::new(Code::UnknownId, message))
        }
    }
}

impl Tail {
    async fn run(mut self, chunks: ChunkSender) -> Result<(), StreamError> {
        match self.send_all(&chunks).await {
            Ok(error) => {
                // The client may be gone, which makes no difference.
                let _ = chunks.send(error_event("end", &error)).await;
                Ok(())
            }
            Err(Gone) => Ok(()),
        }
    }

    /// Sends events until there is a reason to end.
    async fn send_all(&mut self, chunks: &ChunkSender) -> Result<ApiError, Gone> {
        let gateway = self.connection.gateway.clone();
        let store = gateway.bus.store();
        // Watched before the first read, so that no event is missed in between.
        let mut tail = store.watch(&self.topic);
        chunks.send(b": prombus\n\n".to_vec()).await?;
        if let Some(gap) = self.gap.take() {
            chunks.send(error_event("gap", &gap)).await?;
        }
        loop {
            if self.grant.is_expired(gateway.now_ms()) {
                return Ok(ApiError::new(Code::TokenExpired, "token expired"));
            }
            if gateway.is_draining() {
                return Ok(ApiError::new(Code::ShuttingDown, "server is shutting down"));
            }
            let from = ReadFrom::Seq(self.next_seq);
            match store.read(&self.topic, from, PAGE).await {
                Ok(mut page) => {
                    self.exists = true;
                    self.next_seq = page.next_seq;
                    if self.is_upcast
                        && let Err(error) =
                            upcast(&gateway.bus, &self.topic, &mut page.events).await
                    {
                        return Ok(error);
                    }
                    if !page.events.is_empty() {
                        self.send_page(&page.events, chunks).await?;
                        continue;
                    }
                }
                Err(ReadError::UnknownTopic(_)) if !self.exists => {}
                Err(error @ (ReadError::UnknownTopic(_) | ReadError::Failed { .. })) => {
                    return Ok(error.into());
                }
            }
            tokio::select! {
                has_store = tail.moved() => if !has_store {
                    return Ok(ApiError::new(Code::ShuttingDown, "store is closed"));
                },
                () = gateway.drained() => {}
                () = tokio::time::sleep(self.patience()) => {
                    chunks.send(b":\n\n".to_vec()).await?;
                }
            }
        }
    }

    /// Sends events as fast as the limits allow.
    async fn send_page(&self, events: &[StoredEvent], chunks: &ChunkSender) -> Result<(), Gone> {
        let mut rest = events;
        while !rest.is_empty() {
            let allowed = self.connection.wait_to_deliver(rest.len()).await;
            let (now, later) = rest.split_at(allowed.min(rest.len()));
            chunks.send(encode(now, self.format)).await?;
            rest = later;
        }
        Ok(())
    }

    /// How long nothing may be sent: until the next sign of life, or until the token runs out.
    fn patience(&self) -> Duration {
        let gateway = &self.connection.gateway;
        let left = |at_ms: u64| at_ms.saturating_sub(gateway.now_ms());
        let left_ms = self.grant.expires_at_ms.map_or(u64::MAX, left);
        Duration::from_millis(left_ms.min(gateway.options.ping_interval_ms).max(1))
    }
}

fn encode(events: &[StoredEvent], format: Format) -> Vec<u8> {
    let bytes: usize = events.iter().map(StoredEvent::stored_bytes).sum();
    let mut out = Vec::with_capacity(bytes);
    for event in events {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(event.id().as_bytes());
        out.extend_from_slice(b"\ndata: ");
        if format.is_records() {
            out.extend_from_slice(event.json_bytes())
        } else {
            write_event(&mut out, event, &[])
        }
        out.extend_from_slice(b"\n\n");
    }
    out
}

fn error_event(name: &str, error: &ApiError) -> Vec<u8> {
    let body = ErrorBody::new(error.code, error.message.clone());
    let body = serde_json::to_string(&body).unwrap_or_default();
    format!("event: {name}\ndata: {body}\n\n").into_bytes()
}
