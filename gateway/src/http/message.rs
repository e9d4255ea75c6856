//! What requests and replies are made of: hyper's types, with the bodies that this server reads and sends.

use super::stream::{StreamError, Streamed};
use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

pub(crate) type Request = hyper::Request<Incoming>;
pub(crate) type Response = hyper::Response<Body>;

/// The body of a reply. It is no trait object, so that small replies need no memory beside their bytes.
#[derive(Debug)]
pub(crate) enum Body {
    /// Bytes that are all there, and go out at once.
    Full(Bytes),
    /// Pieces that are made while they are sent.
    Streamed(Streamed),
}

impl Body {
    pub(crate) const fn empty() -> Self {
        Self::Full(Bytes::new())
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self::Full(bytes.into())
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let piece = match self.get_mut() {
            Self::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Full(bytes) => Poll::Ready(Some(Ok(mem::take(bytes)))),
            Self::Streamed(pieces) => pieces.poll_next(context),
        };
        piece.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(bytes) if bytes.is_empty())
    }

    /// Known for full bodies, which are sent with their length, and not for streamed ones, which are sent in chunks.
    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Streamed(_) => SizeHint::default(),
        }
    }
}
