//! What an owner lets others see of its group at any time, so that looking at all groups disturbs none of them.

use super::record::GroupRecord;
use super::state::GroupState;
use prombus_interface::GroupCounts;
use prombus_store::LockExt;
use std::sync::Mutex;

/// The newest status of one group; `None` until its owner has loaded it.
#[derive(Debug, Default)]
pub(crate) struct SharedStatus(Mutex<Option<GroupStatus>>);

/// The status of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct GroupStatus {
    pub(crate) counts: GroupCounts,
    pub(crate) cursor: u64,
    /// Positions above the cursor that are settled.
    pub(crate) settled_ahead: u64,
    /// Partitions that are held and that are not; none where no owner serves the group.
    pub(crate) partitions: (u32, u32),
}

impl SharedStatus {
    pub(crate) fn set(&self, status: GroupStatus) {
        *self.0.guard() = Some(status);
    }

    pub(crate) fn get(&self) -> Option<GroupStatus> {
        *self.0.guard()
    }
}

impl GroupStatus {
    pub(crate) fn of(state: &GroupState) -> Self {
        let cursor = state.cursor();
        Self {
            counts: *state.counts(),
            cursor,
            settled_ahead: state.settled_after(cursor),
            partitions: state.partitions_held(),
        }
    }

    /// The status of a group that has no owner.
    pub(crate) fn of_record(record: &GroupRecord, counts: GroupCounts) -> Self {
        let ranges = record.settled.iter();
        Self {
            counts,
            partitions: (0, 0),
            cursor: record.cursor,
            settled_ahead: ranges
                .map(|&(first, last)| (last + 1).saturating_sub(first))
                .sum(),
        }
    }

    /// Positions from `first_seq` to `tail` that are not settled.
    pub(crate) fn lag(&self, first_seq: u64, tail: u64) -> u64 {
        let from = self.cursor.max(first_seq.saturating_sub(1));
        tail.saturating_sub(from).saturating_sub(self.settled_ahead)
    }
}
