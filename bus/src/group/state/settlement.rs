//! How an event ends: acknowledged, failed and brought back, or failed for the last time.

use super::slot::{Slot, Stage};
use super::{ExhaustedPolicy, GroupState, MemberId, Retry};
use crate::group::history::{Attempt, History};
use serde::{Deserialize, Serialize};

/// The longest that a negative acknowledgement can delay the next delivery.
pub(super) const MAX_RETRY_DELAY_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// What became of an acknowledgement, its opposite or an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Settled {
    /// It did what it says.
    Done,
    /// There was nothing left to do, which is fine.
    Already,
    /// Another member holds the event, or the lease was void; nothing happened.
    LeaseLost,
    /// The group has not read that far, or no member holds the event.
    Unknown,
}

impl GroupState {
    /// Settles an event. Late is fine unless another member holds it by now.
    pub(crate) fn ack(
        &mut self,
        member: MemberId,
        seq: u64,
        number: Option<u64>,
        now_ms: u64,
    ) -> Settled {
        if number.is_some_and(|number| number < self.first_valid_lease) {
            return Settled::LeaseLost;
        }
        let Some(slot) = self.unsettled.get(seq) else {
            return match self.settled_or_unknown(seq) {
                Settled::Unknown if self.is_adopted_by_another(member, seq) => Settled::LeaseLost,
                Settled::Unknown => self.settle_ahead(seq),
                settled => settled,
            };
        };
        match slot.stage {
            Stage::Leased(lease) | Stage::Pinned(lease) if lease.member != member => {
                return Settled::LeaseLost;
            }
            // Its dead letter or its transaction is being written, which settles it too.
            Stage::DeadLettering | Stage::Pinned(_) | Stage::PinnedLate { .. } => {
                return Settled::Already;
            }
            _ => {}
        }
        self.settle(seq, now_ms);
        self.counts.acked += 1;
        Settled::Done
    }

    /// Brings an event back, unless its lease has ended already.
    pub(crate) fn nack(
        &mut self,
        member: MemberId,
        seq: u64,
        number: Option<u64>,
        reason: &str,
        retry: Retry,
        now_ms: u64,
    ) -> Settled {
        if number.is_some_and(|number| number < self.first_valid_lease) {
            return Settled::LeaseLost;
        }
        let Some(slot) = self.unsettled.get(seq) else {
            if self.fail_adopted(Some(member), seq, reason, retry, now_ms) {
                self.counts.nacked += 1;
                return Settled::Done;
            }
            return self.settled_or_unknown(seq);
        };
        let Stage::Leased(lease) = slot.stage else {
            return Settled::Already;
        };
        if lease.member != member || number.is_some_and(|number| number != lease.number) {
            return Settled::LeaseLost;
        }
        self.counts.nacked += 1;
        self.fail(seq, reason, retry, now_ms);
        Settled::Done
    }

    /// Ends the lease of an event in failure, and decides when it comes back or that it dies.
    pub(super) fn fail(&mut self, seq: u64, reason: &str, retry: Retry, now_ms: u64) {
        let member_state = self
            .lease_of(seq)
            .and_then(|lease| self.member_states.get(&lease.member));
        let member = member_state.map(|member_state| member_state.name.clone());
        let Some(lease) = self.end_lease(seq) else {
            return;
        };
        let Some(slot) = self.unsettled.get_mut(seq) else {
            return;
        };
        let attempt = slot.attempt();
        let offset_ms = self.rules.wall_offset_ms;
        let ended = Attempt {
            member: member.unwrap_or_default(),
            start: lease.started_ms.saturating_add_signed(offset_ms),
            end: now_ms.saturating_add_signed(offset_ms),
            reason: reason.to_owned(),
        };
        let history = slot.history.get_or_insert_default();
        match retry {
            Retry::AtOnce => history.record_lost(attempt, ended),
            Retry::Backoff | Retry::After { .. } => history.note(attempt, ended),
        }
        let delay_ms = self.delay_ms(seq, attempt, retry);
        self.set_stage(
            seq,
            Stage::BlockedByKey {
                due_ms: now_ms.saturating_add(delay_ms),
            },
        );
        if self.schedule(seq, now_ms) {
            self.set_missing(seq);
        }
    }

    /// Takes up to `count` events whose dead letters are to be written, each with its history. They stay unsettled
    /// until [`Self::buried`].
    pub(crate) fn take_dead_lettering(&mut self, count: usize) -> Vec<(u64, History)> {
        let count = count.min(self.dead_lettering.len());
        let taken: Vec<u64> = self.dead_lettering.drain(..count).collect();
        taken
            .into_iter()
            .filter_map(|seq| {
                let history = self.unsettled.get(seq)?.history.as_deref().cloned();
                Some((seq, history.unwrap_or_default()))
            })
            .collect()
    }

    pub(crate) fn has_dead_lettering(&self) -> bool {
        !self.dead_lettering.is_empty()
    }

    /// Settles events whose dead letters are written.
    pub(crate) fn dead_lettered(&mut self, seqs: &[u64], now_ms: u64) {
        for &seq in seqs {
            if self.is_dead_lettering(seq) && self.settle(seq, now_ms) {
                self.counts.dead_lettered += 1;
            }
        }
    }

    /// Settles events that the stored record turned out to have as settled.
    pub(crate) fn mark_settled(&mut self, seqs: &[u64], now_ms: u64) {
        for &seq in seqs {
            self.settle(seq, now_ms);
        }
    }

    /// Queues events again whose dead letters could not be written.
    pub(crate) fn dead_letter_failed(&mut self, seqs: &[u64]) {
        for &seq in seqs.iter().rev() {
            if self.is_dead_lettering(seq) {
                self.dead_lettering.push_front(seq);
            }
        }
    }

    /// Removes an event, whatever stage it is in, and lets the next of its lane go; `false` where it was settled.
    pub(super) fn settle(&mut self, seq: u64, now_ms: u64) -> bool {
        self.end_lease(seq);
        let Some(slot) = self.unsettled.remove(seq) else {
            return false;
        };
        self.changes += 1;
        match slot.stage {
            Stage::Waiting { .. } => self.timed -= 1,
            Stage::Missing | Stage::Ready => self.queues.remove(slot.queue, seq),
            Stage::Leased(_)
            | Stage::BlockedByKey { .. }
            | Stage::DeadLettering
            | Stage::Pinned(_)
            | Stage::PinnedLate { .. } => {}
        }
        if let Some(id) = &slot.client_id {
            self.client_ids.remove(id);
        }
        match (slot.lane, slot.stage) {
            (Some(lane), Stage::BlockedByKey { .. }) => self.lanes.leave(lane, seq),
            (Some(lane), _) => {
                self.free_lane(lane, now_ms);
            }
            (None, _) => {}
        }
        true
    }

    pub(super) fn is_exhausted(&self, slot: &Slot) -> bool {
        let Some(history) = &slot.history else {
            return false;
        };
        // Deliveries that ended with their member or the server do not give an event up by themselves, unless they are
        // many.
        let counts = !history.is_last_lost || history.lost >= self.rules.max_lost_attempts;
        self.rules.exhausted_policy != ExhaustedPolicy::RetryForever
            && counts
            && history.attempts >= self.rules.settings.max_attempts
    }

    /// Settles an event that the group has not read since it was loaded: no member holds it, so a late
    /// acknowledgement counts.
    fn settle_ahead(&mut self, seq: u64) -> Settled {
        // What was delivered before the cursor was set back is to come again.
        if seq <= self.void_until || self.settled_ahead.len() >= self.rules.window {
            return Settled::LeaseLost;
        }
        self.end_adopted(seq);
        self.settled_ahead.insert(seq);
        self.restored.remove(&seq);
        self.changes += 1;
        self.counts.acked += 1;
        self.passed(0);
        Settled::Done
    }

    /// Not so any more where the cursor was set meanwhile.
    pub(crate) fn is_dead_lettering(&self, seq: u64) -> bool {
        self.unsettled
            .get(seq)
            .is_some_and(|slot| slot.stage == Stage::DeadLettering)
    }

    pub(super) fn dead_letter(&mut self, seq: u64, now_ms: u64) {
        self.set_stage(seq, Stage::DeadLettering);
        if self.rules.exhausted_policy == ExhaustedPolicy::Discard {
            self.settle(seq, now_ms);
            self.counts.given_up += 1;
        } else {
            self.dead_lettering.push_back(seq);
        }
    }

    pub(super) fn delay_ms(&self, seq: u64, failures: u32, retry: Retry) -> u64 {
        let backoff = &self.rules.backoff;
        let endless = self.rules.exhausted_policy == ExhaustedPolicy::RetryForever;
        match retry {
            Retry::AtOnce => 0,
            // Nothing ends the retries of a dead letter, so no member may shorten them.
            Retry::Backoff if endless => backoff.longest_delay_ms(seq, failures),
            Retry::After { delay_ms } if endless => delay_ms.clamp(
                backoff.longest_ms,
                MAX_RETRY_DELAY_MS.max(backoff.longest_ms),
            ),
            Retry::Backoff => backoff.delay_ms(seq, failures),
            Retry::After { delay_ms } => delay_ms.min(MAX_RETRY_DELAY_MS),
        }
    }

    pub(super) fn settled_or_unknown(&self, seq: u64) -> Settled {
        if seq <= self.head || self.settled_ahead.contains(seq) {
            Settled::Already
        } else {
            Settled::Unknown
        }
    }
}
