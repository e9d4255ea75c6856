//! Pausing the whole group: no member of any connection is given events until it is resumed, also after a restart.
//! Leases that members hold go on.

use super::{Existence, Owner};
use crate::error::GroupError;
use prombus_interface::GroupInfo;

impl Owner {
    /// Pauses the group or lets it go on, durably.
    pub(super) async fn set_paused(&mut self, paused: bool) -> Result<GroupInfo, GroupError> {
        if self.existence == Existence::Absent || self.is_stale() {
            return Err(self.unknown());
        }
        let now_ms = self.now_ms();
        self.state.set_paused(paused, now_ms);
        if paused {
            self.return_undelivered();
        }
        if !self.is_clean() {
            self.flush_and_wait().await?;
        }
        self.describe()
    }

    /// What a paused group has for its members goes back: events in mailboxes, and those that are ready.
    pub(super) fn return_undelivered(&mut self) {
        for member in &self.members {
            let untaken = member.subscriber.reclaim(member.id, |_| true);
            self.state.release(member.id, &untaken);
        }
        self.hold_back();
        self.return_credit();
    }

    /// Lets go of what is ready and of the room that was kept for it.
    pub(super) fn hold_back(&mut self) {
        self.state.shed_ready();
        self.page = None;
        if self.pending_read.is_none() {
            self.reservations.clear();
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.state.paused_since_ms().is_some()
    }
}
