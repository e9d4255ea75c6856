//! Which member holds which partition of a partitioned group.
//!
//! ```text
//!            assigned to its target                  its target is another
//!   free ────────────────────────────▶ held ────────────────────────────────▶ revoked
//!    ▲                                  │ its holder left                       │
//!    └────────── no lease is open ◀─────┴── its holder confirmed, or had as long as a lease is and has none open
//! ```
//!
//! A revoked partition gets no new leases, and no other member gets it before its holder is done with it. So no two members
//! work on one partition at a time, and the events of a partition reach its next holder after those that the last one
//! settled.

use super::slot::Stage;
use super::{GroupState, MemberId};
use crate::partition::{assign, partition_of_event};
use prombus_store::StoredEvent;
use std::collections::BTreeMap;

/// The partitions of a group, and who holds them.
#[derive(Debug, Clone)]
pub(super) struct Partitions {
    all: Vec<Partition>,
    /// Which of a member's partitions is served first; it changes, so that none is always last.
    turn: usize,
    /// Something has changed that decides who gets which.
    is_dirty: bool,
    /// How many have a holder, as of the last change.
    held: u32,
    /// What members have to be notified of.
    changes: BTreeMap<MemberId, AssignmentChange>,
}

#[derive(Debug, Clone, Default)]
struct Partition {
    holder: Option<MemberId>,
    /// How many events of it are leased.
    leased: usize,
    /// It was revoked, and is free at this moment at the latest where no lease is open then.
    free_at_ms: Option<u64>,
}

/// What has changed for a member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AssignmentChange {
    /// In ascending order, as the others.
    pub(crate) revoked: Vec<u32>,
    pub(crate) assigned: Vec<u32>,
}

impl Partitions {
    fn new(count: u32) -> Self {
        Self {
            all: vec![Partition::default(); count.max(1) as usize],
            turn: 0,
            is_dirty: true,
            held: 0,
            changes: BTreeMap::new(),
        }
    }

    fn count(&self) -> u32 {
        self.all.len() as u32
    }

    fn is_open_to(&self, at: usize, member: MemberId) -> bool {
        let partition = &self.all[at];
        partition.holder == Some(member) && partition.free_at_ms.is_none()
    }

    pub(super) fn leased(&mut self, at: u16) {
        self.all[usize::from(at)].leased += 1;
    }

    pub(super) fn lease_ended(&mut self, at: u16) {
        let partition = &mut self.all[usize::from(at)];
        partition.leased = partition.leased.saturating_sub(1);
        self.is_dirty |=
            partition.leased == 0 && (partition.holder.is_none() || partition.free_at_ms.is_some());
    }

    /// All leases are void.
    pub(super) fn leases_voided(&mut self) {
        for partition in &mut self.all {
            partition.leased = 0;
        }
        self.is_dirty = true;
    }

    pub(super) fn touch(&mut self) {
        self.is_dirty = true;
    }

    /// When a revoked partition without open leases becomes free by itself.
    pub(super) fn next_due(&self) -> Option<u64> {
        let revoked = self.all.iter().filter(|one| one.leased == 0);
        revoked.filter_map(|one| one.free_at_ms).min()
    }
}

impl GroupState {
    /// Makes the group one of so many partitions, or one without. What was ready is read again.
    pub(crate) fn set_partitions(&mut self, count: Option<u32>) {
        self.shed_ready();
        let replaced = std::mem::replace(&mut self.partitions, count.map(Partitions::new));
        self.queues = super::queues::Queues::new(count);
        let mut missing = Vec::new();
        for (seq, slot) in self.unsettled.iter_mut() {
            slot.queue = count.map_or(0, |count| (slot.partition % count) as u16);
            if slot.stage == Stage::Missing {
                missing.push((slot.queue, seq));
            }
            if let (Some(partitions), Stage::Leased(_) | Stage::Pinned(_)) =
                (&mut self.partitions, slot.stage)
            {
                partitions.leased(slot.queue);
            }
        }
        for (queue, seq) in missing {
            self.queues.add_missing(queue, seq);
        }
        let (Some(replaced), Some(partitions)) = (replaced, &mut self.partitions) else {
            return;
        };
        // Everyone loses what it had; the open leases keep the new partitions from being assigned.
        for (at, partition) in replaced.all.iter().enumerate() {
            if let Some(holder) = partition.holder
                && partition.free_at_ms.is_none()
            {
                let change = partitions.changes.entry(holder).or_default();
                change.revoked.push(at as u32);
            }
        }
    }

    /// How many partitions the group has, where it is partitioned.
    pub(crate) fn partition_count(&self) -> Option<u32> {
        self.partitions.as_ref().map(Partitions::count)
    }

    /// The partition of an event, and the queue that it waits in.
    pub(super) fn place_of(&self, event: &StoredEvent) -> (u32, u16) {
        match &self.partitions {
            None => (0, 0),
            Some(partitions) => {
                let partition = partition_of_event(event, partitions.count());
                (partition, (partition % partitions.count()) as u16)
            }
        }
    }

    /// The queues that a member is served from and that have something ready, in turn.
    pub(super) fn ready_queues_of(&self, member: MemberId) -> impl Iterator<Item = u16> {
        let partitions = self.partitions.as_ref();
        let (count, turn) = partitions.map_or((1, 0), |one| (one.all.len(), one.turn));
        let in_turn = (turn..count).chain(0..turn);
        let is_ready = move |at: &usize| {
            partitions.is_none_or(|partitions| {
                partitions.is_open_to(*at, member) && self.queues.ready_in(*at as u16) > 0
            })
        };
        in_turn.filter(is_ready).map(|at| at as u16)
    }

    /// The next lease begins with another partition.
    pub(super) fn turn_partitions(&mut self) {
        if let Some(partitions) = &mut self.partitions {
            partitions.turn = (partitions.turn + 1) % partitions.all.len();
        }
    }

    /// The partitions that members hold or are about to let go, by member.
    pub(crate) fn assignments(&self) -> BTreeMap<MemberId, Vec<u32>> {
        let mut held: BTreeMap<MemberId, Vec<u32>> = BTreeMap::new();
        let partitions = self.partitions.iter().flat_map(|one| &one.all);
        for (at, partition) in partitions.enumerate() {
            if let Some(holder) = partition.holder {
                held.entry(holder).or_default().push(at as u32);
            }
        }
        held
    }

    /// Whether an unsettled event is in one of these partitions, as they were numbered when it was leased or are now.
    pub(crate) fn is_in(&self, seq: u64, partitions: &[u32]) -> bool {
        self.unsettled.get(seq).is_some_and(|slot| {
            partitions.contains(&slot.partition) || partitions.contains(&u32::from(slot.queue))
        })
    }

    /// Whether a member could be given missing events of a queue, if it has room.
    pub(crate) fn holder_of_queue(&self, queue: u16) -> Option<MemberId> {
        let partition = self.partitions.as_ref()?.all.get(usize::from(queue))?;
        partition.holder.filter(|_| partition.free_at_ms.is_none())
    }

    /// A member is done with partitions that were revoked: what it holds of them goes back without counting.
    pub(crate) fn confirm_revoked(&mut self, member: MemberId, partitions: &[u32]) {
        let Some(table) = &mut self.partitions else {
            return;
        };
        let mut confirmed = vec![false; table.all.len()];
        for &at in partitions {
            let Some(partition) = table.all.get_mut(at as usize) else {
                continue;
            };
            if partition.holder == Some(member) && partition.free_at_ms.is_some() {
                // Free at once, but for events in transactions that are being written.
                partition.free_at_ms = Some(0);
                confirmed[at as usize] = true;
            }
        }
        table.is_dirty = true;
        let is_free = |queue: u16| table.all[usize::from(queue)].holder.is_none();
        let held = self.unsettled.iter().filter_map(|(seq, slot)| {
            let Stage::Leased(lease) = slot.stage else {
                return None;
            };
            // Where the number of partitions has changed, no member holds the one that the event is in by now.
            let is_done = confirmed[usize::from(slot.queue)]
                || is_free(slot.queue) && partitions.contains(&slot.partition);
            (is_done && lease.member == member).then_some((seq, lease.number))
        });
        let held: Vec<(u64, u64)> = held.collect();
        self.release(member, &held);
    }

    /// Gives free partitions to their members and takes others back, where something has changed. What members have to be
    /// told of it is returned, once.
    pub(crate) fn rebalance(&mut self, now_ms: u64) -> BTreeMap<MemberId, AssignmentChange> {
        let Some(partitions) = &mut self.partitions else {
            return BTreeMap::new();
        };
        let is_due = partitions.next_due().is_some_and(|due_ms| due_ms <= now_ms);
        if !std::mem::take(&mut partitions.is_dirty) && !is_due {
            return std::mem::take(&mut partitions.changes);
        }
        let members = self.member_states.iter();
        let members: Vec<_> = members.filter(|(_, member)| !member.has_left).collect();
        let targets = assign(
            partitions.count(),
            members.iter().map(|(_, member)| &*member.name),
        );
        for (at, partition) in partitions.all.iter_mut().enumerate() {
            let target = targets[at].map(|place| *members[place].0);
            let holder = partition.holder.and_then(|holder| {
                members
                    .iter()
                    .find(|(member, _)| **member == holder)
                    .copied()
            });
            if let Some((&holder, state)) = holder {
                if partition.free_at_ms.is_none() && target != Some(holder) {
                    let own_ms = state.ack_timeout_ms;
                    let timeout_ms = own_ms.unwrap_or(self.rules.settings.ack_timeout_ms);
                    partition.free_at_ms = Some(now_ms.saturating_add(timeout_ms));
                    let change = partitions.changes.entry(holder).or_default();
                    change.revoked.push(at as u32);
                }
                let is_free = partition.leased == 0
                    && partition
                        .free_at_ms
                        .is_some_and(|free_ms| free_ms <= now_ms);
                if is_free {
                    *partition = Partition::default();
                }
            } else {
                partition.holder = None;
                partition.free_at_ms = None;
            }
            if partition.holder.is_none()
                && partition.leased == 0
                && let Some(target) = target
            {
                partition.holder = Some(target);
                let change = partitions.changes.entry(target).or_default();
                change.assigned.push(at as u32);
            }
        }
        let held = partitions.all.iter().filter(|one| one.holder.is_some());
        partitions.held = held.count() as u32;
        std::mem::take(&mut partitions.changes)
    }

    /// How many partitions have a holder and how many have none.
    pub(crate) fn partitions_held(&self) -> (u32, u32) {
        let partitions = self.partitions.as_ref();
        partitions.map_or((0, 0), |one| (one.held, one.count() - one.held))
    }
}
