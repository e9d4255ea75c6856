//! Leases that an earlier owner of the group gave and whose holders are still there: they go on under this one, so that no
//! event is in two hands while the group moves from node to node.
//!
//! ```text
//!   reported, already read      ──▶ Leased
//!   reported, not read yet      ──▶ adopted ──offer──▶ Leased, or behind its key until the deadline
//! ```
//! What is settled already stays settled. Partitioned groups adopt nothing: their partitions are assigned anew.

use super::slot::{Lease, Stage};
use super::{GroupState, MemberId};
use crate::group::history::Attempt;
use std::collections::BTreeSet;

/// A lease as its holder reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeldLease {
    pub(crate) seq: u64,
    /// The number that it was given with.
    pub(crate) number: u64,
    /// The number of this delivery, from 1.
    pub(crate) attempt: u32,
    pub(crate) deadline_ms: u64,
}

/// An adopted lease of an event that is not read yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Adopted {
    lease: Lease,
    attempt: u32,
}

impl Adopted {
    /// Whether a timer for this moment is meant for it.
    pub(super) fn is_due_at(&self, moment_ms: u64) -> bool {
        self.lease.deadline_ms == moment_ms
    }
}

impl GroupState {
    /// What the members hold, those of `among`.
    pub(crate) fn held_leases(&self, among: &BTreeSet<MemberId>) -> Vec<(MemberId, HeldLease)> {
        let leased = self.unsettled.iter().filter_map(|(seq, slot)| {
            let (Stage::Leased(lease) | Stage::Pinned(lease)) = slot.stage else {
                return None;
            };
            Some((seq, lease, slot.attempt()))
        });
        let adopted = self.adopted.iter();
        let adopted = adopted.map(|(&seq, one)| (seq, one.lease, one.attempt));
        leased
            .chain(adopted)
            .filter(|(_, lease, _)| among.contains(&lease.member))
            .map(|(seq, lease, attempt)| {
                let held = HeldLease {
                    seq,
                    number: lease.number,
                    attempt,
                    deadline_ms: lease.deadline_ms,
                };
                (lease.member, held)
            })
            .collect()
    }

    /// Goes on with a lease that a member holds since before; `false` where there is nothing to go on with. A member that
    /// `replaces` another one takes what that one holds.
    pub(crate) fn adopt(
        &mut self,
        member: MemberId,
        replaces: Option<MemberId>,
        held: HeldLease,
        now_ms: u64,
    ) -> bool {
        let HeldLease {
            seq,
            number,
            attempt,
            deadline_ms,
        } = held;
        if self.partitions.is_some() || deadline_ms <= now_ms || seq <= self.void_until {
            return false;
        }
        self.next_lease = self.next_lease.max(number + 1);
        let lease = Lease {
            member,
            number,
            started_ms: now_ms,
            deadline_ms,
        };
        let Some(slot) = self.unsettled.get(seq) else {
            if self.settled_or_unknown(seq) != super::Settled::Unknown {
                return false;
            }
            return self.adopt_unread(seq, lease, attempt, replaces);
        };
        match slot.stage {
            Stage::Leased(old) if Some(old.member) == replaces && old.number == number => {
                self.transfer(seq, old, member);
                true
            }
            Stage::Waiting { .. } => {
                self.timed -= 1;
                self.lease_adopted(seq, lease, attempt);
                true
            }
            Stage::Missing | Stage::Ready => {
                let queue = slot.queue;
                self.queues.remove(queue, seq);
                self.lease_adopted(seq, lease, attempt);
                true
            }
            Stage::BlockedByKey { due_ms } => {
                // An earlier event of its key is to come again. This one does not come before its holder's time is up.
                let due_ms = due_ms.max(deadline_ms);
                self.set_stage(seq, Stage::BlockedByKey { due_ms });
                false
            }
            _ => false,
        }
    }

    fn adopt_unread(
        &mut self,
        seq: u64,
        lease: Lease,
        attempt: u32,
        replaces: Option<MemberId>,
    ) -> bool {
        if let Some(old) = self.adopted.get(&seq) {
            if Some(old.lease.member) != replaces {
                return false;
            }
            self.end_adopted(seq);
        }
        if self.adopted.len() >= self.rules.window {
            return false;
        }
        // Wherever it goes when it is read, it waits until then.
        let restored = self.restored.entry(seq).or_default();
        restored.due_ms = restored.due_ms.max(lease.deadline_ms);
        restored.history.attempts = restored.history.attempts.max(attempt.saturating_sub(1));
        self.adopted.insert(seq, Adopted { lease, attempt });
        self.timers.add(lease.deadline_ms, seq);
        self.count_adopted(lease.member);
        true
    }

    /// Makes an adopted lease one of its event, which was just read and waits.
    pub(super) fn lease_offered(&mut self, seq: u64) {
        let Some(adopted) = self.end_adopted(seq) else {
            return;
        };
        let stage = self.unsettled.get(seq).map(|slot| slot.stage);
        if let Some(Stage::Waiting { .. }) = stage {
            self.timed -= 1;
            self.lease_adopted(seq, adopted.lease, adopted.attempt);
        }
    }

    fn lease_adopted(&mut self, seq: u64, lease: Lease, attempt: u32) {
        let Some(slot) = self.unsettled.get_mut(seq) else {
            return;
        };
        slot.stage = Stage::Leased(lease);
        if attempt > slot.attempt() {
            let history = slot.history.get_or_insert_default();
            history.attempts = attempt - 1;
        }
        if let Some(id) = &slot.client_id {
            self.client_ids.insert(id.clone(), seq);
        }
        self.timers.add(lease.deadline_ms, seq);
        self.timed += 1;
        self.count_adopted(lease.member);
    }

    fn count_adopted(&mut self, member: MemberId) {
        if let Some(member_state) = self.member_states.get_mut(&member) {
            member_state.leased += 1;
        }
        self.counts.in_flight += 1;
        self.changes += 1;
    }

    /// Gives a lease from one member to another of the same client.
    fn transfer(&mut self, seq: u64, old: Lease, member: MemberId) {
        self.set_stage(seq, Stage::Leased(Lease { member, ..old }));
        if let Some(before) = self.member_states.get_mut(&old.member) {
            before.leased -= 1;
            before.freed += 1;
        }
        if let Some(member_state) = self.member_states.get_mut(&member) {
            member_state.leased += 1;
        }
    }

    /// Takes an adopted lease away without deciding what comes next.
    pub(super) fn end_adopted(&mut self, seq: u64) -> Option<Adopted> {
        let adopted = self.adopted.remove(&seq)?;
        self.counts.in_flight -= 1;
        self.changes += 1;
        if let Some(member_state) = self.member_states.get_mut(&adopted.lease.member) {
            member_state.leased -= 1;
            member_state.freed += 1;
        }
        Some(adopted)
    }

    /// Extends an adopted lease of an event that is not read yet.
    pub(super) fn extend_adopted(
        &mut self,
        member: MemberId,
        seq: u64,
        deadline_ms: u64,
    ) -> super::Settled {
        let Some(adopted) = self.adopted.get_mut(&seq) else {
            return super::Settled::Unknown;
        };
        if adopted.lease.member != member {
            return super::Settled::LeaseLost;
        }
        adopted.lease.deadline_ms = deadline_ms;
        if let Some(restored) = self.restored.get_mut(&seq) {
            restored.due_ms = deadline_ms;
        }
        self.timers.add(deadline_ms, seq);
        super::Settled::Done
    }

    /// The adopted lease of an event that is not read yet ends in failure; `false` where there is none of this member.
    pub(super) fn fail_adopted(
        &mut self,
        member: Option<MemberId>,
        seq: u64,
        reason: &str,
        retry: super::Retry,
        now_ms: u64,
    ) -> bool {
        let is_meant = |one: &Adopted| member.is_none_or(|member| one.lease.member == member);
        if !self.adopted.get(&seq).is_some_and(is_meant) {
            return false;
        }
        let Some(adopted) = self.end_adopted(seq) else {
            return false;
        };
        let member_state = self.member_states.get(&adopted.lease.member);
        let offset_ms = self.rules.wall_offset_ms;
        let ended = Attempt {
            member: member_state.map_or_else(Default::default, |one| one.name.clone()),
            start: adopted.lease.started_ms.saturating_add_signed(offset_ms),
            end: now_ms.saturating_add_signed(offset_ms),
            reason: reason.to_owned(),
        };
        let delay_ms = self.delay_ms(seq, adopted.attempt, retry);
        let restored = self.restored.entry(seq).or_default();
        match retry {
            super::Retry::AtOnce => restored.history.record_lost(adopted.attempt, ended),
            super::Retry::Backoff | super::Retry::After { .. } => {
                restored.history.note(adopted.attempt, ended);
            }
        }
        restored.due_ms = now_ms.saturating_add(delay_ms);
        true
    }

    /// Whether another member holds an event that is not read yet.
    pub(super) fn is_adopted_by_another(&self, member: MemberId, seq: u64) -> bool {
        let adopted = self.adopted.get(&seq);
        adopted.is_some_and(|one| one.lease.member != member)
    }

    /// Adopted leases of one member of events that are not read yet.
    pub(super) fn adopted_by(&self, member: MemberId) -> Vec<u64> {
        let of_member = self
            .adopted
            .iter()
            .filter(|(_, one)| one.lease.member == member);
        of_member.map(|(&seq, _)| seq).collect()
    }

    /// Whether the adopted lease of an event that is not read yet runs out at this moment.
    pub(super) fn is_adopted_due(&self, due_ms: u64, seq: u64) -> bool {
        self.adopted
            .get(&seq)
            .is_some_and(|one| one.is_due_at(due_ms))
    }

    /// All that members hold is known: what was held back for the rest comes now.
    pub(crate) fn lift_hold_back(&mut self) {
        let Some((through_seq, until_ms)) = self.held_back.take() else {
            return;
        };
        let waiting: Vec<(u64, Stage)> = self
            .unsettled
            .iter()
            .filter(|(seq, _)| *seq <= through_seq)
            .map(|(seq, slot)| (seq, slot.stage))
            .collect();
        for (seq, stage) in waiting {
            match stage {
                Stage::Waiting { due_ms } if due_ms == until_ms => {
                    self.timed -= 1;
                    self.set_missing(seq);
                }
                Stage::BlockedByKey { due_ms } if due_ms == until_ms => {
                    self.set_stage(seq, Stage::BlockedByKey { due_ms: 0 });
                }
                _ => {}
            }
        }
    }
}
