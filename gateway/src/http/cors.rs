//! Pages of other origins: off unless the configuration names them.

use super::message::{Request, Response};
use super::reply;
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method, header};

const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");
/// How long a browser may remember the answer to its preflight, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
const EXPOSED: HeaderValue =
    HeaderValue::from_static("etag, retry-after, x-event-id, x-event-seq, x-event-ts, x-next-seq");
/// Headers that pages send where they do not ask by name.
const USUAL_HEADERS: HeaderValue =
    HeaderValue::from_static("authorization, content-type, idempotency-key, last-event-id");

/// What to tell a browser about the page that asks; `None` where it may not, or where no page asks.
pub(super) fn allowed_origin(origins: &[String], headers: &HeaderMap) -> Option<HeaderValue> {
    let asking = headers.get(header::ORIGIN)?;
    let is_named =
        |origin: &&String| origin.as_str() == "*" || origin.as_bytes() == asking.as_bytes();
    match origins.iter().find(is_named)?.as_str() {
        "*" => Some(HeaderValue::from_static("*")),
        _ => Some(asking.clone()),
    }
}

/// Whether a browser asks if it may ask.
pub(super) fn is_preflight(request: &Request) -> bool {
    let asks = header::ACCESS_CONTROL_REQUEST_METHOD;
    request.method() == Method::OPTIONS && request.headers().contains_key(asks)
}

/// The reply to a preflight: everything may be requested, for the token decides.
pub(super) fn preflight(asked: &HeaderMap) -> Response {
    let mut response = reply::nothing();
    let asked = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS);
    let allowed_headers = asked.cloned().unwrap_or(USUAL_HEADERS);
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed_headers);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    response
}

/// Lets a page of an allowed origin read the response. Where replies depend on the origin, caches are told so, also
/// with a reply that no page asked for.
pub(super) fn mark(response: &mut Response, origins: &[String], allowed: Option<HeaderValue>) {
    let headers = response.headers_mut();
    if !origins.is_empty() && !origins.iter().any(|origin| origin == "*") {
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
    if let Some(origin) = allowed {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
}
