//! One subscription as the owners of its groups see it: a mailbox they fill, the credit that bounds it, and whether
//! it is paused.

use super::credit::{ByteHold, Credit};
use super::inbox::{Inbox, LeaseId, Message};
use super::state::{AssignmentChange, Leased, MemberId};
use prombus_store::Clock;
use prombus_store::LockExt;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use tokio::sync::Notify;

/// Bytes that are taken out of a mailbox before its owners hear of it.
const RELEASE_THRESHOLD_BYTES: usize = 32 << 10;

/// Why no more deliveries come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The bus was closed.
    BusClosed,
    /// The topic was deleted.
    TopicDeleted,
    /// The group was removed.
    GroupRemoved,
    /// Another bus on the same store has the group.
    TakenOver,
    /// The subscription was let go.
    Unsubscribed,
}

/// A subscription as the owners see it. The mailbox is bounded by the credit.
pub(crate) struct Subscriber {
    /// How history and explanations name it.
    pub(crate) name: Arc<str>,
    /// The most events it is given at a time.
    pub(crate) batch_size: usize,
    pub(crate) credit: Arc<Credit>,
    clock: Arc<dyn Clock>,
    /// It follows a pattern, and topics wait to be joined.
    has_waiting_topics: AtomicBool,
    mailbox: Mutex<Mailbox>,
    /// Notified when a chunk arrives or the mailbox is closed.
    arrived: Notify,
    /// Notified when a group is detached, for the follower of a pattern.
    group_detached: Notify,
    /// Notified when partitions are assigned or revoked.
    assignment_changed: Notify,
}

/// What has changed about the partitions that a subscription has of a topic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Assignment {
    /// The topic.
    pub topic: Arc<str>,
    /// Partitions that go to another member, as soon as it is confirmed that this one is done with them.
    pub revoked: Vec<u32>,
    /// Partitions that come to this subscription from now on.
    pub assigned: Vec<u32>,
}

impl Assignment {
    /// Adds a later change. Returns the partitions that were assigned and revoked before anyone has seen it.
    fn merge(&mut self, change: &AssignmentChange) -> Vec<u32> {
        let is_unseen = |partition: &&u32| self.assigned.contains(partition);
        let unseen: Vec<u32> = change.revoked.iter().filter(is_unseen).copied().collect();
        self.assigned
            .retain(|partition| !unseen.contains(partition));
        let revoked = change.revoked.iter();
        self.revoked
            .extend(revoked.filter(|partition| !unseen.contains(partition)));
        self.assigned.extend(&change.assigned);
        for partitions in [&mut self.revoked, &mut self.assigned] {
            partitions.sort_unstable();
            partitions.dedup();
        }
        unseen
    }
}

#[derive(Default)]
struct Mailbox {
    /// What has changed about partitions, one for each topic.
    assignments: Vec<Assignment>,
    chunks: VecDeque<Chunk>,
    /// How many groups fill it.
    attached_groups: usize,
    /// More groups may come, so that the end of the last one is not the end.
    follows_pattern: bool,
    /// Topics whose groups have stopped filling it, for the follower of a pattern.
    detached: Vec<Arc<str>>,
    paused: bool,
    /// The client behind it does not read, so that nothing is leased to it.
    stalled: bool,
    ended: Option<Ended>,
    /// The waker of the last poll that found nothing.
    poller: Option<Waker>,
}

/// Events leased by one owner at one moment.
pub(crate) struct Chunk {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) member: MemberId,
    pub(crate) leased: VecDeque<Leased>,
    /// The bytes of its events.
    pub(crate) hold: ByteHold,
    /// Bytes of those that were taken out and are not given back yet.
    pub(crate) taken_bytes: usize,
}

/// An event taken out of the mailbox, and where to answer.
pub(crate) struct TakenEvent {
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) member: MemberId,
    pub(crate) leased: Leased,
}

impl Subscriber {
    pub(crate) fn new(
        name: Arc<str>,
        batch_size: usize,
        credit: Credit,
        follows_pattern: bool,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let mailbox = Mailbox {
            follows_pattern,
            ..Mailbox::default()
        };
        Self {
            name,
            batch_size,
            credit: Arc::new(credit),
            clock,
            has_waiting_topics: AtomicBool::new(false),
            mailbox: Mutex::new(mailbox),
            arrived: Notify::new(),
            group_detached: Notify::new(),
            assignment_changed: Notify::new(),
        }
    }

    /// Waits until a group has stopped filling the mailbox.
    pub(crate) async fn group_detached(&self) {
        self.group_detached.notified().await;
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.lock().paused
    }

    /// Whether owners may lease to it now.
    pub(crate) fn is_open(&self) -> bool {
        let mailbox = self.lock();
        !mailbox.paused && !mailbox.stalled
    }

    /// Pauses: what was not looked at goes back to its groups, and nothing new comes in.
    pub(crate) fn pause(&self) {
        let mut mailbox = self.lock();
        mailbox.paused = true;
        Self::return_untaken(mailbox);
    }

    /// Notes whether the client behind it reads. While it does not, its mailbox is empty and nothing is leased to it.
    /// The caller that clears it wakes the owners.
    pub(crate) fn set_stalled(&self, stalled: bool) {
        let mut mailbox = self.lock();
        mailbox.stalled = stalled;
        if stalled {
            Self::return_untaken(mailbox);
        }
    }

    fn return_untaken(mut mailbox: MutexGuard<'_, Mailbox>) {
        let chunks = std::mem::take(&mut mailbox.chunks);
        drop(mailbox);
        for chunk in chunks {
            chunk
                .inbox
                .push(Message::Release(chunk.member, chunk.names()));
        }
    }

    /// Resumes; the caller wakes the owners.
    pub(crate) fn resume(&self) {
        self.lock().paused = false;
    }

    /// One more group fills the mailbox.
    pub(crate) fn attach_group(&self) {
        self.lock().attached_groups += 1;
    }

    /// How many groups fill it.
    pub(crate) fn attached_groups(&self) -> usize {
        self.lock().attached_groups
    }

    /// Whether topics of its pattern wait to be joined.
    pub(crate) fn has_waiting_topics(&self) -> bool {
        self.has_waiting_topics.load(Ordering::Relaxed)
    }

    pub(crate) fn set_waiting_topics(&self, are_waiting: bool) {
        self.has_waiting_topics
            .store(are_waiting, Ordering::Relaxed);
    }

    /// A group does not fill it any more; the last one closes it.
    pub(crate) fn detach_group(&self, topic: &Arc<str>, reason: Ended) {
        let mut mailbox = self.lock();
        mailbox.detach(topic);
        if mailbox.attached_groups == 0 && !mailbox.follows_pattern {
            mailbox.ended.get_or_insert(reason);
        }
        self.notify(mailbox);
        self.group_detached.notify_one();
    }

    /// A group does not fill it any more until its topic has something again, which the follower sees to.
    pub(crate) fn leave_dormant(&self, topic: &Arc<str>) {
        self.lock().detach(topic);
        self.group_detached.notify_one();
    }

    /// The topics whose groups have stopped filling it since the last call.
    pub(crate) fn take_detached(&self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.lock().detached)
    }

    /// Closes the mailbox whatever groups there are.
    pub(crate) fn end(&self, reason: Ended) {
        let mut mailbox = self.lock();
        mailbox.ended.get_or_insert(reason);
        self.notify(mailbox);
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        self.lock().ended
    }

    /// Notes partitions that were assigned to a member of one group, or revoked.
    pub(crate) fn change_assignment(
        &self,
        topic: &Arc<str>,
        (inbox, member): (&Arc<Inbox>, MemberId),
        change: &AssignmentChange,
    ) {
        let mut mailbox = self.lock();
        let pending = &mut mailbox.assignments;
        let at = pending.iter().position(|one| one.topic == *topic);
        let at = at.unwrap_or_else(|| {
            pending.push(Assignment {
                topic: topic.clone(),
                ..Assignment::default()
            });
            pending.len() - 1
        });
        let unseen = pending[at].merge(change);
        self.notify(mailbox);
        self.assignment_changed.notify_one();
        if !unseen.is_empty() {
            // It never knew that it had them, so there is nothing to be done with.
            inbox.push(Message::ConfirmRevoked(member, unseen));
        }
    }

    /// What has changed about the partitions of one topic, where anything has. It comes before the events of partitions
    /// that were assigned.
    pub(crate) fn take_assignment(&self) -> Option<Assignment> {
        let mut mailbox = self.lock();
        let is_empty = mailbox.assignments.is_empty();
        (!is_empty).then(|| mailbox.assignments.remove(0))
    }

    /// Waits for the next change; `None` once the mailbox is closed.
    pub(crate) async fn next_assignment(&self) -> Option<Assignment> {
        loop {
            if let Some(assignment) = self.take_assignment() {
                return Some(assignment);
            }
            if self.ended().is_some() {
                self.assignment_changed.notify_one();
                return None;
            }
            self.assignment_changed.notified().await;
        }
    }

    /// Puts a chunk in; it comes back where the mailbox is closed, paused or stalled.
    pub(crate) fn put(&self, chunk: Chunk) -> Result<(), Chunk> {
        let mut mailbox = self.lock();
        if mailbox.ended.is_some() || mailbox.paused || mailbox.stalled {
            return Err(chunk);
        }
        mailbox.chunks.push_back(chunk);
        self.notify(mailbox);
        Ok(())
    }

    /// The next event, or `None` once the mailbox is closed and empty.
    pub(crate) async fn take(&self) -> Option<TakenEvent> {
        let mut woken = false;
        loop {
            {
                let mut mailbox = self.lock();
                if let Some(taken) = mailbox.pop(self.clock.monotonic_ms()) {
                    // One wake-up came for a whole chunk, so the woken task passes it on.
                    if woken && !mailbox.chunks.is_empty() {
                        self.arrived.notify_one();
                    }
                    return Some(taken);
                }
                if mailbox.ended.is_some() {
                    self.arrived.notify_one();
                    return None;
                }
            }
            self.arrived.notified().await;
            woken = true;
        }
    }

    /// What is there now, up to `limit`, without waiting.
    pub(crate) fn take_ready(&self, limit: usize) -> Vec<TakenEvent> {
        let now_ms = self.clock.monotonic_ms();
        let mut mailbox = self.lock();
        std::iter::from_fn(|| mailbox.pop(now_ms))
            .take(limit)
            .collect()
    }

    /// Hands over what is there, up to `limit` events and until `limit_bytes` of them are reached. `Ready(false)` when
    /// the mailbox is closed and empty; where it is only empty, the caller is woken by what comes next.
    pub(crate) fn poll_take(
        &self,
        context: &mut Context<'_>,
        limit: usize,
        limit_bytes: usize,
        mut take: impl FnMut(TakenEvent),
    ) -> Poll<bool> {
        let now_ms = self.clock.monotonic_ms();
        let mut mailbox = self.lock();
        let (mut taken, mut bytes) = (0, 0);
        while taken < limit && bytes < limit_bytes {
            let Some(next) = mailbox.pop(now_ms) else {
                break;
            };
            taken += 1;
            bytes += next.leased.event.json_bytes().len();
            take(next);
        }
        if taken > 0 || limit == 0 {
            return Poll::Ready(true);
        }
        if mailbox.ended.is_some() {
            return Poll::Ready(false);
        }
        match &mut mailbox.poller {
            Some(poller) => poller.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    /// Takes out what one member of one group did not look at, where `is_wanted` says so.
    pub(crate) fn reclaim(
        &self,
        member: MemberId,
        is_wanted: impl Fn(&Leased) -> bool,
    ) -> Vec<(u64, u64)> {
        let mut mailbox = self.lock();
        let mut untaken = Vec::new();
        for chunk in mailbox
            .chunks
            .iter_mut()
            .filter(|chunk| chunk.member == member)
        {
            let mut bytes = 0;
            chunk.leased.retain(|leased| {
                let wanted = is_wanted(leased);
                if wanted {
                    untaken.push((leased.event.seq(), leased.number));
                    bytes += leased.event.stored_bytes();
                }
                !wanted
            });
            chunk.hold.release(bytes);
        }
        mailbox.chunks.retain(|chunk| !chunk.leased.is_empty());
        untaken
    }

    /// Wakes the waiting tasks after a chunk arrived or the mailbox was closed.
    fn notify(&self, mut mailbox: MutexGuard<'_, Mailbox>) {
        let poller = mailbox.poller.take();
        if mailbox.ended.is_some() {
            self.assignment_changed.notify_one();
        }
        drop(mailbox);
        self.arrived.notify_one();
        if let Some(poller) = poller {
            poller.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Mailbox> {
        self.mailbox.guard()
    }
}

impl Mailbox {
    fn detach(&mut self, topic: &Arc<str>) {
        self.attached_groups = self.attached_groups.saturating_sub(1);
        if self.follows_pattern {
            self.detached.push(topic.clone());
        }
    }

    /// The next event whose lease still holds; one that ran out in here was never seen and goes back.
    fn pop(&mut self, now_ms: u64) -> Option<TakenEvent> {
        loop {
            let chunk = self.chunks.front_mut()?;
            let Some(leased) = chunk.leased.pop_front() else {
                self.chunks.pop_front();
                continue;
            };
            let taken = TakenEvent {
                inbox: chunk.inbox.clone(),
                member: chunk.member,
                leased,
            };
            chunk.taken(taken.leased.event.stored_bytes());
            if chunk.leased.is_empty() {
                self.chunks.pop_front();
            }
            if taken.leased.deadline_ms > now_ms {
                return Some(taken);
            }
            let name = taken.name();
            let untaken = vec![(name.seq, name.number)];
            taken.inbox.push(Message::Release(name.member, untaken));
        }
    }
}

impl Chunk {
    /// Gives bytes back that were taken out, some at a time: each time costs a few shared counters.
    fn taken(&mut self, bytes: usize) {
        self.taken_bytes += bytes;
        if self.taken_bytes >= RELEASE_THRESHOLD_BYTES {
            self.hold.release(std::mem::take(&mut self.taken_bytes));
        }
    }

    /// The leases in it by (position, number).
    pub(crate) fn names(&self) -> Vec<(u64, u64)> {
        self.leased
            .iter()
            .map(|leased| (leased.event.seq(), leased.number))
            .collect()
    }
}

impl TakenEvent {
    pub(crate) fn name(&self) -> LeaseId {
        LeaseId {
            member: self.member,
            seq: self.leased.event.seq(),
            number: self.leased.number,
        }
    }
}
