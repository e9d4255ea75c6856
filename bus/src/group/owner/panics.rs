//! What happens when an owner panics: its group goes on from what is stored, with the members it had.

use super::{Existence, Flushing, Owner, Stop};
use crate::error::StepError;
use crate::group::state::GroupState;
use crate::group::subscriber::Ended;
use std::time::Duration;

/// How long an owner rests after a panic, so that one that comes again and again is no hot loop.
const REST_MS: u64 = 1_000;
/// How often it tries to read the group's record after a panic.
const MAX_LOADS: usize = 30;

impl Owner {
    /// Begins again from the group's record. Leases end, and what was not written happens again.
    pub(super) async fn rebuild(&mut self, panic: &str) -> Option<Stop> {
        tracing::error!(topic = %self.name.topic, group = %self.name.group, panic, "a group's owner panicked");
        self.panicked = Some(panic.to_owned());
        self.reservations.clear();
        for member in &self.members {
            member.subscriber.take_back(member.id, |_| true);
            let held = self.state.held_by(member.id);
            member.subscriber.credit.give(held, &self.inbox);
        }
        self.return_credit();
        self.reading = None;
        self.gathering = None;
        self.burial.clear();
        self.refuse_steps(&StepError::Gone);
        // A write that is under way may happen or not; what is read next says which.
        self.writing = None;
        if self.existence == Existence::Ephemeral {
            self.replace_state(self.state.cursor());
            return None;
        }
        for _ in 0..MAX_LOADS {
            tokio::time::sleep(Duration::from_millis(REST_MS)).await;
            let replaced = self.state.clone();
            if self.load().await.is_ok() {
                if self.existence == Existence::Absent {
                    return Some(Stop::Abandoning(Ended::GroupRemoved));
                }
                self.state.resume_leases(&replaced);
                self.seat_members();
                return None;
            }
        }
        Some(Stop::Abandoning(Ended::TakenOver))
    }

    /// A group of which nothing is stored begins behind what is settled.
    fn replace_state(&mut self, cursor: u64) {
        let mut state =
            GroupState::new(super::rules(&self.core, &self.name), cursor, self.now_ms());
        *state.settings_mut() = self.state.settings().clone();
        state.resume_counts(*self.state.counts());
        state.resume_leases(&self.state);
        self.state = state;
        self.seat_members();
    }

    fn seat_members(&mut self) {
        self.flushing = Flushing::default();
        for member in &self.members {
            self.state.join(member.id, member.subscriber.name.clone());
            self.state.set_ack_timeout(member.id, member.ack_timeout_ms);
        }
    }
}
