//! What a client sends: the op decides which fields are read.

use super::{Ack, Auth, Frame, GroupName, Modack, Nack, Partitions, Publish, Subscribe};
use crate::scan::{ScanError, Scanner};
use std::borrow::Cow;

/// A frame from a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFrame<'a> {
    /// Echoed in the reply.
    pub corr: Option<Cow<'a, str>>,
    /// What is requested.
    pub request: Request<'a>,
}

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the op of its name")]
pub enum Request<'a> {
    Auth(Auth<'a>),
    Publish(Publish<'a>),
    Subscribe(Subscribe<'a>),
    Unsubscribe(GroupName<'a>),
    Ack(Ack<'a>),
    Nack(Nack<'a>),
    Modack(Modack<'a>),
    Pause(GroupName<'a>),
    Resume(GroupName<'a>),
    Revoked(Partitions<'a>),
}

impl<'a> Frame<'a> for ClientFrame<'a> {
    const MUST_BE_CLOSED: bool = true;

    #[inline]
    fn read(scanner: &mut Scanner<'a>, op: &str) -> Result<Self, ScanError> {
        let mut corr = None;
        let request = match op {
            "PUBLISH" => Request::Publish(Publish::read(scanner, &mut corr)?),
            "ACK" => Request::Ack(Ack::read(scanner, &mut corr)?),
            "NACK" => Request::Nack(Nack::read(scanner, &mut corr)?),
            "MODACK" => Request::Modack(Modack::read(scanner, &mut corr)?),
            "AUTH" => Request::Auth(Auth::read(scanner, &mut corr)?),
            "SUBSCRIBE" => Request::Subscribe(Subscribe::read(scanner, &mut corr)?),
            "UNSUBSCRIBE" => Request::Unsubscribe(GroupName::read(scanner, &mut corr)?),
            "PAUSE" => Request::Pause(GroupName::read(scanner, &mut corr)?),
            "RESUME" => Request::Resume(GroupName::read(scanner, &mut corr)?),
            "REVOKED" => Request::Revoked(Partitions::read(scanner, &mut corr)?),
            _ => return Err(ScanError::unknown_op(op)),
        };
        Ok(Self { corr, request })
    }
}
