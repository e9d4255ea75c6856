//! Bodies of requests as they arrive: bounded in size, and not waited for for ever.

use crate::denied::Denied;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, header};
use prombus_api::Code;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep, timeout};

/// How much of a body that nobody wants any more is read, so that its sender sees the reply.
const MAX_DISCARDED_BYTES: usize = 1 << 20;
/// How long that may take.
const MAX_DISCARDING_MS: u64 = 1_000;

/// A body that arrives piece by piece.
pub(super) struct Arriving {
    body: Body,
    timeout: Duration,
    /// When the next piece has to be there.
    deadline: Pin<Box<Sleep>>,
}

impl Arriving {
    pub(super) fn new(body: Body, timeout_ms: u64) -> Self {
        let timeout = Duration::from_millis(timeout_ms);
        Self {
            body,
            timeout,
            deadline: Box::pin(sleep(timeout)),
        }
    }

    /// The next piece; `None` at the end. Nothing is lost where it is dropped before it is ready.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Denied> {
        loop {
            let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context));
            let frame = tokio::select! {
                biased;
                frame = frame => frame,
                () = &mut self.deadline => return Err(late()),
            };
            self.restart();
            match frame {
                None => return Ok(None),
                Some(Err(_)) => return Err(broken_off()),
                // Trailers are not looked at.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => return Ok(Some(bytes)),
                    Err(_) => continue,
                },
            }
        }
    }

    /// Reads on for a while and forgets what comes. A client that is still sending when the connection is closed may
    /// never see the reply, so one that nearly is at its end gets to it.
    pub(super) async fn discard(&mut self) {
        let mut bytes = 0;
        let reading = async {
            while let Ok(Some(piece)) = self.next().await {
                bytes += piece.len();
                if bytes > MAX_DISCARDED_BYTES {
                    return;
                }
            }
        };
        // When the time is over it is closed all the same.
        let _ = timeout(Duration::from_millis(MAX_DISCARDING_MS), reading).await;
    }

    /// Gives the next piece its full time, after the server was what it had to wait for.
    pub(super) fn restart(&mut self) {
        self.deadline.as_mut().reset(Instant::now() + self.timeout);
    }
}

/// A whole body of at most `limit` bytes. One that is larger is refused without reading on.
pub(super) async fn whole(
    body: Body,
    headers: &HeaderMap,
    limit: usize,
    timeout_ms: u64,
) -> Result<Bytes, Denied> {
    let announced = headers.get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    let mut arriving = Arriving::new(body, timeout_ms);
    let Some(first) = arriving.next().await? else {
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
        next = arriving.next().await?;
    }
    Ok(all.into())
}

fn too_large(limit: usize) -> Denied {
    Denied::new(
        Code::TooLarge,
        format!("the body is larger than {limit} bytes"),
    )
}

fn late() -> Denied {
    Denied::new(Code::Timeout, "the body did not arrive in time")
}

fn broken_off() -> Denied {
    Denied::new(Code::BadFrame, "the body broke off in the middle")
}
