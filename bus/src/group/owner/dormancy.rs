//! Dormancy: an owner whose members all follow a pattern ends when there is nothing to do, and the followers start it
//! again when there is. So a pattern over many topics costs memory for those that are busy only.
//!
//! Where a subscription is served from more topics than it may be at a time, an owner that had its turn also makes room
//! when it has more to deliver: the follower puts its topic at the end of the line.

use super::{Existence, Owner};

impl Owner {
    /// Ends the service where that is due, and says whether it did.
    pub(super) async fn sleep_if_due(&mut self, now_ms: u64) -> bool {
        let is_due = self.may_sleep() && self.is_sleep_due(now_ms) && !self.inbox.has_commands();
        is_due && self.release_ownership().await && self.retire() && {
            self.leave_followers();
            true
        }
    }

    /// When the owner ends, should nothing happen until then.
    pub(super) fn dormant_at_ms(&self) -> Option<u64> {
        let since_ms = self.idle_since_ms?;
        Some(since_ms.saturating_add(self.core.options.dormant_after_ms))
    }

    /// Whether there is nothing to do here, and other topics of the pattern wait for their turn.
    pub(super) fn is_others_turn(&self) -> bool {
        self.has_only_followers()
            && self.is_crowded()
            && self.state.is_at_rest()
            && self.is_caught_up()
    }

    pub(super) fn has_only_followers(&self) -> bool {
        !self.members.is_empty() && self.members.iter().all(|member| member.follows_pattern)
    }

    /// Whether a member is served from as many topics as it may be, or from half of them while others wait: so there is
    /// room for many at a time, whose records are written together.
    pub(super) fn is_crowded(&self) -> bool {
        let most = self.core.options.pattern_topics;
        self.members.iter().any(|member| {
            let joined = member.subscriber.attached_groups();
            joined >= most || joined > most / 2 && member.subscriber.has_waiting_topics()
        })
    }

    /// How many topics the member is served from that is served from the most.
    fn most_joined(&self) -> usize {
        let members = self.members.iter();
        let joined = members.map(|member| member.subscriber.attached_groups());
        joined.max().unwrap_or_default()
    }

    /// Whether the record says all there is, no member holds anything, and followers look after every member.
    fn may_sleep(&mut self) -> bool {
        let may_sleep = self.has_only_followers()
            && self.existence != Existence::Absent
            && self.pending_read.is_none()
            && self.state.is_at_rest()
            && !self.is_paused()
            && self.is_written();
        if !may_sleep {
            self.idle_since_ms = None;
        }
        may_sleep
    }

    fn is_sleep_due(&mut self, now_ms: u64) -> bool {
        let joined = self.most_joined();
        let most = self.core.options.pattern_topics;
        if !self.is_caught_up() {
            self.idle_since_ms = None;
            return joined > most && self.may_yield();
        }
        self.idle_since_ms.get_or_insert(now_ms);
        self.is_crowded() || self.dormant_at_ms().is_some_and(|at_ms| at_ms <= now_ms)
    }

    fn is_caught_up(&self) -> bool {
        self.state.is_settled() && self.state.read_from() > self.tail.current()
    }

    /// Whether it had its turn, and what is left was never given to anyone, so that no acknowledgement of it can come.
    /// Nothing of an ephemeral group is stored, so that it could not go on where it was.
    fn may_yield(&self) -> bool {
        self.existence != Existence::Ephemeral
            && self.state.counts().delivered > self.delivered_at_start
            && self.state.is_undelivered()
    }

    /// Lets go of the members. Their followers look at the topic once more, so that nothing that came meanwhile is
    /// missed.
    pub(super) fn leave_followers(&mut self) {
        self.reservations.clear();
        self.inbox.sleep(self.state.cursor(), self.incarnation);
        for member in std::mem::take(&mut self.members) {
            member.subscriber.credit.dequeue(&self.inbox);
            member.subscriber.leave_dormant(&self.name.topic);
        }
    }
}
