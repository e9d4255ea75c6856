//! `GET /sse`: a topic as server-sent events, read from the store as fast as the client takes them. It leaves nothing
//! behind and holds nothing up; `Last-Event-ID` resumes.

use super::call::Call;
use super::connection::Connection;
use super::events::first_seq;
use super::reply;
use super::stream::{self, BrokenOff, Gone, Pieces};
use crate::auth::{Action, Grant};
use crate::denied::Denied;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use prombus::{ReadError, ReadLimit, StoredEvent};
use prombus_api::Code;
use prombus_api::http::{ErrorBody, ReadQuery};
use prombus_api::options::Position;
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

struct Following {
    connection: Arc<Connection>,
    grant: Grant,
    topic: Arc<str>,
    next_seq: u64,
}

pub(super) async fn follow(call: Call) -> Result<Response, Denied> {
    let wanted = ReadQuery::parse(&call.query()?)?;
    call.allow(Action::Subscribe, &wanted.topic, None)?;
    let topic = call.known(&wanted.topic)?;
    let last_id = call.parts.headers.get(LAST_EVENT_ID);
    let last_id = last_id.and_then(|id| id.to_str().ok());
    // A browser that connects again sends the query that it began with, so the header goes first.
    let start = match last_id.filter(|id| !id.is_empty()) {
        Some(id) => Position::AfterId(id.to_owned()),
        None => wanted.start.unwrap_or(Position::Latest),
    };
    let store = call.gateway().bus.store();
    let next_seq = first_seq(&**store, &topic, start).await?;
    let following = Following {
        connection: call.connection.clone(),
        grant: call.grant.clone(),
        topic,
        next_seq,
    };
    let body = stream::body(|pieces| following.run(pieces));
    let mut response = reply::typed(HeaderValue::from_static("text/event-stream"), body);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    Ok(response)
}

impl Following {
    async fn run(mut self, pieces: Pieces) -> Result<(), BrokenOff> {
        match self.send_all(&pieces).await {
            Ok(end) => {
                // Whether the client still hears why it ends makes no difference to us.
                let _ = pieces.send(last_words(&end)).await;
                Ok(())
            }
            Err(Gone) => Ok(()),
        }
    }

    /// Sends events until there is a reason to end.
    async fn send_all(&mut self, pieces: &Pieces) -> Result<Denied, Gone> {
        let gateway = self.connection.gateway.clone();
        let store = gateway.bus.store();
        // Watched before the first read, so that no event is missed in between.
        let mut tail = store.watch(&self.topic);
        pieces.send(b": prombus\n\n".to_vec()).await?;
        loop {
            if self.grant.is_expired(gateway.now_ms()) {
                return Ok(Denied::new(Code::TokenExpired, "the token has expired"));
            }
            if gateway.is_draining() {
                return Ok(Denied::new(Code::ShuttingDown, "the server is going down"));
            }
            let page = match store.read(&self.topic, self.next_seq, PAGE).await {
                Ok(page) => page,
                Err(error @ (ReadError::UnknownTopic(_) | ReadError::Failed { .. })) => {
                    return Ok(error.into());
                }
            };
            self.next_seq = page.next_seq;
            if !page.events.is_empty() {
                self.send_page(&page.events, pieces).await?;
                continue;
            }
            tokio::select! {
                has_store = tail.moved() => if !has_store {
                    return Ok(Denied::new(Code::ShuttingDown, "the store is closed"));
                },
                () = gateway.told_to_stop() => {}
                () = tokio::time::sleep(self.patience()) => {
                    pieces.send(b":\n\n".to_vec()).await?;
                }
            }
        }
    }

    /// Sends events as fast as the limits allow.
    async fn send_page(&self, events: &[StoredEvent], pieces: &Pieces) -> Result<(), Gone> {
        let mut rest = events;
        while !rest.is_empty() {
            let allowed = self.connection.deliver_in_time(rest.len()).await;
            let (now, later) = rest.split_at(allowed.min(rest.len()));
            pieces.send(spelled(now)).await?;
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

fn spelled(events: &[StoredEvent]) -> Vec<u8> {
    let bytes: usize = events.iter().map(StoredEvent::stored_bytes).sum();
    let mut out = Vec::with_capacity(bytes);
    for event in events {
        out.extend_from_slice(b"id: ");
        out.extend_from_slice(event.id().as_bytes());
        out.extend_from_slice(b"\ndata: ");
        out.extend_from_slice(event.json_bytes());
        out.extend_from_slice(b"\n\n");
    }
    out
}

fn last_words(why: &Denied) -> Vec<u8> {
    let body = ErrorBody::new(why.code, why.message.clone());
    let body = serde_json::to_string(&body).unwrap_or_default();
    format!("event: end\ndata: {body}\n\n").into_bytes()
}
