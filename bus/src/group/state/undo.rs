//! Taking back the last seek: the group goes on from where it was before, without what was settled since.

use super::GroupState;
use super::persistence::Progress;
use crate::group::ranges::Ranges;
use crate::group::record::{BlockedKeyRecord, SeekUndo};
use prombus_interface::Ordering;
use std::sync::Arc;

/// What is noted of a delivery that was under way when the cursor was set.
const SOUGHT: &str = "the cursor was set while this delivery was under way";

/// Why the last seek cannot be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoUndo {
    /// The cursor was not set, or that was undone already.
    Nothing,
    /// So many positions were settled since.
    TooMuchSettled { settled: u64 },
}

/// What undoing the last seek does.
#[derive(Debug, Clone)]
pub(crate) struct UndoPlan {
    undo: Arc<SeekUndo>,
    /// Everything that is settled afterwards, from position 1 on.
    settled: Ranges,
    /// Unsettled positions that are settled afterwards.
    pub(crate) skipped: u64,
}

impl GroupState {
    /// Sets the cursor and keeps where the group was. Nothing is kept of the log before `first_seq`.
    pub(crate) fn seek_with_undo(&mut self, cursor: u64, first_seq: u64, now_ms: u64) {
        let before = self.to_record(&[]);
        let mut failed = before.failed;
        failed.iter_mut().for_each(|event| event.history.clear());
        self.seek(cursor);
        self.undo = Some(Arc::new(SeekUndo {
            sought: cursor.max(first_seq.saturating_sub(1)),
            written_ms: self.wall_ms(now_ms),
            cursor: before.cursor,
            settled: before.settled,
            failed,
            leases: before.leases,
            blocked: before.blocked,
        }));
    }

    /// Finds out what undoing the last seek does to positions from `first_seq` to `tail`.
    pub(crate) fn plan_undo(&self, first_seq: u64, tail: u64) -> Result<UndoPlan, NoUndo> {
        let undo = self.undo.clone().ok_or(NoUndo::Nothing)?;
        let now = self.to_record(&[]);
        let since = settled_since(&undo, now.cursor, &now.settled, &now.blocked);
        let settled = since.count_within(0, u64::MAX);
        if settled > self.rules.max_undo_settled {
            return Err(NoUndo::TooMuchSettled { settled });
        }
        let mut after = self.settled_before(&undo);
        after.extend(since.iter());
        let after = Ranges::new(after);
        let mut settled_now = now.settled;
        settled_now.push((1, now.cursor));
        let common = after.count_common(&Ranges::new(settled_now), first_seq, tail);
        let skipped = after.count_within(first_seq, tail) - common;
        Ok(UndoPlan {
            undo,
            settled: after,
            skipped,
        })
    }

    /// Undoes the last seek, as planned. Leases given so far are void, as with a seek.
    pub(crate) fn undo_seek(&mut self, plan: UndoPlan, now_ms: u64) {
        let undo = Arc::unwrap_or_clone(plan.undo);
        self.seek(undo.cursor);
        self.undo = None;
        let above = plan.settled.iter();
        let above = above.map(|(first, last)| (first.max(undo.cursor + 1), last));
        let progress = Progress {
            settled: Ranges::new(above.collect()),
            failed: undo.failed,
            leases: undo.leases,
            blocked: match self.settings().ordering {
                Ordering::Key => undo.blocked,
                Ordering::None => Vec::new(),
            },
        };
        self.restore(progress, undo.written_ms, SOUGHT, now_ms);
    }

    /// What is stored to undo the last seek. Where it is too late for that, only what says so.
    pub(super) fn undo_record(&self, cursor: u64) -> Option<Arc<SeekUndo>> {
        let undo = self.undo.as_ref()?;
        if cursor.saturating_sub(undo.sought) <= self.rules.max_undo_settled {
            return Some(undo.clone());
        }
        Some(Arc::new(SeekUndo {
            sought: undo.sought,
            written_ms: undo.written_ms,
            cursor: undo.cursor,
            settled: Vec::new(),
            failed: Vec::new(),
            leases: Vec::new(),
            blocked: Vec::new(),
        }))
    }

    /// What was settled before the seek. Positions of blocked keys look settled and are told apart by their key, which
    /// only a group that is ordered by key looks at.
    fn settled_before(&self, undo: &SeekUndo) -> Vec<(u64, u64)> {
        let mut settled = undo.settled.clone();
        settled.push((1, undo.cursor));
        if self.settings().ordering == Ordering::None
            && let Some(first) = first_blocked(&undo.blocked)
        {
            for range in &mut settled {
                range.1 = range.1.min(first - 1);
            }
        }
        settled
    }
}

/// What was settled above the cursor that was set. Past the first event that is blocked by its key one cannot tell.
fn settled_since(
    undo: &SeekUndo,
    cursor: u64,
    settled: &[(u64, u64)],
    blocked: &[BlockedKeyRecord],
) -> Ranges {
    let last = first_blocked(blocked).map_or(u64::MAX, |first| first - 1);
    let until_cursor = std::iter::once((1, cursor));
    let clipped = until_cursor
        .chain(settled.iter().copied())
        .map(|(from, to)| (from.max(undo.sought + 1), to.min(last)));
    Ranges::new(clipped.collect())
}

fn first_blocked(blocked: &[BlockedKeyRecord]) -> Option<u64> {
    blocked.iter().map(|one| one.from_seq.max(1)).min()
}
