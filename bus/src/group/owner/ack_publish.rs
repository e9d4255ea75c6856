//! Ack-and-publish transactions: one atomic batch of the published events and the group's record in which
//! the acknowledged events are settled. All transactions that arrive during a write share the next one; where that is
//! rejected because of one of them, they are written one by one, so that only that one fails.

use super::persistence::PendingWrite;
use super::{Existence, Owner};
use crate::error::{AckPublishError, AlreadySettled, LeaseLost, TakenOver};
use crate::group::command::AckPublishByIds;
use crate::group::inbox::{AckPublishReply, AckPublishRequest};
use crate::group::state::{AckPublishConflict, ConflictReason, MemberId};
use crate::publish::AtomicBatch;
use prombus_store::{Batch, CommitError, Receipt};
use std::collections::VecDeque;

/// How many events one write acknowledges or publishes at most; a larger transaction is written alone.
const MAX_ACK_PUBLISH_EVENTS: usize = 4_096;
/// About how many bytes of events one write publishes.
const MAX_ACK_PUBLISH_BYTES: usize = 4 << 20;

/// After so many polls of the inbox without another transaction, the queue is written.
const MAX_EMPTY_POLLS: u32 = 8;

/// A queued transaction: its events are pinned until it is written.
pub(super) struct AckPublish {
    /// The events that it acknowledges, without duplicates.
    pub(super) seqs: Vec<u64>,
    /// What it publishes.
    events: AtomicBatch,
    reply: AckPublishReply,
}

/// Transactions that wait to be written, in the order of arrival.
#[derive(Default)]
pub(super) struct AckPublishQueue {
    waiting: VecDeque<AckPublish>,
    /// How many of the first are written one by one, because together they were rejected.
    one_by_one: usize,
}

impl AckPublishQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Puts transactions that were not written back to the front.
    pub(super) fn put_back(&mut self, ack_publishes: Vec<AckPublish>) {
        for ack_publish in ack_publishes.into_iter().rev() {
            self.waiting.push_front(ack_publish);
        }
    }
}

impl Owner {
    /// Takes in a step of a member that names its leases.
    pub(super) fn take_ack_publish(&mut self, ack_publish: AckPublishRequest, now_ms: u64) {
        let Some(first) = ack_publish.leases.first() else {
            return;
        };
        let events = ack_publish.leases.iter();
        let events = events.map(|lease| (lease.seq, Some(lease.number)));
        self.begin_ack_publish(
            first.member,
            events.collect(),
            ack_publish.events,
            ack_publish.reply,
            now_ms,
        );
    }

    /// Takes in a step that names its events by their ids.
    pub(super) async fn ack_publish_by_ids(
        &mut self,
        member: MemberId,
        ack_publish: AckPublishByIds,
        reply: AckPublishReply,
    ) {
        let mut events = Vec::with_capacity(ack_publish.ids.len());
        for id in &ack_publish.ids {
            match self.position(id).await {
                Ok(seq) => events.push((seq, None)),
                Err(unknown) => {
                    let _ = reply.send(Err(unknown.into()));
                    return;
                }
            }
        }
        let now_ms = self.now_ms();
        self.begin_ack_publish(member, events, ack_publish.events, reply, now_ms);
    }

    /// Before a write, takes more transactions from the inbox as long as polling brings some: a member sends them one
    /// after the other, and a write takes far longer than a few polls.
    pub(super) async fn coalesce_ack_publishes(&mut self, now_ms: u64) {
        let mut empty_polls = 0;
        while self.pending_write.is_none()
            && empty_polls < MAX_EMPTY_POLLS
            && (1..MAX_ACK_PUBLISH_EVENTS).contains(&self.ack_publishes.waiting.len())
        {
            let before = self.ack_publishes.waiting.len();
            tokio::task::yield_now().await;
            self.inbox.take(&mut self.messages);
            self.handle_messages(now_ms);
            empty_polls = if self.ack_publishes.waiting.len() > before {
                0
            } else {
                empty_polls + 1
            };
        }
    }

    /// Starts writing the queued transactions, as many as fit into one batch.
    pub(super) fn write_ack_publishes(&mut self, now_ms: u64) {
        let mut batch = Batch::atomic();
        let mut taken = Vec::new();
        let mut seqs = Vec::new();
        let is_one_by_one = self.ack_publishes.one_by_one > 0;
        while taken.is_empty() || !is_one_by_one {
            let Some(ack_publish) = self.next_ack_publish(&batch, seqs.len()) else {
                break;
            };
            if let Err(refused) = ack_publish.events.check_topics(&self.core.topics) {
                self.give_up(ack_publish, refused.into(), now_ms);
                continue;
            }
            ack_publish.events.append_to(&mut batch);
            seqs.extend_from_slice(&ack_publish.seqs);
            taken.push(ack_publish);
        }
        if taken.is_empty() {
            return;
        }
        if let Existence::Stored { version } = self.existence {
            batch.change(self.record_change(version, &seqs));
        }
        let changes = self.state.changes();
        let topics: Vec<_> = taken
            .iter()
            .flat_map(|ack_publish| ack_publish.events.topics())
            .collect();
        let topic_set = &self.core.topics;
        let pending_write = PendingWrite::begin(batch, changes, now_ms, |batch| {
            topic_set.commit_creating(batch, topics.into_iter())
        });
        self.pending_write = Some(pending_write.with_ack_publishes(taken));
    }

    /// The transactions are committed: their events are settled.
    pub(super) fn ack_publishes_written(
        &mut self,
        ack_publishes: Vec<AckPublish>,
        receipt: &Receipt,
        now_ms: u64,
    ) {
        let mut outcomes = receipt.events.as_slice();
        let mut replies = Vec::with_capacity(ack_publishes.len());
        for ack_publish in ack_publishes {
            let (own, rest) = outcomes.split_at(ack_publish.events.len().min(outcomes.len()));
            outcomes = rest;
            self.state.complete_ack_publish(&ack_publish.seqs, now_ms);
            replies.push((ack_publish.reply, ack_publish.events.published(own)));
        }
        // In reverse: a member that awaits several awaits the first of them, and is woken once when all are there.
        for (reply, published) in replies.into_iter().rev() {
            // The caller may have gone away.
            let _ = reply.send(published.map_err(AckPublishError::from));
        }
    }

    /// The write failed: several transactions are retried one by one, unless that cannot help.
    pub(super) fn ack_publishes_failed(
        &mut self,
        ack_publishes: Vec<AckPublish>,
        error: &CommitError,
        now_ms: u64,
    ) {
        for ack_publish in &ack_publishes {
            ack_publish.events.forget_topics(&self.core.topics);
        }
        let is_of_one = match error {
            CommitError::IdConflict(_)
            | CommitError::SeqMismatch(_)
            | CommitError::UnknownTopic(_)
            | CommitError::LimitReached(_) => true,
            CommitError::StoreFailed(_)
            | CommitError::Unavailable { .. }
            | CommitError::Unknown { .. }
            | CommitError::VersionMismatch(_)
            | CommitError::Closed => false,
        };
        if is_of_one && ack_publishes.len() > 1 {
            self.ack_publishes.one_by_one = ack_publishes.len();
            self.ack_publishes.put_back(ack_publishes);
            return;
        }
        for ack_publish in ack_publishes {
            let error = ack_publish.events.attribute(error.clone());
            self.give_up(ack_publish, error, now_ms);
        }
    }

    /// Another owner has the group, so the transactions were not committed.
    pub(super) fn fail_ack_publishes_taken_over(&self, ack_publishes: Vec<AckPublish>) {
        for ack_publish in ack_publishes {
            let error = TakenOver {
                topic: self.name.topic.clone(),
                group: self.name.group.clone(),
            };
            let _ = ack_publish.reply.send(Err(error.into()));
        }
    }

    /// Writes all queued transactions, so that every outcome is known.
    pub(super) async fn finish_ack_publishes(&mut self) {
        // Each round completes a transaction at least, or splits those that were rejected together.
        while self.is_writing_ack_publishes() || !self.ack_publishes.is_empty() {
            if self.await_pending_write().await.is_some() {
                return;
            }
            let now_ms = self.now_ms();
            self.write_ack_publishes(now_ms);
        }
    }

    /// Fails the queued transactions: the cursor is set, and their leases are void.
    pub(super) fn fail_ack_publishes_lease_lost(&mut self) {
        self.ack_publishes.one_by_one = 0;
        for ack_publish in std::mem::take(&mut self.ack_publishes.waiting) {
            let seq = ack_publish.seqs.first().copied().unwrap_or_default();
            let _ = ack_publish.reply.send(Err(LeaseLost { seq }.into()));
        }
    }

    /// Fails the queued transactions: they will not be written.
    pub(super) fn fail_ack_publishes(&mut self, error: &AckPublishError) {
        self.ack_publishes.one_by_one = 0;
        for ack_publish in std::mem::take(&mut self.ack_publishes.waiting) {
            let _ = ack_publish.reply.send(Err(error.clone()));
        }
    }

    /// Pins the events of a transaction and queues it, or fails it.
    fn begin_ack_publish(
        &mut self,
        member: MemberId,
        mut named: Vec<(u64, Option<u64>)>,
        events: AtomicBatch,
        reply: AckPublishReply,
        now_ms: u64,
    ) {
        named.sort_unstable();
        named.dedup_by_key(|(seq, _)| *seq);
        if let Err(AckPublishConflict { seq, reason }) =
            self.state.begin_ack_publish(member, &named)
        {
            let error = match reason {
                ConflictReason::AlreadySettled => AlreadySettled { seq }.into(),
                ConflictReason::LeaseLost => LeaseLost { seq }.into(),
            };
            let _ = reply.send(Err(error));
            return;
        }
        let seqs: Vec<u64> = named.into_iter().map(|(seq, _)| seq).collect();
        if events.is_empty() && self.existence == Existence::Ephemeral {
            // There is nothing to write.
            self.state.complete_ack_publish(&seqs, now_ms);
            let _ = reply.send(Ok(Vec::new()));
            return;
        }
        self.ack_publishes.waiting.push_back(AckPublish {
            seqs,
            events,
            reply,
        });
    }

    /// The next transaction, where there is one and it fits into the batch.
    fn next_ack_publish(&mut self, batch: &Batch, acknowledged: usize) -> Option<AckPublish> {
        let ack_publish = self.ack_publishes.waiting.front()?;
        let events = acknowledged.max(batch.events().len());
        let fits = events + ack_publish.seqs.len().max(ack_publish.events.len())
            <= MAX_ACK_PUBLISH_EVENTS
            && batch.text_bytes() + ack_publish.events.bytes() <= MAX_ACK_PUBLISH_BYTES;
        if acknowledged > 0 && !fits {
            return None;
        }
        self.ack_publishes.one_by_one = self.ack_publishes.one_by_one.saturating_sub(1);
        self.ack_publishes.waiting.pop_front()
    }

    /// Aborts a transaction.
    fn give_up(&mut self, ack_publish: AckPublish, error: AckPublishError, now_ms: u64) {
        self.state.abort_ack_publish(&ack_publish.seqs, now_ms);
        let _ = ack_publish.reply.send(Err(error));
    }
}
