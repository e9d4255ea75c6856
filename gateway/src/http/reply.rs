//! Replies: JSON, errors, and replies to HEAD.

use super::message::{Body, Response};
use crate::api_error::ApiError;
use hyper::body::Body as _;
use hyper::header::HeaderValue;
use hyper::{StatusCode, header};
use prombus_api::Code;
use prombus_api::http::ErrorBody;
use serde::Serialize;
use std::mem;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// 200 with this as JSON.
pub(super) fn json(reply: &impl Serialize) -> Response {
    with_status(StatusCode::OK, reply)
}

/// A status with this as JSON.
pub(super) fn with_status(status: StatusCode, reply: &impl Serialize) -> Response {
    // Plain structs of texts and numbers are always written.
    let text = serde_json::to_vec(reply).unwrap_or_default();
    let mut response = json_text(text);
    *response.status_mut() = status;
    response
}

/// 200 with JSON that is written already.
pub(super) fn json_text(text: impl Into<Body>) -> Response {
    typed(JSON, text.into())
}

/// 200 with a body of some type.
pub(super) fn typed(content_type: HeaderValue, body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type);
    response
}

/// 204.
pub(super) fn nothing() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// An error reply.
pub(crate) fn error(error: ApiError) -> Response {
    let status = status_of(error.code);
    let body = ErrorBody {
        retry_after_ms: error.details.retry_after_ms,
        actual: error.details.actual,
        ..ErrorBody::new(error.code, error.message)
    };
    let mut response = with_status(status, &body);
    let headers = response.headers_mut();
    if let Some(ms) = error.details.retry_after_ms {
        let seconds = ms.div_ceil(1_000);
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if status == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer");
        headers.insert(header::WWW_AUTHENTICATE, bearer);
    }
    response
}

pub(super) fn status_of(code: Code) -> StatusCode {
    StatusCode::from_u16(code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// The reply to HEAD: the same head, with the length of the body where that is known. Hyper adds none of its own.
pub(super) fn without_body(mut response: Response) -> Response {
    let body = mem::replace(response.body_mut(), Body::empty());
    if let Some(bytes) = body.size_hint().exact() {
        let length = response.headers_mut().entry(header::CONTENT_LENGTH);
        length.or_insert(bytes.into());
    }
    response
}
