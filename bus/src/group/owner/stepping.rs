//! Steps: acknowledging events and publishing others as one atomic batch of the store, with the group's record in which
//! the events are settled. All steps that come while a write is under way go into the next one together; where that is
//! refused because of one of them, they are written one by one, so that only the guilty one fails.

use super::writing::Writing;
use super::{Existence, Owner};
use crate::error::{AlreadySettled, LeaseLost, StepError, TakenOver};
use crate::group::command::StepByIds;
use crate::group::inbox::{StepReply, StepRequest};
use crate::group::state::{MemberId, NoStep, WhyNoStep};
use crate::publish::WholeBatch;
use prombus_store::{Batch, CommitError, Receipt};
use std::collections::VecDeque;

/// How many events one write of steps acknowledges or publishes at most; a step that has more goes alone.
const MAX_STEP_EVENTS: usize = 4_096;
/// About how many bytes of events one write of steps publishes.
const MAX_STEP_BYTES: usize = 4 << 20;

/// After so many looks that brought no more steps, those that are there are written.
const LOOKS_IN_VAIN: u32 = 8;

/// A step that was taken in: its events stand still until it is written.
pub(super) struct Step {
    /// The events that it acknowledges, each once.
    pub(super) seqs: Vec<u64>,
    /// What it publishes.
    events: WholeBatch,
    reply: StepReply,
}

/// Steps that wait to be written, in the order they came.
#[derive(Default)]
pub(super) struct Steps {
    waiting: VecDeque<Step>,
    /// How many of the first are written one by one, because together they were refused.
    alone: usize,
}

impl Steps {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Lets steps that were not written be the next again.
    pub(super) fn put_back(&mut self, steps: Vec<Step>) {
        for step in steps.into_iter().rev() {
            self.waiting.push_front(step);
        }
    }
}

impl Owner {
    /// Takes in a step of a member that names its leases.
    pub(super) fn take_step(&mut self, step: StepRequest, now_ms: u64) {
        let Some(first) = step.leases.first() else {
            return;
        };
        let events = step.leases.iter();
        let events = events.map(|lease| (lease.seq, Some(lease.number)));
        self.begin_step(
            first.member,
            events.collect(),
            step.events,
            step.reply,
            now_ms,
        );
    }

    /// Takes in a step that names its events by their ids.
    pub(super) async fn step_by_ids(
        &mut self,
        member: MemberId,
        step: StepByIds,
        reply: StepReply,
    ) {
        let mut events = Vec::with_capacity(step.ids.len());
        for id in &step.ids {
            match self.position(id).await {
                Ok(seq) => events.push((seq, None)),
                Err(unknown) => {
                    let _ = reply.send(Err(unknown.into()));
                    return;
                }
            }
        }
        let now_ms = self.now_ms();
        self.begin_step(member, events, step.events, reply, now_ms);
    }

    /// Before a write begins, takes in more steps as long as looking at the inbox brings some: who makes many makes
    /// them one after the other, and a write takes far longer than a few looks.
    pub(super) async fn gather_steps(&mut self, now_ms: u64) {
        let mut looks_in_vain = 0;
        while self.writing.is_none()
            && looks_in_vain < LOOKS_IN_VAIN
            && (1..MAX_STEP_EVENTS).contains(&self.steps.waiting.len())
        {
            let before = self.steps.waiting.len();
            tokio::task::yield_now().await;
            self.take_messages(now_ms);
            looks_in_vain = match self.steps.waiting.len() > before {
                true => 0,
                false => looks_in_vain + 1,
            };
        }
    }

    /// Begins to write the steps that wait, as many as go together.
    pub(super) fn write_steps(&mut self, now_ms: u64) {
        let mut batch = Batch::atomic();
        let mut taken = Vec::new();
        let mut seqs = Vec::new();
        let goes_alone = self.steps.alone > 0;
        while taken.is_empty() || !goes_alone {
            let Some(step) = self.next_step(&batch, seqs.len()) else {
                break;
            };
            if let Err(refused) = step.events.check_topics(&self.core.topics) {
                self.give_up(step, refused.into(), now_ms);
                continue;
            }
            step.events.append_to(&mut batch);
            seqs.extend_from_slice(&step.seqs);
            taken.push(step);
        }
        if taken.is_empty() {
            return;
        }
        if let Existence::Stored { version } = self.existence {
            batch.change(self.record_change(version, &seqs));
        }
        let changes = self.state.changes();
        let topics: Vec<_> = taken.iter().flat_map(|step| step.events.topics()).collect();
        let topic_set = &self.core.topics;
        let writing = Writing::begin(batch, changes, now_ms, |batch| {
            topic_set.commit_making(batch, topics.into_iter())
        });
        self.writing = Some(writing.stepping(taken));
    }

    /// The steps are stored: their events are settled.
    pub(super) fn steps_written(&mut self, steps: Vec<Step>, receipt: &Receipt, now_ms: u64) {
        let mut outcomes = receipt.events.as_slice();
        let mut replies = Vec::with_capacity(steps.len());
        for step in steps {
            let (own, rest) = outcomes.split_at(step.events.len().min(outcomes.len()));
            outcomes = rest;
            self.state.stepped(&step.seqs, now_ms);
            replies.push((step.reply, step.events.published(own)));
        }
        // The last one first: who waits for many waits for the first of them, and is woken once when all are there.
        for (reply, published) in replies.into_iter().rev() {
            // Whoever asked may have gone away.
            let _ = reply.send(published.map_err(StepError::from));
        }
    }

    /// The steps were refused: several are tried one by one, unless that would not help.
    pub(super) fn steps_not_written(&mut self, steps: Vec<Step>, error: &CommitError, now_ms: u64) {
        for step in &steps {
            step.events.forget_topics(&self.core.topics);
        }
        let is_of_one = match error {
            CommitError::IdConflict(_)
            | CommitError::UnknownTopic(_)
            | CommitError::LimitReached(_) => true,
            CommitError::StoreFailed(_) | CommitError::VersionMismatch(_) | CommitError::Closed => {
                false
            }
        };
        if is_of_one && steps.len() > 1 {
            self.steps.alone = steps.len();
            self.steps.put_back(steps);
            return;
        }
        for step in steps {
            let error = step.events.blame(error.clone());
            self.give_up(step, error, now_ms);
        }
    }

    /// Somebody else has the group, so nothing of the steps happened.
    pub(super) fn steps_taken_over(&self, steps: Vec<Step>) {
        for step in steps {
            let error = TakenOver {
                topic: self.name.topic.clone(),
                group: self.name.group.clone(),
            };
            let _ = step.reply.send(Err(error.into()));
        }
    }

    /// Writes everything that waits, so that nobody has to wonder what came of it.
    pub(super) async fn finish_steps(&mut self) {
        // Each round answers a step at least, or parts those that were refused together.
        while self.is_writing_steps() || !self.steps.is_empty() {
            if self.finish_write().await.is_some() {
                return;
            }
            let now_ms = self.now_ms();
            self.write_steps(now_ms);
        }
    }

    /// Refuses the steps that wait: the cursor is set, and their leases are void.
    pub(super) fn refuse_steps_as_lost(&mut self) {
        self.steps.alone = 0;
        for step in std::mem::take(&mut self.steps.waiting) {
            let seq = step.seqs.first().copied().unwrap_or_default();
            let _ = step.reply.send(Err(LeaseLost { seq }.into()));
        }
    }

    /// Refuses the steps that wait: nobody will write them.
    pub(super) fn refuse_steps(&mut self, error: &StepError) {
        self.steps.alone = 0;
        for step in std::mem::take(&mut self.steps.waiting) {
            let _ = step.reply.send(Err(error.clone()));
        }
    }

    /// Has the events of a step stand still until it is written, or refuses it.
    fn begin_step(
        &mut self,
        member: MemberId,
        mut named: Vec<(u64, Option<u64>)>,
        events: WholeBatch,
        reply: StepReply,
        now_ms: u64,
    ) {
        named.sort_unstable();
        named.dedup_by_key(|(seq, _)| *seq);
        if let Err(NoStep { seq, why }) = self.state.begin_step(member, &named) {
            let error = match why {
                WhyNoStep::AlreadySettled => AlreadySettled { seq }.into(),
                WhyNoStep::LeaseLost => LeaseLost { seq }.into(),
            };
            let _ = reply.send(Err(error));
            return;
        }
        let seqs: Vec<u64> = named.into_iter().map(|(seq, _)| seq).collect();
        if events.is_empty() && self.existence == Existence::Ephemeral {
            // There is nothing to write.
            self.state.stepped(&seqs, now_ms);
            let _ = reply.send(Ok(Vec::new()));
            return;
        }
        self.steps.waiting.push_back(Step {
            seqs,
            events,
            reply,
        });
    }

    /// The next step, where there is one and it fits to those that are in the batch.
    fn next_step(&mut self, batch: &Batch, acknowledged: usize) -> Option<Step> {
        let step = self.steps.waiting.front()?;
        let events = acknowledged.max(batch.events().len());
        let fits = events + step.seqs.len().max(step.events.len()) <= MAX_STEP_EVENTS
            && batch.text_bytes() + step.events.bytes() <= MAX_STEP_BYTES;
        if acknowledged > 0 && !fits {
            return None;
        }
        self.steps.alone = self.steps.alone.saturating_sub(1);
        self.steps.waiting.pop_front()
    }

    /// Nothing of a step happened.
    fn give_up(&mut self, step: Step, error: StepError, now_ms: u64) {
        self.state.not_stepped(&step.seqs, now_ms);
        let _ = step.reply.send(Err(error));
    }
}
