//! Leases: given, extended, ended by time or by the loss of a member.

use super::settlement::Settled;
use super::slot::{Lease, Stage};
use super::{GroupState, MemberId, Partitions, Retry};
use crate::group::settings::MAX_ACK_TIMEOUT_MS;
use prombus_store::StoredEvent;

/// The least that an extension gives.
pub(crate) const MIN_EXTENSION_MS: u64 = 1_000;
/// The most that an extension gives: as long as the longest lease.
const MAX_EXTENSION_MS: u64 = MAX_ACK_TIMEOUT_MS;

/// An event that was leased to a member.
#[derive(Debug, Clone)]
pub(crate) struct Leased {
    pub(crate) event: StoredEvent,
    /// The number of this lease in its group.
    pub(crate) number: u64,
    /// The number of this delivery, from 1.
    pub(crate) attempt: u32,
    /// After how many failed deliveries it is a dead letter.
    pub(crate) max_attempts: u32,
    pub(crate) deadline_ms: u64,
    /// How long the lease is.
    pub(crate) timeout_ms: u64,
}

impl GroupState {
    /// Leases up to `count` events to a member: those that come back first, then new ones in log order.
    pub(crate) fn lease(
        &mut self,
        member: MemberId,
        count: usize,
        now_ms: u64,
        out: &mut Vec<Leased>,
    ) {
        let member_state = self.member_states.get(&member);
        let own_ms = member_state.and_then(|member_state| member_state.ack_timeout_ms);
        let timeout_ms = own_ms.unwrap_or(self.rules.settings.ack_timeout_ms);
        let deadline_ms = now_ms.saturating_add(timeout_ms);
        let wanted = out.len() + count;
        let queues: Vec<u16> = self.ready_queues_of(member).collect();
        let mut queues = queues.into_iter().peekable();
        while out.len() < wanted
            && let Some(&queue) = queues.peek()
        {
            let Some(event) = self.queues.pop(queue) else {
                queues.next();
                continue;
            };
            let seq = event.seq();
            let Some(slot) = self.unsettled.get_mut(seq) else {
                continue;
            };
            if slot.stage != Stage::Ready {
                continue;
            }
            let number = self.next_lease;
            self.next_lease += 1;
            slot.stage = Stage::Leased(Lease {
                member,
                number,
                started_ms: now_ms,
                deadline_ms,
            });
            let attempt = slot.attempt();
            if let Some(partitions) = &mut self.partitions {
                partitions.leased(queue);
            }
            if let Some(id) = &slot.client_id {
                self.client_ids.insert(id.clone(), seq);
            }
            self.timers.add(deadline_ms, seq);
            self.counts.redelivered += u64::from(attempt > 1);
            out.push(Leased {
                event,
                number,
                attempt,
                max_attempts: self.rules.settings.max_attempts,
                deadline_ms,
                timeout_ms,
            });
        }
        self.count_leases(member, count - (wanted - out.len()));
        self.turn_partitions();
    }

    /// Moves a lease's deadline to `now + max(1000, extend_ms)`, and no further than a week.
    pub(crate) fn extend(
        &mut self,
        member: MemberId,
        seq: u64,
        number: Option<u64>,
        extend_ms: u64,
        now_ms: u64,
    ) -> Settled {
        let Some(slot) = self.unsettled.get_mut(seq) else {
            let extend_ms = extend_ms.clamp(MIN_EXTENSION_MS, MAX_EXTENSION_MS);
            return self.extend_adopted(member, seq, now_ms.saturating_add(extend_ms));
        };
        let (lease, is_timed) = match &mut slot.stage {
            Stage::Leased(lease) => (lease, true),
            // Should the transaction fail, the lease has this deadline.
            Stage::Pinned(lease) => (lease, false),
            _ => return Settled::Unknown,
        };
        if lease.member != member || number.is_some_and(|number| number != lease.number) {
            return Settled::LeaseLost;
        }
        lease.deadline_ms =
            now_ms.saturating_add(extend_ms.clamp(MIN_EXTENSION_MS, MAX_EXTENSION_MS));
        if is_timed {
            self.timers.add(lease.deadline_ms, seq);
        }
        self.sweep_timers();
        Settled::Done
    }

    /// Gives back leases whose events the member never saw: they do not count as deliveries.
    pub(crate) fn release(&mut self, member: MemberId, untaken: &[(u64, u64)]) {
        for &(seq, number) in untaken {
            let stage = self.unsettled.get(seq).map(|slot| slot.stage);
            // One that is being acknowledged by its id is not released.
            if let Some(Stage::Leased(lease)) = stage
                && (lease.member, lease.number) == (member, number)
            {
                self.end_lease(seq);
                self.set_missing(seq);
                self.counts.returned += 1;
            }
        }
    }

    /// Ends all leases of a member that left: others get its events at once. Those that are pinned by a transaction
    /// stay until its outcome is known.
    pub(crate) fn leave(&mut self, member: MemberId, reason: &str, now_ms: u64) {
        let held: Vec<u64> = self
            .unsettled
            .iter()
            .filter(
                |(_, slot)| matches!(slot.stage, Stage::Leased(lease) if lease.member == member),
            )
            .map(|(seq, _)| seq)
            .collect();
        for seq in held {
            self.fail(seq, reason, Retry::AtOnce, now_ms);
        }
        for seq in self.adopted_by(member) {
            self.fail_adopted(Some(member), seq, reason, Retry::AtOnce, now_ms);
        }
        if let Some(partitions) = &mut self.partitions {
            partitions.touch();
        }
        if let Some(member_state) = self.member_states.get_mut(&member) {
            member_state.has_left = true;
            if member_state.leased == 0 {
                self.member_states.remove(&member);
            }
        }
    }

    /// Ends the leases that ran out and wakes the events whose wait is over.
    pub(crate) fn tick(&mut self, now_ms: u64) {
        while let Some((due_ms, seq)) = self.timers.pop_due(now_ms) {
            if self.is_adopted_due(due_ms, seq) {
                self.counts.expired += 1;
                self.fail_adopted(None, seq, "the lease ran out", Retry::Backoff, now_ms);
                continue;
            }
            let Some(slot) = self
                .unsettled
                .get(seq)
                .filter(|slot| slot.is_due_at(due_ms))
            else {
                continue;
            };
            if let Stage::Waiting { .. } = slot.stage {
                self.timed -= 1;
                self.set_missing(seq);
            } else {
                self.counts.expired += 1;
                self.fail(seq, "the lease ran out", Retry::Backoff, now_ms);
            }
        }
    }

    /// When [`Self::tick`] has something to do next.
    pub(crate) fn next_due(&mut self) -> Option<u64> {
        let (unsettled, adopted) = (&self.unsettled, &self.adopted);
        let timer = self.timers.next_due(|due_ms, seq| {
            let slot = unsettled.get(seq);
            slot.is_some_and(|slot| slot.is_due_at(due_ms))
                || adopted.get(&seq).is_some_and(|one| one.is_due_at(due_ms))
        });
        let partition = self.partitions.as_ref().and_then(Partitions::next_due);
        timer.into_iter().chain(partition).min()
    }

    /// Ends a lease without deciding what comes next.
    pub(super) fn end_lease(&mut self, seq: u64) -> Option<Lease> {
        let lease = self.lease_of(seq)?;
        if let Some(partitions) = &mut self.partitions
            && let Some(slot) = self.unsettled.get(seq)
        {
            partitions.lease_ended(slot.queue);
        }
        self.timed -= 1;
        self.counts.in_flight -= 1;
        self.changes += 1;
        if let Some(member_state) = self.member_states.get_mut(&lease.member) {
            member_state.leased -= 1;
            member_state.freed += 1;
            if member_state.has_left && member_state.leased == 0 {
                self.member_states.remove(&lease.member);
            }
        }
        Some(lease)
    }

    pub(super) fn lease_of(&self, seq: u64) -> Option<Lease> {
        match self.unsettled.get(seq)?.stage {
            Stage::Leased(lease) | Stage::Pinned(lease) => Some(lease),
            _ => None,
        }
    }

    fn count_leases(&mut self, member: MemberId, count: usize) {
        if count == 0 {
            return;
        }
        if let Some(member_state) = self.member_states.get_mut(&member) {
            member_state.leased += count;
        }
        self.timed += count;
        self.counts.in_flight += count as u64;
        self.counts.delivered += count as u64;
        self.changes += 1;
        self.sweep_timers();
    }

    pub(super) fn sweep_timers(&mut self) {
        let (unsettled, adopted) = (&self.unsettled, &self.adopted);
        let timed = self.timed + adopted.len();
        self.timers.sweep(timed, |due_ms, seq| {
            let slot = unsettled.get(seq);
            slot.is_some_and(|slot| slot.is_due_at(due_ms))
                || adopted.get(&seq).is_some_and(|one| one.is_due_at(due_ms))
        });
    }
}
