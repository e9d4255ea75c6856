//! Requests over HTTP: what is asked once has no use for the socket. Each one has a connection of its own, so that a long
//! reply holds up nothing else.

use crate::core::Core;
use crate::error::{InvalidField, RequestError, ServerError};
use crate::socket::dial;
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use prombus_api::http::ErrorBody;
use serde::de::DeserializeOwned;

/// The most bytes of a reply.
const MAX_REPLY_BYTES: usize = 256 << 20;
/// What the path of the socket ends in; requests go beside it.
const SOCKET_PATH: &str = "/ws";

/// Asks, and reads the reply as JSON.
pub(crate) async fn ask<R: DeserializeOwned>(
    core: &Core,
    method: Method,
    target: &str,
    body: Vec<u8>,
) -> Result<R, RequestError> {
    let reply = send(core, method, target, body).await?;
    serde_json::from_slice(&reply).map_err(|error| bad_reply(&error))
}

/// Asks, and gives the body of a reply of success as it is.
pub(crate) async fn send(
    core: &Core,
    method: Method,
    target: &str,
    body: Vec<u8>,
) -> Result<Bytes, RequestError> {
    let request = request(core, method, target, body).await?;
    let unreachable = |why: String| RequestError::Unreachable {
        url: core.endpoint.name(),
        why,
    };
    let dialling = tokio::time::timeout(
        core.options.handshake_timeout,
        dial(&core.endpoint, &core.options),
    );
    let stream = dialling
        .await
        .map_err(|_| unreachable("it did not answer in time".to_owned()))?
        .map_err(|error| unreachable(error.to_string()))?;
    let broken = |error: hyper::Error| unreachable(error.to_string());
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    let exchange = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        read(response).await
    };
    tokio::pin!(exchange, connection);
    tokio::select! {
        biased;
        reply = &mut exchange => return reply,
        // It may end before all that it has read is taken.
        _ = &mut connection => {}
    }
    exchange.await
}

async fn request(
    core: &Core,
    method: Method,
    target: &str,
    body: Vec<u8>,
) -> Result<Request<Full<Bytes>>, RequestError> {
    let token = core.options.token.token().await;
    let token = token.map_err(|why| RequestError::NoToken { why })?;
    let uri = &core.endpoint.uri;
    let path = uri.path();
    let path = path.strip_suffix(SOCKET_PATH).unwrap_or(path);
    let host = uri.authority().map_or("", |authority| authority.as_str());
    let mut builder = Request::builder()
        .method(method)
        .uri(format!("{path}{target}"))
        .header(HOST, host)
        .header(CONNECTION, HeaderValue::from_static("close"));
    if !body.is_empty() {
        builder = builder.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if let Some(token) = token {
        builder = builder.header(AUTHORIZATION, format!("Bearer {}", token.text));
    }
    builder.body(Full::new(body.into())).map_err(|_| {
        InvalidField::new("path or token", "has characters that a request cannot have").into()
    })
}

async fn read(response: Response<Incoming>) -> Result<Bytes, RequestError> {
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_REPLY_BYTES);
    let body = body.collect().await.map_err(|error| bad_reply(&*error))?;
    let body = body.to_bytes();
    if status.is_success() {
        return Ok(body);
    }
    let error: ErrorBody = serde_json::from_slice(&body).map_err(|error| bad_reply(&error))?;
    Err(RequestError::Refused(ServerError {
        code: error.code,
        message: error.error,
        retry_after_ms: error.retry_after_ms,
        actual: error.actual,
    }))
}

pub(crate) fn bad_reply(error: &(impl std::fmt::Display + ?Sized)) -> RequestError {
    RequestError::BadReply {
        why: error.to_string(),
    }
}
