//! Leases that the other node gave: their events are read from this node's copy and put into the members' mailboxes, as there is
//! room.

use super::super::Owner;
use crate::group::credit::ByteHold;
use crate::group::relay::{FromRelay, Grant};
use crate::group::state::{AssignmentChange, HeldLease, Leased, MemberId};
use crate::group::subscriber::Chunk;
use prombus_store::{Answer, Page, ReadError, ReadFrom, ReadLimit, StoredEvent};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// How far apart events may be to be read together.
const READ_SPAN: u64 = 512;
/// About how many bytes one read brings.
const READ_BYTES: usize = 1 << 20;

/// A lease whose event is yet to be read.
pub(super) struct WaitingGrant {
    pub(super) member: MemberId,
    grant: Grant,
    deadline_ms: u64,
}

/// A read that is under way.
pub(super) struct GrantedRead {
    answer: Answer<Page, ReadError>,
    from_seq: u64,
}

/// What a read brought.
pub(super) struct GrantedPage {
    page: Result<Page, ReadError>,
    from_seq: u64,
}

/// Waits for the read that is under way, for ever where there is none.
pub(super) async fn done(reading: &mut Option<GrantedRead>) -> GrantedPage {
    let Some(pending) = reading else {
        return std::future::pending().await;
    };
    let page = pending.answer.as_mut().await;
    let from_seq = pending.from_seq;
    *reading = None;
    GrantedPage { page, from_seq }
}

impl Owner {
    /// Takes in leases of a member.
    pub(super) fn granted(&mut self, member: MemberId, at_ms: u64, leases: Vec<Grant>) {
        let clock_ms = self.relay_mut().clock_ms.unwrap_or_default();
        if !self.members.iter().any(|one| one.id == member) {
            // It left meanwhile, which the other node is told.
            return;
        }
        for grant in leases {
            let deadline_ms = at_ms.saturating_add(grant.left_ms);
            let deadline_ms = deadline_ms.saturating_add_signed(clock_ms);
            self.relay_mut().grants.push_back(WaitingGrant {
                member,
                grant,
                deadline_ms,
            });
        }
    }

    /// Partitions were assigned or revoked.
    pub(super) fn assigned(&mut self, member: MemberId, revoked: Vec<u32>, assigned: Vec<u32>) {
        let partitions = self.relay_mut().partitions.entry(member).or_default();
        for partition in &revoked {
            partitions.remove(partition);
        }
        partitions.extend(&assigned);
        let subscriber = self.members.iter().find(|one| one.id == member);
        if let Some(subscriber) = subscriber.map(|one| one.subscriber.clone()) {
            let change = AssignmentChange { revoked, assigned };
            subscriber.change_assignment(&self.name.topic, (&self.inbox, member), &change);
        }
    }

    /// Begins to read the events of the next leases, where their member has room and this node's copy has them.
    pub(super) fn read_granted(&mut self) {
        let now_ms = self.now_ms();
        let tail_seq = self.tail.current();
        if self.relay_mut().reading.is_some() {
            return;
        }
        self.relay_mut()
            .grants
            .retain(|one| one.deadline_ms > now_ms);
        self.release_excess();
        let Some(first) = self.next_grant_with_room() else {
            return;
        };
        if first > tail_seq {
            return;
        }
        let grants = &self.relay_mut().grants;
        let seqs = grants.iter().map(|one| one.grant.seq);
        let last = seqs
            .filter(|seq| (first..first + READ_SPAN).contains(seq))
            .max();
        let last = last.unwrap_or(first).min(tail_seq);
        let limit = ReadLimit {
            events: (last - first) as usize + 1,
            bytes: READ_BYTES,
        };
        let answer = self
            .core
            .store
            .read(&self.name.topic, ReadFrom::Seq(first), limit);
        self.relay_mut().reading = Some(GrantedRead {
            answer,
            from_seq: first,
        });
    }

    /// Gives back leases of members that may not have so many any more, such as one whose pull has ended.
    fn release_excess(&mut self) {
        let mut waiting: BTreeMap<MemberId, usize> = BTreeMap::new();
        for one in &self.relay_mut().grants {
            *waiting.entry(one.member).or_default() += 1;
        }
        for (member, count) in waiting {
            let subscriber = self.members.iter().find(|one| one.id == member);
            let Some(credit) = subscriber.map(|one| one.subscriber.credit.clone()) else {
                continue;
            };
            let relay = self.relay_mut();
            let held = relay.held.range((member, 0)..=(member, u64::MAX)).count();
            let mut excess = (held + count).saturating_sub(credit.limit());
            if excess == 0 {
                continue;
            }
            let mut leases = Vec::with_capacity(excess);
            for at in (0..relay.grants.len()).rev() {
                if excess > 0
                    && relay.grants[at].member == member
                    && let Some(one) = relay.grants.remove(at)
                {
                    leases.push((one.grant.seq, one.grant.number));
                    excess -= 1;
                }
            }
            self.send(&FromRelay::Release { member, leases });
        }
    }

    /// The lowest position whose member has room for an event.
    fn next_grant_with_room(&self) -> Option<u64> {
        let relay = self.relay.as_ref()?;
        let mut with_room: HashMap<MemberId, bool> = HashMap::new();
        let mut lowest = None;
        for waiting in &relay.grants {
            let has_room = *with_room.entry(waiting.member).or_insert_with(|| {
                let member = self.members.iter().find(|one| one.id == waiting.member);
                member.is_some_and(|one| {
                    let credit = &one.subscriber.credit;
                    let has_room = credit.has_room(&self.inbox);
                    if !has_room {
                        credit.enqueue(&self.inbox);
                    }
                    has_room || !one.subscriber.is_open()
                })
            });
            if has_room {
                let seq = waiting.grant.seq;
                lowest = Some(lowest.map_or(seq, |lowest: u64| lowest.min(seq)));
            }
        }
        lowest
    }

    /// Puts what was read into the mailboxes; what is gone, or whose member takes nothing now, goes back.
    pub(super) fn hand_out(&mut self, read: GrantedPage) {
        let Ok(page) = read.page else {
            return;
        };
        let until_seq = page.next_seq;
        let mut events: BTreeMap<u64, StoredEvent> = BTreeMap::new();
        for event in page.events {
            events.insert(event.seq(), event);
        }
        let mut untaken: BTreeMap<MemberId, Vec<(u64, u64)>> = BTreeMap::new();
        let mut chunks: BTreeMap<MemberId, (Vec<Leased>, usize)> = BTreeMap::new();
        let waiting = std::mem::take(&mut self.relay_mut().grants);
        let mut kept = VecDeque::with_capacity(waiting.len());
        for one in waiting {
            let seq = one.grant.seq;
            if !(read.from_seq..until_seq.max(read.from_seq)).contains(&seq) {
                kept.push_back(one);
                continue;
            }
            let Some(event) = events.get(&seq) else {
                let gone = untaken.entry(one.member).or_default();
                gone.push((seq, one.grant.number));
                continue;
            };
            let chunk = chunks.entry(one.member).or_default();
            if !self.takes_credit(one.member, event.stored_bytes(), chunk.1) {
                kept.push_back(one);
                continue;
            }
            chunk.1 += event.stored_bytes();
            chunk.0.push(leased(&one, event.clone()));
        }
        self.relay_mut().grants = kept;
        for (member, (leased, bytes)) in chunks {
            self.put(member, leased, bytes, &mut untaken);
        }
        for (member, leases) in untaken {
            self.send(&FromRelay::Release { member, leases });
        }
    }

    /// Takes room for one more event of a member, where there is some.
    fn takes_credit(&self, member: MemberId, bytes: usize, taken_bytes: usize) -> bool {
        let Some(member) = self.members.iter().find(|one| one.id == member) else {
            return false;
        };
        let credit = &member.subscriber.credit;
        let has_bytes = taken_bytes == 0 && credit.byte_room(&self.inbox) > 0
            || credit.byte_room(&self.inbox) >= taken_bytes + bytes;
        has_bytes && credit.take(1, &self.inbox) == 1
    }

    fn put(
        &mut self,
        member: MemberId,
        leased: Vec<Leased>,
        bytes: usize,
        untaken: &mut BTreeMap<MemberId, Vec<(u64, u64)>>,
    ) {
        let found = self.members.iter().find(|one| one.id == member);
        let Some(subscriber) = found.map(|one| one.subscriber.clone()) else {
            return;
        };
        if leased.is_empty() {
            return;
        }
        let held: Vec<HeldLease> = leased.iter().map(held_lease).collect();
        let hold = ByteHold::new(&subscriber.credit, &self.inbox, bytes);
        let chunk = Chunk {
            inbox: self.inbox.clone(),
            member,
            leased: VecDeque::from(leased),
            hold,
            taken_bytes: 0,
        };
        // Before it is in the mailbox, for it may be settled at once.
        let relay = self.relay_mut();
        for lease in held {
            let expiry_ms = relay.expiry_ms.get_or_insert(lease.deadline_ms);
            *expiry_ms = (*expiry_ms).min(lease.deadline_ms);
            relay.held.insert((member, lease.seq), lease);
        }
        if let Err(chunk) = subscriber.put(chunk) {
            let names = chunk.names();
            for (seq, _) in &names {
                self.relay_mut().held.remove(&(member, *seq));
            }
            subscriber.credit.release(names.len(), &self.inbox);
            untaken.entry(member).or_default().extend(names);
        }
    }

    /// Forgets leases that ran out. What members have not looked at is given back.
    pub(super) fn expire_held(&mut self, now_ms: u64) {
        if self
            .relay_mut()
            .expiry_ms
            .is_none_or(|at_ms| at_ms > now_ms)
        {
            return;
        }
        let mut untaken = Vec::new();
        for member in &self.members {
            let is_over = |leased: &Leased| leased.deadline_ms <= now_ms;
            untaken.push((member.id, member.subscriber.reclaim(member.id, is_over)));
        }
        for (member, leases) in untaken {
            if !leases.is_empty() {
                self.send(&FromRelay::Release { member, leases });
            }
        }
        let relay = self.relay_mut();
        let over: Vec<(MemberId, u64)> = relay
            .held
            .iter()
            .filter(|(_, lease)| lease.deadline_ms <= now_ms)
            .map(|(name, _)| *name)
            .collect();
        for name in &over {
            relay.held.remove(name);
        }
        relay.expiry_ms = relay.held.values().map(|lease| lease.deadline_ms).min();
        for (member, _) in over {
            self.release_credit(member, 1);
        }
    }
}

fn leased(waiting: &WaitingGrant, event: StoredEvent) -> Leased {
    Leased {
        event,
        number: waiting.grant.number,
        attempt: waiting.grant.attempt,
        max_attempts: waiting.grant.max_attempts,
        deadline_ms: waiting.deadline_ms,
        timeout_ms: waiting.grant.timeout_ms,
    }
}

fn held_lease(leased: &Leased) -> HeldLease {
    HeldLease {
        seq: leased.event.seq(),
        number: leased.number,
        attempt: leased.attempt,
        deadline_ms: leased.deadline_ms,
    }
}
