//! WebSocket frames, both ways. A message is one JSON object or an array of them.
//!
//! Reading borrows from the message: strings without escapes and payloads are slices of it. A payload is passed on
//! with nothing checked but where it ends; the bus validates what it stores. Writing appends to a buffer that its
//! owner reuses.

mod auth;
mod client;
mod event;
mod group;
mod partitions;
mod publish;
mod reply;
mod server;
mod settle;
mod split;
mod subscribe;

pub use auth::{Auth, write_auth};
pub use client::{ClientFrame, Request};
pub(crate) use event::write_context;
pub use event::{DeliveryContext, EventFrame, write_event};
pub use group::{GroupName, write_pause, write_resume, write_unsubscribe};
pub use partitions::{Partitions, write_assign, write_revoke, write_revoked};
pub use publish::{Publish, write_publish};
pub use reply::{
    ErrorDetails, ErrorFrame, OkFrame, PublishedFrame, write_ack_published, write_also_published,
    write_error, write_ok, write_published, write_scheduled, write_subscribed,
};
pub use server::ServerFrame;
pub use settle::{Ack, Ids, Modack, Nack, write_ack, write_ack_publish, write_modack, write_nack};
use split::Frame;
pub use split::{ClientFrames, ServerFrames};
pub use subscribe::{Subscribe, write_subscribe};

use crate::scan::ScanError;

/// A field that has to be there.
#[inline]
pub(crate) fn required<T>(field: Option<T>, name: &str) -> Result<T, ScanError> {
    field.ok_or_else(|| ScanError::missing(name))
}

#[cfg(test)]
mod tests;
