//! A subscription's place in one group. Letting go of it frees its leases at once.

use super::command::Command;
use super::inbox::{Inbox, Message};
use super::state::MemberId;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A place in a group.
pub(crate) struct Membership {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) member: MemberId,
    /// Weak, so that a subscription does not keep a bus open that everybody else has let go.
    pub(crate) commands: mpsc::WeakSender<Command>,
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.inbox.push(Message::Leave(self.member));
    }
}
