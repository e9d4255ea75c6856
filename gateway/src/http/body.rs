//! Request bodies: bounded in size, read with a timeout, and drained after an error.

use crate::api_error::ApiError;
use hyper::body::{Body as _, Bytes, Frame, Incoming};
use hyper::{HeaderMap, header};
use prombus::LockExt;
use prombus_api::Code;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep, timeout};

/// How much of a body is read and discarded after an error reply.
const MAX_LINGER_BYTES: usize = 64 << 20;
/// How long that may take.
const MAX_LINGER: Duration = Duration::from_secs(5);

/// The body of a request. Clones share it, so that what a handler leaves unread can be drained.
#[derive(Clone)]
pub(super) struct RequestBody(Arc<Mutex<State>>);

struct State {
    body: Incoming,
    /// The client sends nothing before it sees `100 Continue`, which the first read sends.
    awaits_continue: bool,
}

/// Reads a body piece by piece.
pub(super) struct BodyReader {
    body: RequestBody,
    timeout: Duration,
    /// When the next piece has to be there.
    deadline: Pin<Box<Sleep>>,
}

impl RequestBody {
    pub(super) fn new(body: Incoming, headers: &HeaderMap) -> Self {
        let awaits_continue = headers.contains_key(header::EXPECT);
        Self(Arc::new(Mutex::new(State {
            body,
            awaits_continue,
        })))
    }

    /// Lingering close: reads on for a while in the background and discards what comes. Closing a socket with unread
    /// input resets it, and a client that is still sending would see the reset instead of the reply.
    pub(super) fn linger(self) {
        let state = self.state();
        let is_over = state.awaits_continue || state.body.is_end_stream();
        drop(state);
        if is_over {
            return;
        }
        tokio::spawn(async move {
            let mut bytes = 0;
            let draining = async {
                while let Some(Ok(frame)) = poll_fn(|context| self.poll_frame(context)).await {
                    bytes += frame.data_ref().map_or(0, Bytes::len);
                    if bytes > MAX_LINGER_BYTES {
                        return;
                    }
                }
            };
            // When the time is over the connection is closed all the same.
            let _ = timeout(MAX_LINGER, draining).await;
        });
    }

    fn poll_frame(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut state = self.state();
        state.awaits_continue = false;
        Pin::new(&mut state.body).poll_frame(context)
    }

    /// The lock is never contended: the handler reads before the body is drained.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.guard()
    }
}

impl BodyReader {
    pub(super) fn new(body: RequestBody, timeout_ms: u64) -> Self {
        let timeout = Duration::from_millis(timeout_ms);
        Self {
            body,
            timeout,
            deadline: Box::pin(sleep(timeout)),
        }
    }

    /// The next piece; `None` at the end. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        loop {
            let frame = poll_fn(|context| self.body.poll_frame(context));
            let frame = tokio::select! {
                biased;
                frame = frame => frame,
                () = &mut self.deadline => return Err(timed_out()),
            };
            self.restart();
            match frame {
                None => return Ok(None),
                Some(Err(_)) => return Err(ended_early()),
                // Trailers are ignored.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => return Ok(Some(bytes)),
                    Err(_) => continue,
                },
            }
        }
    }

    /// Restarts the timeout, after the server was what the client had to wait for.
    pub(super) fn restart(&mut self) {
        self.deadline.as_mut().reset(Instant::now() + self.timeout);
    }
}

/// The length that a request announces.
pub(super) fn announced_bytes(headers: &HeaderMap) -> Option<u64> {
    let length = headers.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}

/// The whole body, of at most `limit` bytes. A larger one is rejected as soon as that is known.
pub(super) async fn whole(
    mut reader: BodyReader,
    announced: Option<u64>,
    limit: usize,
) -> Result<Bytes, ApiError> {
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    let Some(first) = reader.next().await? else {
        return Ok(Bytes::new());
    };
    let mut all: Vec<u8> = Vec::new();
    let mut next = Some(first);
    while let Some(piece) = next {
        if all.len() + piece.len() > limit {
            return Err(too_large(limit));
        }
        let is_all = announced == Some(piece.len() as u64);
        if all.is_empty() && is_all {
            return Ok(piece);
        }
        all.extend_from_slice(&piece);
        next = reader.next().await?;
    }
    Ok(all.into())
}

fn too_large(limit: usize) -> ApiError {
    let message = format!("body is larger than {limit} bytes");
    ApiError::new(Code::TooLarge, message)
}

fn timed_out() -> ApiError {
    ApiError::new(Code::Timeout, "timed out reading the body")
}

fn ended_early() -> ApiError {
    ApiError::new(Code::BadFrame, "body ended early")
}
