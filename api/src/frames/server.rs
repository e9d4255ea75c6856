//! What a server sends.

use super::{ErrorFrame, EventFrame, Frame, OkFrame, Partitions};
use crate::scan::{ScanError, Scanner};

/// A frame from a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "events are what nearly all frames are"
)]
pub enum ServerFrame<'a> {
    /// Something was done.
    Ok(OkFrame<'a>),
    /// Something was not done.
    Error(ErrorFrame<'a>),
    /// An event is delivered.
    Event(EventFrame<'a>),
    /// Partitions come to this subscription from now on.
    Assign(Partitions<'a>),
    /// Partitions go to another member, once this one is done with them.
    Revoke(Partitions<'a>),
}

impl<'a> Frame<'a> for ServerFrame<'a> {
    const MUST_BE_CLOSED: bool = false;

    #[inline]
    fn read(scanner: &mut Scanner<'a>, op: &str) -> Result<Self, ScanError> {
        match op {
            "EVENT" => EventFrame::read(scanner).map(Self::Event),
            "OK" => OkFrame::read(scanner).map(Self::Ok),
            "ERR" => ErrorFrame::read(scanner).map(Self::Error),
            "ASSIGN" => Partitions::read(scanner, &mut None).map(Self::Assign),
            "REVOKE" => Partitions::read(scanner, &mut None).map(Self::Revoke),
            _ => Err(ScanError::unknown_op(op)),
        }
    }
}
