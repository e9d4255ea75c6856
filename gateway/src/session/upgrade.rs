//! The handshake: from an HTTP request to a session on the same connection.

use super::Session;
use crate::api_error::ApiError;
use crate::auth::Grant;
use crate::credentials;
use crate::gateway::Gateway;
use crate::http::{self, Body, Request, Response};
use crate::peer::Peer;
use crate::transport::Transport;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hyper::header::{HeaderName, HeaderValue};
use hyper::upgrade::{OnUpgrade, Parts, Upgraded};
use hyper::{HeaderMap, Method, StatusCode, Version, header};
use hyper_util::rt::TokioIo;
use prombus::LockExt;
use prombus_api::Code;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

/// What the protocol has the server append to the client's key.
const KEY_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// A key is 16 bytes in base 64.
const KEY_BYTES: usize = 24;

/// Where a request leaves the session that is to go on with its connection. The task of the connection runs it, so that a
/// session is owned by the task of its connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct NextSession(Arc<Mutex<Option<Waiting>>>);

struct Waiting(Pin<Box<dyn Future<Output = ()> + Send>>);

impl NextSession {
    /// The session, where the request was for one.
    pub(crate) fn take(&self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let mut slot = self.0.guard();
        slot.take().map(|waiting| waiting.0)
    }

    pub(crate) fn put(&self, session: impl Future<Output = ()> + Send + 'static) {
        let mut slot = self.0.guard();
        *slot = Some(Waiting(Box::pin(session)));
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Waiting")
    }
}

/// Whether a request asks for a WebSocket.
pub(crate) fn is_upgrade(headers: &HeaderMap) -> bool {
    has_token(headers, &header::CONNECTION, "upgrade")
        && has_token(headers, &header::UPGRADE, "websocket")
}

/// Upgrades a request to a WebSocket. The token is in `Authorization: Bearer` or, for browsers, in `?token=`; an invalid one
/// is rejected here, and without one the session waits for AUTH.
pub(crate) async fn upgrade(
    gateway: Arc<Gateway>,
    peer: Peer,
    next: &NextSession,
    mut request: Request,
) -> Result<Response, ApiError> {
    let accept = match accept_key(&request) {
        Ok(accept) => accept,
        Err(rejected) => return Ok(*rejected),
    };
    let token = credentials::token(request.headers(), request.uri())?;
    let grant = grant(&gateway, &peer, token).await?;
    let on_upgrade = hyper::upgrade::on(&mut request);
    next.put(begin(gateway, peer, on_upgrade, grant));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    Ok(response)
}

async fn begin(gateway: Arc<Gateway>, peer: Peer, on_upgrade: OnUpgrade, grant: Option<Grant>) {
    // A client that is gone before its session began needs no answer.
    let Ok(upgraded) = on_upgrade.await else {
        return;
    };
    let Ok(Parts { io, read_buf, .. }) = Upgraded::downcast::<TokioIo<Transport>>(upgraded) else {
        return;
    };
    Session::serve(gateway, io.into_inner(), peer, &read_buf, grant).await;
}

/// Checks the handshake and answers its key.
fn accept_key(request: &Request) -> Result<HeaderValue, Box<Response>> {
    let headers = request.headers();
    let bad = |reason: &str| Box::new(http::error(ApiError::new(Code::BadFrame, reason)));
    let is_handshake = request.method() == Method::GET && request.version() == Version::HTTP_11;
    if !is_handshake || !is_upgrade(headers) {
        let message = "WebSocket endpoint: use GET, HTTP/1.1 and an Upgrade header";
        let mut response = bad(message);
        *response.status_mut() = StatusCode::UPGRADE_REQUIRED;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        return Err(response);
    }
    let version = headers.get(header::SEC_WEBSOCKET_VERSION);
    if version.is_none_or(|version| version.as_bytes() != b"13") {
        let mut response = bad("only version 13 of the protocol is spoken");
        *response.status_mut() = StatusCode::UPGRADE_REQUIRED;
        let headers = response.headers_mut();
        headers.insert(
            header::SEC_WEBSOCKET_VERSION,
            HeaderValue::from_static("13"),
        );
        return Err(response);
    }
    let mut keys = headers.get_all(header::SEC_WEBSOCKET_KEY).iter();
    let key = keys.next().filter(|key| key.len() == KEY_BYTES);
    let key = key.filter(|_| keys.next().is_none());
    let key = key.ok_or_else(|| bad("expected one Sec-WebSocket-Key header of 24 characters"))?;
    let mut digest = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    digest.update(key.as_bytes());
    digest.update(KEY_SUFFIX);
    let accept = BASE64.encode(digest.finish());
    HeaderValue::try_from(accept).map_err(|_| bad("invalid Sec-WebSocket-Key"))
}

/// The rights of a token or of a certificate. Without either the session waits for AUTH, unless auth is off.
async fn grant(
    gateway: &Gateway,
    peer: &Peer,
    token: Option<String>,
) -> Result<Option<Grant>, ApiError> {
    if token.is_none() && !gateway.auth.is_off() {
        let subject = peer.subject.as_deref();
        return Ok(subject.and_then(|subject| gateway.auth.client(subject)));
    }
    let granted = gateway
        .auth
        .authenticate(token.as_deref(), gateway.now_ms());
    Ok(Some(granted.await?))
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    texts
        .flat_map(|text| text.split(','))
        .any(|found| found.trim().eq_ignore_ascii_case(token))
}
