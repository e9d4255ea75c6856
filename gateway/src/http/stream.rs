//! Bodies of replies that are made while they are sent. A task makes pieces ahead of the socket, as many as the
//! channel holds; when the client goes away, the task ends.

use super::message::Body;
use hyper::body::Bytes;
use std::future::Future;
use std::task::{Context, Poll};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// How many pieces wait for the socket.
const PIECES_AHEAD: usize = 4;

/// The rest of the body cannot be made. The client sees the body break off, so that it does not take it for whole.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct StreamError(pub(super) String);

/// The client is gone.
#[derive(Debug)]
pub(super) struct Gone;

/// Where the pieces go.
#[derive(Debug, Clone)]
pub(super) struct ChunkSender(mpsc::Sender<Result<Bytes, StreamError>>);

/// The end of the channel that the socket takes pieces from.
#[derive(Debug)]
pub(crate) struct Streamed {
    chunks: mpsc::Receiver<Result<Bytes, StreamError>>,
    maker: AbortHandle,
}

/// A body out of the pieces that a task sends. Where the task fails, the body breaks off.
pub(super) fn body<F>(make: impl FnOnce(ChunkSender) -> F) -> Body
where
    F: Future<Output = Result<(), StreamError>> + Send + 'static,
{
    let (sender, chunks) = mpsc::channel(PIECES_AHEAD);
    let making = make(ChunkSender(sender.clone()));
    let maker = tokio::spawn(async move {
        if let Err(broken) = making.await {
            // The client may be gone.
            let _ = sender.send(Err(broken)).await;
        }
    });
    let maker = maker.abort_handle();
    Body::Streamed(Streamed { chunks, maker })
}

impl ChunkSender {
    /// Sends a piece, once there is room for it.
    pub(super) async fn send(&self, piece: Vec<u8>) -> Result<(), Gone> {
        if piece.is_empty() {
            return Ok(());
        }
        self.0.send(Ok(piece.into())).await.map_err(|_| Gone)
    }
}

impl Streamed {
    /// The next piece; `None` at the end.
    pub(super) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, StreamError>>> {
        self.chunks.poll_recv(context)
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        self.maker.abort();
    }
}
