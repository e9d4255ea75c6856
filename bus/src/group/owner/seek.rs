//! Setting the cursor of the group, and undoing that.

use super::incarnation::resolve_position;
use super::{Existence, Owner};
use crate::error::{GroupError, NothingToUndo, TooMuchSettled};
use crate::group::command::Seek;
use crate::group::state::NoUndo;
use prombus_interface::SeekEffect;

impl Owner {
    /// Sets the cursor, or says what that would do.
    pub(super) async fn seek(&mut self, seek: &Seek) -> Result<SeekEffect, GroupError> {
        if self.existence == Existence::Absent {
            return Err(self.unknown());
        }
        let (wanted, incarnation) =
            resolve_position(&self.core, &self.name.topic, &seek.place).await?;
        if self.is_stale() || self.incarnation != incarnation {
            return Err(self.unknown());
        }
        if !seek.dry_run {
            // A transaction that is being written may commit, so its outcome is applied before the cursor is set.
            self.await_pending_write().await;
        }
        let (first, tail) = self.bounds();
        // Events to come are never passed over.
        let cursor = wanted.min(tail);
        let (redelivered, skipped) = self.state.seek_effect(cursor, first, tail);
        if !seek.dry_run {
            self.void_leases();
            let now_ms = self.now_ms();
            self.state.seek_with_undo(cursor, first, now_ms);
            self.return_credit();
            self.flush_and_wait().await?;
        }
        Ok(SeekEffect {
            cursor,
            redelivered,
            skipped,
            beyond_tail: wanted > tail,
        })
    }

    /// Goes back to where the group was before its cursor was last set.
    pub(super) async fn undo_seek(&mut self) -> Result<SeekEffect, GroupError> {
        if self.existence == Existence::Absent || self.is_stale() {
            return Err(self.unknown());
        }
        self.await_pending_write().await;
        let (first, tail) = self.bounds();
        let plan = match self.state.plan_undo(first, tail) {
            Ok(plan) => plan,
            Err(no_undo) => return Err(self.cannot_undo(no_undo)),
        };
        let (skipped, lag_before) = (plan.skipped, self.state.lag(first, tail));
        self.void_leases();
        let now_ms = self.now_ms();
        self.state.undo_seek(plan, now_ms);
        self.return_credit();
        let lag = self.state.lag(first, tail);
        self.flush_and_wait().await?;
        Ok(SeekEffect {
            cursor: self.state.cursor(),
            redelivered: (lag + skipped).saturating_sub(lag_before),
            skipped,
            beyond_tail: false,
        })
    }

    fn cannot_undo(&self, no_undo: NoUndo) -> GroupError {
        let (topic, group) = (self.name.topic.clone(), self.name.group.clone());
        match no_undo {
            NoUndo::Nothing => NothingToUndo { topic, group }.into(),
            NoUndo::TooMuchSettled { settled } => TooMuchSettled {
                topic,
                group,
                settled,
                limit: self.core.options.max_undo_settled,
            }
            .into(),
        }
    }

    /// The oldest position that the topic keeps, and the newest.
    fn bounds(&self) -> (u64, u64) {
        let info = self.core.store.topic(&self.name.topic);
        info.map_or((1, 0), |info| (info.first_seq, info.tail_seq))
    }

    /// Ends what depends on the positions as they are: leases, also of events in mailboxes, reads and dead letters.
    fn void_leases(&mut self) {
        for member in &self.members {
            member.subscriber.reclaim(member.id, |_| true);
        }
        self.fail_ack_publishes_lease_lost();
        self.pending_read = None;
        self.originals_read = None;
        self.dead_letters.clear();
    }
}
