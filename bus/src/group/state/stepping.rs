//! Steps: events that are acknowledged in one step with publishing something. From the moment a step is taken in until
//! it is known what came of it, its events stand still: nobody else gets them, no deadline ends their leases, and a
//! member that leaves does not free them. They are settled by the very write that publishes, so it cannot be that only
//! one of the two happens, nor that one event is the reason for two steps.

use super::settling::{Retry, Settled};
use super::slot::Stage;
use super::{GroupState, MemberId};

/// What is noted of a delivery whose member left before it was settled.
pub(crate) const MEMBER_GONE: &str = "the member is gone";

/// A step that is not taken in, and the event that is the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoStep {
    pub(crate) seq: u64,
    pub(crate) why: WhyNoStep,
}

/// Why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhyNoStep {
    /// The event is settled, or something that settles it is on its way.
    AlreadySettled,
    /// Another member holds it, its lease is void, or it has to wait for an earlier event of its key.
    LeaseLost,
}

impl GroupState {
    /// Takes a step of a member in: all its events, each with the number of its lease where that is known, or none.
    pub(crate) fn begin_step(
        &mut self,
        member: MemberId,
        events: &[(u64, Option<u64>)],
    ) -> Result<(), NoStep> {
        for &(seq, number) in events {
            self.may_step(member, seq, number)
                .map_err(|why| NoStep { seq, why })?;
        }
        for &(seq, _) in events {
            self.hold_still(seq);
        }
        Ok(())
    }

    /// Settles the events of steps that are written.
    pub(crate) fn stepped(&mut self, seqs: &[u64], now_ms: u64) {
        for &seq in seqs {
            if self.is_stepping(seq) && self.settle(seq, now_ms) {
                self.counts.acked += 1;
            }
        }
    }

    /// Puts the events of a step that was not written back to where they were. Leases that ran out meanwhile end with
    /// the next tick.
    pub(crate) fn not_stepped(&mut self, seqs: &[u64], now_ms: u64) {
        for &seq in seqs {
            let stage = self.unsettled.get(seq).map(|slot| slot.stage);
            match stage {
                Some(Stage::Stepping(lease)) => {
                    self.set_stage(seq, Stage::Leased(lease));
                    let holder = self.holders.get(&lease.member);
                    if holder.is_none_or(|holder| holder.is_gone) {
                        self.fail(seq, MEMBER_GONE, Retry::AtOnce, now_ms);
                    } else {
                        self.timers.add(lease.deadline_ms, seq);
                    }
                }
                Some(Stage::SteppingLate { due_ms }) => {
                    self.set_stage(seq, Stage::Behind { due_ms });
                    if self.set_off(seq, now_ms) {
                        self.missing.insert(seq);
                    }
                }
                // The cursor was set meanwhile.
                _ => {}
            }
        }
        self.sweep_timers();
    }

    fn may_step(&self, member: MemberId, seq: u64, number: Option<u64>) -> Result<(), WhyNoStep> {
        if number.is_some_and(|number| number < self.first_valid_lease) {
            return Err(WhyNoStep::LeaseLost);
        }
        let Some(slot) = self.unsettled.get(seq) else {
            return Err(match self.settled_or_unknown(seq) {
                Settled::Already => WhyNoStep::AlreadySettled,
                _ => WhyNoStep::LeaseLost,
            });
        };
        match slot.stage {
            Stage::Leased(lease) if lease.member != member => Err(WhyNoStep::LeaseLost),
            // Late is fine, as for any acknowledgement.
            Stage::Leased(_) | Stage::Ready | Stage::Missing | Stage::Waiting { .. } => Ok(()),
            // What comes of it must not overtake what comes of an earlier event of its key.
            Stage::Behind { .. } => Err(WhyNoStep::LeaseLost),
            Stage::Dying | Stage::Stepping(_) | Stage::SteppingLate { .. } => {
                Err(WhyNoStep::AlreadySettled)
            }
        }
    }

    fn hold_still(&mut self, seq: u64) {
        let Some(slot) = self.unsettled.get_mut(seq) else {
            return;
        };
        let due_ms = match slot.stage {
            Stage::Leased(lease) => {
                slot.stage = Stage::Stepping(lease);
                return;
            }
            Stage::Waiting { due_ms } => {
                self.timed -= 1;
                due_ms
            }
            // Named twice.
            Stage::Stepping(_) | Stage::SteppingLate { .. } => return,
            Stage::Ready | Stage::Missing | Stage::Behind { .. } | Stage::Dying => 0,
        };
        slot.stage = Stage::SteppingLate { due_ms };
        self.missing.remove(&seq);
        // A fresh one is skipped when it comes up.
        self.returning.remove(&seq);
    }

    /// Not so any more where the cursor was set meanwhile.
    pub(crate) fn is_stepping(&self, seq: u64) -> bool {
        let stage = self.unsettled.get(seq).map(|slot| slot.stage);
        matches!(stage, Some(Stage::Stepping(_) | Stage::SteppingLate { .. }))
    }
}
