//! Opening a connection: the socket, and AUTH.

use super::Link;
use crate::core::Core;
use crate::endpoint::Endpoint;
use crate::error::{ConnectError, ServerError};
use crate::socket::{Incoming, Socket, SocketError};
use crate::token::Token;
use prombus_api::frames::{Auth, ErrorFrame, ServerFrame, ServerFrames, write_auth};
use std::borrow::Cow;
use std::future::poll_fn;

/// A connection that the server lets in.
pub(super) struct Connected {
    pub(super) socket: Socket,
    pub(super) token: Option<Token>,
}

/// What AUTH is called in its answer.
pub(super) const AUTH_CORR: &str = "auth";

impl Link {
    /// Connects and authenticates, within `handshake_timeout`.
    pub(super) async fn connect(&mut self) -> Result<Connected, ConnectError> {
        let source = &self.core.options.token;
        let no_token = |why| ConnectError::NoToken { why };
        let token = source.token().await.map_err(no_token)?;
        let timeout = self.core.options.handshake_timeout;
        let shaking_hands = tokio::time::timeout(timeout, handshake(&self.core, token.as_ref()));
        let shaken = shaking_hands.await.unwrap_or_else(|_| {
            Err(ConnectError::Timeout {
                url: self.core.endpoint.name(),
                timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            })
        });
        let text = token.as_ref().map(|token| &token.text);
        match shaken {
            // A provider may have a better one next time, but the same one is not tried twice.
            Err(ConnectError::Refused(error))
                if source.is_fresh() && self.refused_token.as_ref() != text =>
            {
                self.refused_token = text.cloned();
                let why = format!("the token was refused: {error}");
                Err(ConnectError::NoToken { why })
            }
            Err(error) => Err(error),
            Ok(socket) => {
                self.refused_token = None;
                Ok(Connected { socket, token })
            }
        }
    }
}

async fn handshake(core: &Core, token: Option<&Token>) -> Result<Socket, ConnectError> {
    let options = &core.options;
    let endpoint = &core.endpoint;
    let connecting = Socket::connect(endpoint, options);
    let mut socket = connecting.await.map_err(|why| broken(endpoint, &why))?;
    socket
        .send(auth_frame(token))
        .map_err(|why| broken(endpoint, &why))?;
    poll_fn(|context| socket.poll_flush(context))
        .await
        .map_err(|why| broken(endpoint, &why))?;
    loop {
        let message = match poll_fn(|context| socket.poll_message(context)).await {
            Some(Ok(Incoming::Text(message))) => message,
            Some(Ok(Incoming::Alive)) => continue,
            Some(Err(why)) => return Err(broken(endpoint, &why)),
            None => return Err(closed(endpoint)),
        };
        for frame in ServerFrames::new(message.as_str()) {
            match frame {
                Ok(ServerFrame::Ok(ok)) if ok.corr.as_deref() == Some(AUTH_CORR) => {
                    return Ok(socket);
                }
                Ok(ServerFrame::Error(error)) => return Err(refusal(endpoint, &error)),
                // Frames that a newer server may send are not for this version.
                Ok(_) => {}
                Err(error) if error.code == prombus_api::Code::UnknownOp => {}
                Err(error) => return Err(protocol(endpoint, error.message)),
            }
        }
    }
}

/// The AUTH frame, which also asks for arrays.
pub(super) fn auth_frame(token: Option<&Token>) -> Vec<u8> {
    let mut frame = Vec::new();
    let auth = Auth {
        token: token.map(|token| Cow::Borrowed(token.text.as_str())),
        batch: true,
    };
    write_auth(&mut frame, &auth, Some(AUTH_CORR));
    frame
}

/// What the server's refusal of AUTH means.
fn refusal(endpoint: &Endpoint, error: &ErrorFrame<'_>) -> ConnectError {
    let error = server_error(error);
    if is_about_token(&error.code) {
        ConnectError::Refused(error)
    } else {
        ConnectError::Unreachable {
            url: endpoint.name(),
            why: error.to_string(),
        }
    }
}

/// Whether another token is needed.
fn is_about_token(code: &str) -> bool {
    matches!(
        code,
        "bad_token" | "unauthorized" | "token_expired" | "forbidden"
    )
}

pub(super) fn server_error(error: &ErrorFrame<'_>) -> ServerError {
    ServerError {
        code: error.code.clone().into_owned(),
        message: error.message.clone().into_owned(),
        retry_after_ms: error.details.retry_after_ms,
        actual: error.details.actual,
    }
}

pub(super) fn broken(endpoint: &Endpoint, why: &SocketError) -> ConnectError {
    match why {
        SocketError::Gone(why) => ConnectError::Unreachable {
            url: endpoint.name(),
            why: why.clone(),
        },
        SocketError::Protocol(why) => protocol(endpoint, why.clone()),
    }
}

pub(super) fn protocol(endpoint: &Endpoint, why: String) -> ConnectError {
    ConnectError::Protocol {
        url: endpoint.name(),
        why,
    }
}

pub(super) fn closed(endpoint: &Endpoint) -> ConnectError {
    ConnectError::Unreachable {
        url: endpoint.name(),
        why: "the server closed the connection".to_owned(),
    }
}
