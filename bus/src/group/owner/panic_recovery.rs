//! Recovery from a panic of the owner: the group continues from its record, with the members it had.

use super::{Existence, FlushSchedule, Owner, Stop};
use crate::error::AckPublishError;
use crate::group::state::GroupState;
use crate::group::subscriber::Ended;
use std::time::Duration;

/// How long an owner waits after a panic, so that a repeated one is no hot loop.
const REST_MS: u64 = 1_000;
/// How often it tries to read the group's record after a panic.
const MAX_LOADS: usize = 30;

impl Owner {
    /// Reloads the group's record. Leases end, and settlements that were not written are lost.
    pub(super) async fn rebuild(&mut self, panic: &str) -> Option<Stop> {
        tracing::error!(topic = %self.name.topic, group = %self.name.group, panic, "a group's owner panicked");
        self.panicked = Some(panic.to_owned());
        self.reservations.clear();
        for member in &self.members {
            member.subscriber.reclaim(member.id, |_| true);
            let held = self.state.held_by(member.id);
            member.subscriber.credit.release(held, &self.inbox);
        }
        self.return_credit();
        self.pending_read = None;
        self.originals_read = None;
        self.dead_letters.clear();
        self.fail_ack_publishes(&AckPublishError::Gone);
        // A pending write may happen or not; the reloaded record says which.
        self.pending_write = None;
        if self.existence == Existence::Ephemeral {
            self.replace_state(self.state.cursor());
            return None;
        }
        for _ in 0..MAX_LOADS {
            tokio::time::sleep(Duration::from_millis(REST_MS)).await;
            let replaced = self.state.clone();
            if self.load().await.is_ok() {
                self.revoke_all(replaced.assignments());
                if self.existence == Existence::Absent {
                    return Some(Stop::Abandoning(Ended::GroupRemoved));
                }
                self.state.resume_leases(&replaced);
                self.rejoin_members();
                return None;
            }
        }
        Some(Stop::Abandoning(Ended::TakenOver))
    }

    /// An ephemeral group continues after what is settled.
    fn replace_state(&mut self, cursor: u64) {
        let mut state =
            GroupState::new(super::rules(&self.core, &self.name), cursor, self.now_ms());
        *state.settings_mut() = self.state.settings().clone();
        state.resume_counts(*self.state.counts());
        state.resume_leases(&self.state);
        state.resume_pause(&self.state);
        self.state = state;
        self.rejoin_members();
    }

    /// Gives the members to a state that was loaded anew.
    pub(super) fn rejoin_members(&mut self) {
        self.flush_schedule = FlushSchedule::default();
        for member in &self.members {
            self.state.join(member.id, member.subscriber.name.clone());
            self.state.set_ack_timeout(member.id, member.ack_timeout_ms);
        }
    }
}
