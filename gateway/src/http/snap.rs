//! `/snap`: the state of one key, now or as it was. The reply is the payload itself; what is known of its event stands
//! in headers.

use super::call::Call;
use super::message::{Body, Response};
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, StatusCode, header};
use prombus_api::Code;

/// A client may keep a state, but has to ask each time whether it still is: it changes with any publish, and with one
/// that brings an older ts even the past does.
const CACHING: HeaderValue = HeaderValue::from_static("private, no-cache");
const EVENT_ID: HeaderName = HeaderName::from_static("x-event-id");
const EVENT_SEQ: HeaderName = HeaderName::from_static("x-event-seq");
const EVENT_TS: HeaderName = HeaderName::from_static("x-event-ts");

/// A state to reply with.
struct Snap<'a> {
    payload: &'a str,
    seq: u64,
    ts: u64,
    id: Option<&'a str>,
}

pub(super) async fn snap(call: Call) -> Result<Response, ApiError> {
    call.allow(Action::Subscribe, &call.topic, None)?;
    let at_ts = match call.parts.uri.query() {
        Some(_) => call.query()?.number("at")?,
        None => None,
    };
    match at_ts {
        None => now(&call).await,
        Some(at_ts) => at(&call, at_ts).await,
    }
}

async fn now(call: &Call) -> Result<Response, ApiError> {
    let bus = &call.gateway().bus;
    let event = bus.latest_or_tombstone(&call.topic, &call.key).await?;
    let Some(event) = event else {
        let message = format!("topic {} has no key {:?}", call.topic, call.key);
        return Err(ApiError::new(Code::UnknownKey, message));
    };
    if event.is_tombstone() {
        let message = format!("key {:?} of topic {} was deleted", call.key, call.topic);
        return Err(ApiError::new(Code::DeletedKey, message));
    }
    let snap = Snap {
        payload: event.payload(),
        seq: event.seq(),
        ts: event.ts(),
        id: Some(&event.id()),
    };
    Ok(snap.reply(&call.parts.headers))
}

async fn at(call: &Call, at_ts: u64) -> Result<Response, ApiError> {
    let bus = &call.gateway().bus;
    let Some(state) = bus.state_at(&call.topic, &call.key, at_ts).await? else {
        let message = format!("topic {} had no key {:?} at {at_ts}", call.topic, call.key);
        return Err(ApiError::new(Code::UnknownKey, message));
    };
    let snap = Snap {
        payload: &state.payload,
        seq: state.seq,
        ts: state.ts,
        id: state.id.as_deref(),
    };
    Ok(snap.reply(&call.parts.headers))
}

impl Snap<'_> {
    fn reply(&self, asked: &HeaderMap) -> Response {
        // Also a topic that was made again does not give the same position the same time.
        let tag = format!("\"{}-{}\"", self.seq, self.ts);
        let mut response = if asked
            .get_all(header::IF_NONE_MATCH)
            .iter()
            .any(|tags| names(tags, &tag))
        {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            reply::json_text(self.payload.as_bytes().to_vec())
        };
        let headers = response.headers_mut();
        if let Ok(tag) = HeaderValue::try_from(tag) {
            headers.insert(header::ETAG, tag);
        }
        headers.insert(header::CACHE_CONTROL, CACHING);
        headers.insert(EVENT_SEQ, HeaderValue::from(self.seq));
        headers.insert(EVENT_TS, HeaderValue::from(self.ts));
        let id = self.id.and_then(|id| HeaderValue::from_str(id).ok());
        headers.extend(id.map(|id| (EVENT_ID, id)));
        response
    }
}

/// Whether an `If-None-Match` names a tag. It is compared weakly, as that header is.
fn names(tags: &HeaderValue, tag: &str) -> bool {
    let Ok(tags) = tags.to_str() else {
        return false;
    };
    tags.split(',')
        .map(str::trim)
        .any(|named| named == "*" || named.strip_prefix("W/").unwrap_or(named) == tag)
}
