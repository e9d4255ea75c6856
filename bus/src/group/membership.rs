//! A subscription's place in one group. Letting go of it frees its leases at once.

use super::inbox::{Inbox, Message};
use super::state::MemberId;
use std::sync::Arc;

/// A place in a group.
pub(crate) struct Membership {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) member: MemberId,
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.inbox.push(Message::Leave(self.member));
    }
}
