//! The state of one group, and all decisions about it, as plain functions of (state, input, now): no clock, no task,
//! no store.
//!
//! ```text
//!                offer                      lease                    ack
//!   (unread) ────────────▶ Ready ────────────────────────▶ Leased ─────────▶ settled
//!       ▲                    ▲                               │
//!       │ not wanted:        │ supply: its bytes were read   │ nack, expiry, lost member
//!       │ settled unseen     │                               ▼
//!     head                Missing ◀──── due ──────────── Waiting      or DeadLettering: dead letter, then settled
//!                            ▲
//!                            └──── its lane is free ──── Behind
//! ```
//!
//! While an event is part of an ack-and-publish transaction it is `Pinned`, until the transaction is known
//! to be written, which settles it, or not, which puts it back to where it was.
//!
//! Only what is unsettled is kept: everything else up to `head` is settled. The cursor is the position before the
//! lowest unsettled one. Bytes of events are held only while `Ready`, so memory follows what members can take.
//!
//! `now_ms` is monotonic everywhere; what people read and what is stored is in wall time, by `Rules::wall_offset_ms`.

mod ack_publish;
mod adoption;
mod blocked_keys;
mod leases;
mod parked_partitions;
mod partitions;
mod persistence;
mod queues;
mod read_ahead;
mod settlement;
mod slot;
mod stats;
mod undo;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod partition_tests;
#[cfg(test)]
mod tests;

pub(crate) use ack_publish::{AckPublishConflict, ConflictReason, MEMBER_LEFT};
pub(crate) use adoption::HeldLease;
pub(crate) use leases::{Leased, MIN_EXTENSION_MS};
pub(crate) use partitions::AssignmentChange;
use prombus_interface::{GroupCounts, Retry};
pub(crate) use settlement::Settled;
pub(crate) use stats::BlockedLane;
pub(crate) use undo::NoUndo;

use super::blocked_keys::BlockedKeys;
use super::history::History;
use super::lanes::{Lane, Lanes};
use super::ranges::Ranges;
use super::record::SeekUndo;
use super::settings::GroupSettings;
use super::timers::Timers;
use super::unsettled::Unsettled;
use crate::options::Backoff;
use adoption::Adopted;
use partitions::Partitions;
use queues::Queues;
use slot::Slot;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// A member of the group, numbered so that no number comes twice while the group is served.
pub(crate) type MemberId = u64;

/// What becomes of an event whose last attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExhaustedPolicy {
    /// It is written to the dead letter topic, atomically with being settled.
    DeadLetter,
    /// It is settled and leaves nothing behind: the group is ephemeral.
    Discard,
    /// It goes on at the longest backoff: it is a dead letter itself.
    RetryForever,
}

/// What a group goes by.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) settings: GroupSettings,
    pub(crate) backoff: Backoff,
    pub(crate) exhausted_policy: ExhaustedPolicy,
    /// The most unsettled events it keeps track of.
    pub(crate) window: usize,
    /// An event whose deliveries ended so often because the member or the server went away is given up as well.
    pub(crate) max_lost_attempts: u32,
    /// A seek can be undone until more positions than this were settled after it.
    pub(crate) max_undo_settled: u64,
    /// What has to be added to monotonic time to get epoch milliseconds.
    pub(crate) wall_offset_ms: i64,
}

/// The state of one group.
#[derive(Debug, Clone)]
pub(crate) struct GroupState {
    rules: Rules,
    /// When the group was made.
    created_ms: u64,
    /// Everything up to here has been read, and is settled unless it is in `unsettled`.
    head: u64,
    unsettled: Unsettled<Slot>,
    /// Settled above `head`, from before the group was loaded.
    settled_ahead: Ranges,
    /// Events above `head` that were delivered before the group was loaded.
    restored: BTreeMap<u64, RestoredEvent>,
    /// `Ready` and `Missing` events.
    queues: Queues,
    /// Who holds which partition, where the group is partitioned.
    partitions: Option<Partitions>,
    timers: Timers,
    /// How many are `Leased` or `Waiting`, each with one live timer.
    timed: usize,
    lanes: Lanes,
    /// Events that wait behind others of their key, outside the window.
    blocked_keys: BlockedKeys,
    /// Keys that are free and have parked events.
    refills: BTreeSet<Lane>,
    /// What was carried of events that are parked.
    restored_blocked: BTreeMap<u64, RestoredEvent>,
    member_states: BTreeMap<MemberId, MemberState>,
    /// `DeadLettering`, and not yet taken to be written.
    dead_lettering: VecDeque<u64>,
    /// Unsettled events that were delivered and whose publisher chose the id.
    client_ids: HashMap<Arc<str>, u64>,
    /// What the ids that the bus makes for this topic have in common.
    id_tag: Option<u32>,
    next_lease: u64,
    /// Leases before this one were void when the cursor was set.
    first_valid_lease: u64,
    /// Up to here events may have been delivered before the cursor was set back; acknowledging them is void.
    void_until: u64,
    /// Since when nothing is delivered, in epoch milliseconds, where someone asked for that.
    paused_since_ms: Option<u64>,
    /// Where the group was before the cursor was last set.
    undo: Option<Arc<SeekUndo>>,
    /// Events that retention took before the group saw them.
    skipped: u64,
    counts: GroupCounts,
    /// Grows with everything that is worth writing down.
    changes: u64,
    /// Events up to a position wait until a moment: another node's members may still hold them.
    held_back: Option<(u64, u64)>,
    /// Leases of an earlier owner that go on, of events above `head`.
    adopted: BTreeMap<u64, Adopted>,
}

/// An event that was delivered before the group was loaded.
#[derive(Debug, Clone, Default)]
struct RestoredEvent {
    history: History,
    due_ms: u64,
}

/// What the state knows of a member.
#[derive(Debug, Clone)]
struct MemberState {
    name: Arc<str>,
    /// How long its leases are, where it says so.
    ack_timeout_ms: Option<u64>,
    leased: usize,
    /// Leases that have ended since the owner last asked.
    freed: usize,
    /// It has left, and is kept only while its transactions pin events.
    has_left: bool,
}

impl GroupState {
    /// A new group that begins after `cursor`.
    pub(crate) fn new(rules: Rules, cursor: u64, now_ms: u64) -> Self {
        Self {
            created_ms: now_ms.saturating_add_signed(rules.wall_offset_ms),
            rules,
            head: cursor,
            unsettled: Unsettled::new(),
            settled_ahead: Ranges::default(),
            restored: BTreeMap::new(),
            queues: Queues::new(None),
            partitions: None,
            timers: Timers::default(),
            timed: 0,
            lanes: Lanes::default(),
            blocked_keys: BlockedKeys::default(),
            refills: BTreeSet::new(),
            restored_blocked: BTreeMap::new(),
            member_states: BTreeMap::new(),
            dead_lettering: VecDeque::new(),
            client_ids: HashMap::new(),
            id_tag: None,
            next_lease: 1,
            first_valid_lease: 1,
            void_until: 0,
            paused_since_ms: None,
            undo: None,
            skipped: 0,
            counts: GroupCounts::default(),
            changes: 0,
            held_back: None,
            adopted: BTreeMap::new(),
        }
    }

    /// The last position before which everything is settled.
    pub(crate) fn cursor(&self) -> u64 {
        let first = [self.unsettled.first(), self.blocked_keys.first()];
        let first = first.into_iter().flatten().min();
        first.map_or(self.head, |first| first - 1)
    }

    /// Takes note of how far the wall clock is from monotonic time.
    pub(crate) fn set_wall_offset(&mut self, offset_ms: i64) {
        self.rules.wall_offset_ms = offset_ms;
    }

    /// A moment as the wall clock shows it.
    pub(crate) fn wall_ms(&self, moment_ms: u64) -> u64 {
        moment_ms.saturating_add_signed(self.rules.wall_offset_ms)
    }

    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    pub(crate) fn settings(&self) -> &GroupSettings {
        &self.rules.settings
    }

    /// Changes what the group goes by; events already read keep their lanes.
    pub(crate) fn settings_mut(&mut self) -> &mut GroupSettings {
        &mut self.rules.settings
    }

    /// Since when nothing is delivered, in epoch milliseconds, where the group is paused.
    pub(crate) fn paused_since_ms(&self) -> Option<u64> {
        self.paused_since_ms
    }

    /// Pauses the group or lets it go on; a pause that is there already keeps its time.
    pub(crate) fn set_paused(&mut self, paused: bool, now_ms: u64) {
        if paused != self.paused_since_ms.is_some() {
            self.paused_since_ms = paused.then(|| self.wall_ms(now_ms));
            self.changes += 1;
        }
    }

    /// A number that differs whenever there is something to write down.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// Notes that something outside the events has changed.
    pub(crate) fn touch(&mut self) {
        self.changes += 1;
    }

    pub(crate) fn counts(&self) -> &GroupCounts {
        &self.counts
    }

    /// Lets events up to a position that are yet to be read wait until a moment.
    pub(crate) fn hold_back(&mut self, through_seq: u64, until_ms: u64) {
        self.held_back = Some((through_seq, until_ms));
    }

    /// Until when an event is held back at least.
    fn held_until_ms(&self, seq: u64) -> u64 {
        match self.held_back {
            Some((through_seq, until_ms)) if seq <= through_seq => until_ms,
            _ => 0,
        }
    }

    /// Goes on counting where an earlier owner stopped.
    pub(crate) fn resume_counts(&mut self, counts: GroupCounts) {
        let in_flight = self.counts.in_flight;
        self.counts = GroupCounts {
            in_flight,
            ..counts
        };
    }

    /// Lets a member in.
    pub(crate) fn join(&mut self, member: MemberId, name: Arc<str>) {
        let member_state = MemberState {
            name,
            ack_timeout_ms: None,
            leased: 0,
            freed: 0,
            has_left: false,
        };
        self.member_states.insert(member, member_state);
        if let Some(partitions) = &mut self.partitions {
            partitions.touch();
        }
    }

    /// Gives a member leases of its own length.
    pub(crate) fn set_ack_timeout(&mut self, member: MemberId, ack_timeout_ms: Option<u64>) {
        if let Some(member_state) = self.member_states.get_mut(&member) {
            member_state.ack_timeout_ms = ack_timeout_ms;
        }
    }

    /// Goes on numbering leases where the state that this one replaces stopped.
    pub(crate) fn resume_leases(&mut self, replaced: &Self) {
        self.next_lease = replaced.next_lease;
    }

    /// Takes over a pause from the state that this one replaces.
    pub(crate) fn resume_pause(&mut self, replaced: &Self) {
        self.paused_since_ms = replaced.paused_since_ms;
    }

    /// How many leases of each member have ended since the last call.
    pub(crate) fn take_freed(&mut self, mut each: impl FnMut(MemberId, usize)) {
        for (&member, member_state) in &mut self.member_states {
            if member_state.freed > 0 {
                each(member, std::mem::take(&mut member_state.freed));
            }
        }
    }

    /// Forgets everything that was read and begins after `cursor`. Leases given so far are void.
    pub(crate) fn seek(&mut self, cursor: u64) {
        self.member_states
            .retain(|_, member_state| !member_state.has_left);
        for member_state in self.member_states.values_mut() {
            member_state.freed += std::mem::take(&mut member_state.leased);
        }
        self.void_until = self.void_until.max(self.head);
        self.head = cursor;
        self.unsettled = Unsettled::new();
        self.settled_ahead.clear();
        self.restored.clear();
        self.adopted.clear();
        self.queues.clear();
        if let Some(partitions) = &mut self.partitions {
            partitions.leases_voided();
        }
        self.timers.clear();
        self.timed = 0;
        self.lanes.clear();
        self.blocked_keys.clear();
        self.refills.clear();
        self.restored_blocked.clear();
        self.dead_lettering.clear();
        self.client_ids.clear();
        self.first_valid_lease = self.next_lease;
        self.counts.in_flight = 0;
        self.changes += 1;
    }
}
