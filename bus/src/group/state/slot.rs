//! One unsettled event.

use super::MemberId;
use crate::group::history::History;
use crate::group::lanes::Lane;
use std::sync::Arc;

/// One unsettled event.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    pub(super) stage: Stage,
    /// The queue that it waits in.
    pub(super) queue: u16,
    /// Its partition; 0 where the group is not partitioned.
    pub(super) partition: u32,
    /// The lane it is in, where the group is ordered by key.
    pub(super) lane: Option<Lane>,
    /// Its id, where its publisher chose it.
    pub(super) client_id: Option<Arc<str>>,
    /// Its failed deliveries, once there is one.
    pub(super) history: Option<Box<History>>,
}

/// The stage of an unsettled event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its bytes are here; the next member with room gets it.
    Ready,
    /// It is due, and its bytes have to be read again.
    Missing,
    /// A member has it.
    Leased(Lease),
    /// It waits for its next delivery.
    Waiting { due_ms: u64 },
    /// It waits for an earlier event of its key, and after that until it is due.
    BlockedByKey { due_ms: u64 },
    /// Its last attempt failed.
    DeadLettering,
    /// Its member acknowledges it in a transaction that is not written yet.
    Pinned(Lease),
    /// The same without a lease: it expired, and no other member has the event. Should the transaction fail, it is due then.
    PinnedLate { due_ms: u64 },
}

/// Who has an event, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) member: MemberId,
    pub(super) number: u64,
    pub(super) started_ms: u64,
    pub(super) deadline_ms: u64,
}

impl Slot {
    /// The number of the delivery under way, or of the next one.
    pub(super) fn attempt(&self) -> u32 {
        self.failures() + 1
    }

    pub(super) fn failures(&self) -> u32 {
        self.history.as_ref().map_or(0, |history| history.attempts)
    }

    /// Whether a timer for this moment is meant for the stage it is in.
    pub(super) fn is_due_at(&self, moment_ms: u64) -> bool {
        match self.stage {
            Stage::Leased(lease) => lease.deadline_ms == moment_ms,
            Stage::Waiting { due_ms } => due_ms == moment_ms,
            Stage::Ready
            | Stage::Missing
            | Stage::BlockedByKey { .. }
            | Stage::DeadLettering
            | Stage::Pinned(_)
            | Stage::PinnedLate { .. } => false,
        }
    }
}
