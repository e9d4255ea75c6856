//! What a server sends.

use super::{ErrorFrame, EventFrame, Frame, OkFrame};
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
}

impl<'a> Frame<'a> for ServerFrame<'a> {
    const MUST_BE_CLOSED: bool = false;

    #[inline]
    fn read(scanner: &mut Scanner<'a>, op: &str) -> Result<Self, ScanError> {
        match op {
            "EVENT" => EventFrame::read(scanner).map(Self::Event),
            "OK" => OkFrame::read(scanner).map(Self::Ok),
            "ERR" => ErrorFrame::read(scanner).map(Self::Error),
            _ => Err(ScanError::unknown_op(op)),
        }
    }
}
