//! Partitions of the group: how many there are, and telling members which ones they have.

use super::{Member, Owner};
use crate::error::{GroupError, InvalidField};
use crate::group::state::{AssignmentChange, MemberId};
use std::collections::BTreeMap;

impl Owner {
    /// Gives the group the partitions of its topic, where it is partitioned.
    pub(super) fn take_partitions(&mut self) {
        if self.state.settings().partitioned {
            let count = self.core.topics.partitions(&self.name.topic);
            // A topic that lost its partitions is one.
            self.state.set_partitions(Some(count.unwrap_or(1)));
        }
    }

    /// Rejects a partitioned group where there is nothing to assign, or no member that can be notified.
    pub(super) fn check_partitioned(&self, follows_pattern: bool) -> Result<(), GroupError> {
        let reason = if self.name.ephemeral {
            "needs a group, whose members share the partitions"
        } else if follows_pattern {
            "needs the name of a topic: each topic of a pattern would assign its own partitions"
        } else if self.core.topics.partitions(&self.name.topic).is_none() {
            "the topic has no partitions; set `partitions` in its configuration first"
        } else {
            return Ok(());
        };
        Err(InvalidField::new("partitioned", reason).into())
    }

    /// Assigns partitions where something has changed, and notifies the members.
    pub(super) fn assign_partitions(&mut self, now_ms: u64) {
        let Some(count) = self.state.partition_count() else {
            return;
        };
        let wanted = self.core.topics.partitions(&self.name.topic).unwrap_or(1);
        if wanted != count {
            self.state.set_partitions(Some(wanted));
            self.page = None;
        }
        // What members did not look at is taken back, and may have been all that kept a partition from its next member.
        loop {
            let changes = self.state.rebalance(now_ms);
            if changes.is_empty() {
                break;
            }
            self.tell_members(&changes);
            self.share_status();
        }
    }

    /// Takes back what members hold, before another state assigns anew.
    pub(super) fn revoke_all(&mut self, held: BTreeMap<MemberId, Vec<u32>>) {
        let revoked = held.into_iter().map(|(member, revoked)| {
            let change = AssignmentChange {
                revoked,
                assigned: Vec::new(),
            };
            (member, change)
        });
        self.tell_members(&revoked.collect());
    }

    fn tell_members(&mut self, changes: &BTreeMap<MemberId, AssignmentChange>) {
        for (&id, change) in changes {
            let is_meant = |member: &&Member| member.id == id;
            let Some(member) = self.members.iter().find(is_meant) else {
                continue;
            };
            let subscriber = member.subscriber.clone();
            if !change.revoked.is_empty() {
                // What it did not look at is not its business any more.
                let untaken = subscriber.reclaim(id, |leased| {
                    self.state.is_in(leased.event.seq(), &change.revoked)
                });
                self.state.release(id, &untaken);
            }
            subscriber.change_assignment(&self.name.topic, (&self.inbox, id), change);
        }
        self.return_credit();
    }
}
