//! Ack-and-publish transactions. From the moment a transaction is queued until
//! its outcome is known its events are pinned: no other member gets them, no deadline ends their leases, and a
//! member that leaves does not free them. They are settled by the very write that publishes, so it cannot be that only
//! one of the two happens, nor that one event is acknowledged by two transactions.

use super::settlement::Settled;
use super::slot::Stage;
use super::{GroupState, MemberId, Retry};

/// What is noted of a delivery whose member left before it was settled.
pub(crate) const MEMBER_LEFT: &str = "the member is gone";

/// Why a transaction was not queued: the event that conflicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AckPublishConflict {
    pub(crate) seq: u64,
    pub(crate) reason: ConflictReason,
}

/// Why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConflictReason {
    /// The event is settled, or something that settles it is on its way.
    AlreadySettled,
    /// Another member holds it, its lease is void, or it has to wait for an earlier event of its key.
    LeaseLost,
}

impl GroupState {
    /// Pins the events of a transaction, each with the number of its lease where that is known: all of them, or none.
    pub(crate) fn begin_ack_publish(
        &mut self,
        member: MemberId,
        events: &[(u64, Option<u64>)],
    ) -> Result<(), AckPublishConflict> {
        for &(seq, number) in events {
            self.check_ack_publish(member, seq, number)
                .map_err(|reason| AckPublishConflict { seq, reason })?;
        }
        for &(seq, _) in events {
            self.pin(seq);
        }
        Ok(())
    }

    /// Settles the events of committed transactions.
    pub(crate) fn complete_ack_publish(&mut self, seqs: &[u64], now_ms: u64) {
        for &seq in seqs {
            if self.is_pinned(seq) && self.settle(seq, now_ms) {
                self.counts.acked += 1;
            }
        }
    }

    /// Unpins the events of an aborted transaction. Leases that expired meanwhile end with
    /// the next tick.
    pub(crate) fn abort_ack_publish(&mut self, seqs: &[u64], now_ms: u64) {
        for &seq in seqs {
            let stage = self.unsettled.get(seq).map(|slot| slot.stage);
            match stage {
                Some(Stage::Pinned(lease)) => {
                    self.set_stage(seq, Stage::Leased(lease));
                    let member_state = self.member_states.get(&lease.member);
                    if member_state.is_none_or(|member_state| member_state.has_left) {
                        self.fail(seq, MEMBER_LEFT, Retry::AtOnce, now_ms);
                    } else {
                        self.timers.add(lease.deadline_ms, seq);
                    }
                }
                Some(Stage::PinnedLate { due_ms }) => {
                    self.set_stage(seq, Stage::BlockedByKey { due_ms });
                    if self.schedule(seq, now_ms) {
                        self.set_missing(seq);
                    }
                }
                // The cursor was set meanwhile.
                _ => {}
            }
        }
        self.sweep_timers();
    }

    fn check_ack_publish(
        &self,
        member: MemberId,
        seq: u64,
        number: Option<u64>,
    ) -> Result<(), ConflictReason> {
        if number.is_some_and(|number| number < self.first_valid_lease) {
            return Err(ConflictReason::LeaseLost);
        }
        let Some(slot) = self.unsettled.get(seq) else {
            return Err(match self.settled_or_unknown(seq) {
                Settled::Already => ConflictReason::AlreadySettled,
                _ => ConflictReason::LeaseLost,
            });
        };
        match slot.stage {
            Stage::Leased(lease) if lease.member != member => Err(ConflictReason::LeaseLost),
            // Late is fine, as for any acknowledgement.
            Stage::Leased(_) | Stage::Ready | Stage::Missing | Stage::Waiting { .. } => Ok(()),
            // What comes of it must not overtake what comes of an earlier event of its key.
            Stage::BlockedByKey { .. } => Err(ConflictReason::LeaseLost),
            Stage::DeadLettering | Stage::Pinned(_) | Stage::PinnedLate { .. } => {
                Err(ConflictReason::AlreadySettled)
            }
        }
    }

    fn pin(&mut self, seq: u64) {
        let Some(slot) = self.unsettled.get_mut(seq) else {
            return;
        };
        let due_ms = match slot.stage {
            Stage::Leased(lease) => {
                slot.stage = Stage::Pinned(lease);
                return;
            }
            Stage::Waiting { due_ms } => {
                self.timed -= 1;
                due_ms
            }
            // Named twice.
            Stage::Pinned(_) | Stage::PinnedLate { .. } => return,
            Stage::Ready | Stage::Missing | Stage::BlockedByKey { .. } | Stage::DeadLettering => 0,
        };
        slot.stage = Stage::PinnedLate { due_ms };
        self.queues.remove(slot.queue, seq);
    }

    /// Not so any more where the cursor was set meanwhile.
    pub(crate) fn is_pinned(&self, seq: u64) -> bool {
        let stage = self.unsettled.get(seq).map(|slot| slot.stage);
        matches!(stage, Some(Stage::Pinned(_) | Stage::PinnedLate { .. }))
    }
}
