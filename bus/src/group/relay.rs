//! Members on nodes that do not own their group, where several nodes share a store.
//!
//! ```text
//!   member ── session ── Subscriber ◀── Relay ═══ link ═══ Host ── Subscriber ◀── Owner
//!                            ▲       (any node)        (the owner's node)
//!                            └── events, from this node's copy
//! ```
//! Only leases travel: a grant is a position, a lease number, an attempt and the time that is left, and the relay reads the
//! event from its own node's copy. So a link carries a few dozen bytes for each event, however large it is, and what waits in
//! memory is bounded where the member is, by the same credit as everywhere.
//!
//! The relay is an [`Owner`](super::owner::Owner) that found another node's name in the group's record. It takes the same
//! commands and fills the same mailboxes, so sessions, pulling over HTTP and everything else notice nothing. There is one
//! link for each group and node. Nodes know each other by a secret in the store that they share, so no member's token has to
//! travel; what a member may do was decided where it connected.
//!
//! A link that breaks says nothing about the members behind it: the owner keeps their leases until their deadlines, unless the
//! relay said goodbye or its process is known to be gone. A relay that connects again, to the same owner or to the next one,
//! reports what its members hold, and these leases go on.
//!
//! A node that has no members of a group and is asked about it asks the owner's node in turn, over a link that carries
//! nothing but questions and answers (`question.rs`).

mod errors;
mod host;
mod lingering;
mod link;
mod question;
mod wire;

pub(crate) use errors::{WireAckPublishError, WireGroupError, WireSettleError};
pub(crate) use host::serve;
pub(crate) use lingering::Lingering;
pub use link::{LinkReceiver, LinkSender, NodeDialer, NodeLink};
pub(crate) use question::AskedNodes;
pub(crate) use wire::{
    FromOwner, FromRelay, Grant, Lease, WireCommand, WireEnded, WireHeld, WireJoin, WirePublished,
    WireReply, WireSettings, decode, encode,
};

use std::time::Duration;

/// How often an owner's node shows on a link that it is there.
pub(crate) const LINK_BEAT: Duration = Duration::from_millis(250);
/// After what time without anything on a link the other side is looked at.
pub(crate) const LINK_SILENT: Duration = Duration::from_millis(1_000);
/// How long connecting may take, and the first message.
pub(crate) const LINK_TIMEOUT: Duration = Duration::from_secs(1);
