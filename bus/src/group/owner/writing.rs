//! Writing the group down: its record, alone or together with dead letters or steps, one write at a time. The record's version
//! is checked with every write, so that of two owners only one can win.

use super::doubt::{Doubt, record_value};
use super::stepping::Step;
use super::{Existence, Owner, Stop};
use crate::error::GroupError;
use crate::group::record::record_key;
use crate::group::subscriber::Ended;
use crate::options::BusOptions;
use prombus_store::{Answer, Batch, Change, CommitError, Expect, Receipt};
use std::sync::Arc;

/// The longest that writing rests after failures.
const MAX_REST_MS: u64 = 30_000;

/// A write that is under way.
pub(super) struct Writing {
    answer: Answer<Receipt, CommitError>,
    began_ms: u64,
    /// What the state's changes were when it was written.
    changes: u64,
    /// The events whose dead letters are in it.
    burying: Vec<u64>,
    /// The steps that are in it.
    steps: Vec<Step>,
    /// The group's record in it.
    value: Option<Arc<[u8]>>,
}

/// A write that is done.
pub(super) struct Written {
    committed: Result<Receipt, CommitError>,
    value: Option<Arc<[u8]>>,
    began_ms: u64,
    changes: u64,
    burying: Vec<u64>,
    steps: Vec<Step>,
}

/// When the next write is due.
#[derive(Debug, Default)]
pub(super) struct Flushing {
    /// The state's changes that are written.
    clean_at: u64,
    /// When the first change came that is not written.
    dirty_since_ms: Option<u64>,
    /// When the first change came that is not in the write under way.
    dirty_again_ms: Option<u64>,
    /// How long the last write took: the next one begins so much earlier.
    write_ms: u64,
    /// How often writing has failed in a row.
    failures: u32,
    /// No write before this moment.
    rest_until_ms: u64,
    /// Why the store did not take the record, until it does.
    pub(super) refused: Option<Arc<str>>,
    /// Writes that may have happened although they were answered with a failure.
    pub(super) doubt: Doubt,
}

/// Waits for the write that is under way, for ever where there is none.
pub(super) async fn done(writing: &mut Option<Writing>) -> Written {
    let Some(under_way) = writing else {
        return std::future::pending().await;
    };
    let committed = under_way.answer.as_mut().await;
    let written = Written {
        committed,
        value: under_way.value.take(),
        began_ms: under_way.began_ms,
        changes: under_way.changes,
        burying: std::mem::take(&mut under_way.burying),
        steps: std::mem::take(&mut under_way.steps),
    };
    *writing = None;
    written
}

impl Writing {
    /// Commits a batch with the group's record as of these changes.
    pub(super) fn begin(
        batch: Batch,
        changes: u64,
        began_ms: u64,
        commit: impl FnOnce(Batch) -> Answer<Receipt, CommitError>,
    ) -> Self {
        let value = record_value(&batch);
        Self {
            answer: commit(batch),
            value,
            began_ms,
            changes,
            burying: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// With the dead letters of these events.
    pub(super) fn burying(mut self, seqs: Vec<u64>) -> Self {
        self.burying = seqs;
        self
    }

    /// With these steps.
    pub(super) fn stepping(mut self, steps: Vec<Step>) -> Self {
        self.steps = steps;
        self
    }
}

impl Flushing {
    /// Everything up to these changes is written.
    pub(super) fn is_clean_at(&mut self, changes: u64) {
        self.clean_at = changes;
        self.dirty_since_ms = None;
        self.failures = 0;
        self.rest_until_ms = 0;
        self.refused = None;
        self.doubt.clear();
    }

    /// Lets writing rest, longer with each failure.
    pub(super) fn failed(&mut self, now_ms: u64, options: &BusOptions) {
        self.failures += 1;
        let rest_ms = options.ack_flush_ms.max(10) << self.failures.min(10);
        self.rest_until_ms = now_ms.saturating_add(rest_ms.min(MAX_REST_MS));
    }
}

impl Owner {
    /// Begins the next write, where one is due.
    pub(super) fn write_down(&mut self, now_ms: u64) {
        if self.flushing.clean_at != self.state.changes() {
            self.flushing.dirty_since_ms.get_or_insert(now_ms);
        }
        if let Some(writing) = &self.writing {
            if writing.changes != self.state.changes() {
                self.flushing.dirty_again_ms.get_or_insert(now_ms);
            }
            return;
        }
        self.flushing.dirty_again_ms = None;
        let is_resting = now_ms < self.flushing.rest_until_ms;
        if !self.burial.is_empty() && !is_resting {
            return self.bury(now_ms);
        }
        // Somebody waits for a step and hears at once that the store takes nothing.
        self.write_steps(now_ms);
        if self.writing.is_some() || is_resting {
            return;
        }
        if self.gathering.is_none() && self.state.has_dying() {
            self.gather();
        }
        if self
            .flush_moment()
            .is_some_and(|moment_ms| moment_ms <= now_ms)
        {
            self.flush();
        }
    }

    /// When the clock alone brings the next write.
    pub(super) fn flush_moment(&self) -> Option<u64> {
        if self.writing.is_some() {
            return None;
        }
        let rest_ms = self.flushing.rest_until_ms;
        let letters_wait = !self.burial.is_empty() || self.state.has_dying();
        let resting = (letters_wait && rest_ms > 0).then_some(rest_ms);
        let dirty_ms = match self.existence {
            Existence::Stored { .. } => self.flushing.dirty_since_ms,
            Existence::Absent | Existence::Ephemeral => None,
        };
        // A change is to be durable by then, not only on its way.
        let flush_ms = self.core.options.ack_flush_ms;
        let wait_ms = flush_ms - self.flushing.write_ms.min(flush_ms / 2);
        let due = dirty_ms.map(|since_ms| (since_ms + wait_ms).max(rest_ms));
        [due, resting].into_iter().flatten().min()
    }

    /// Whether all that is known is written.
    pub(super) fn is_written(&self) -> bool {
        let letters = self.state.has_dying() || self.gathering.is_some() || !self.burial.is_empty();
        self.writing.is_none() && self.steps.is_empty() && self.is_clean() && !letters
    }

    /// Whether the record says all that is known, or there is none to say it.
    pub(super) fn is_clean(&self) -> bool {
        let stored = matches!(self.existence, Existence::Stored { .. });
        !stored || self.flushing.clean_at == self.state.changes()
    }

    /// Writes now and waits for it: what was asked for is to hold after a crash too.
    pub(super) async fn write_through(&mut self) -> Result<(), GroupError> {
        self.finish_write().await;
        let Existence::Stored { version } = self.existence else {
            return Ok(());
        };
        let mut batch = Batch::new();
        batch.change(self.record_change(version, &[]));
        let changes = self.state.changes();
        let value = record_value(&batch);
        let committed = self.core.store.commit(batch).await;
        if let (Err(CommitError::StoreFailed(_)), Some(value)) = (&committed, value) {
            self.flushing.doubt.add(value, Vec::new());
        }
        let receipt = committed.map_err(|error| self.not_written(error))?;
        if let Some(&version) = receipt.versions.first() {
            self.existence = Existence::Stored { version };
        }
        self.is_clean_at(changes);
        Ok(())
    }

    /// Waits for the write that is under way, where there is one.
    pub(super) async fn finish_write(&mut self) -> Option<Stop> {
        self.writing.as_ref()?;
        let written = done(&mut self.writing).await;
        self.take_written(written).await
    }

    pub(super) fn is_writing_steps(&self) -> bool {
        let writing = self.writing.as_ref();
        writing.is_some_and(|writing| !writing.steps.is_empty())
    }

    /// Takes note of a write; a group that someone else has written is theirs now.
    pub(super) async fn take_written(&mut self, written: Written) -> Option<Stop> {
        let now_ms = self.now_ms();
        match written.committed {
            Ok(receipt) => {
                if let (Existence::Stored { version }, Some(&new)) =
                    (&mut self.existence, receipt.versions.first())
                {
                    *version = new;
                }
                let changed = self.state.changes() != written.changes;
                self.flushing.write_ms = now_ms.saturating_sub(written.began_ms);
                let dirty_again_ms = self.flushing.dirty_again_ms.take();
                self.is_clean_at(written.changes);
                self.state.buried(&written.burying, now_ms);
                self.steps_written(written.steps, &receipt, now_ms);
                if changed {
                    self.flushing.dirty_since_ms = Some(dirty_again_ms.unwrap_or(now_ms));
                } else {
                    // Settling what was in it is what the record already says.
                    self.flushing.clean_at = self.state.changes();
                }
                self.return_credit();
                None
            }
            Err(CommitError::VersionMismatch(_)) if self.resolve_doubt(now_ms).await => {
                self.state.not_buried(&written.burying);
                // A step for what is settled by now would publish it a second time.
                let (open, settled) = written.steps.into_iter().partition(|step| {
                    let mut seqs = step.seqs.iter();
                    seqs.all(|&seq| self.state.is_stepping(seq))
                });
                self.steps.put_back(open);
                self.steps_taken_over(settled);
                self.flushing.rest_until_ms = 0;
                self.return_credit();
                None
            }
            Err(CommitError::VersionMismatch(_)) => {
                self.steps_taken_over(written.steps);
                // The record goes with its topic.
                let is_deleted = self.is_stale();
                Some(Stop::Abandoning(match is_deleted {
                    true => Ended::TopicDeleted,
                    false => Ended::TakenOver,
                }))
            }
            Err(error) => {
                if let CommitError::UnknownTopic(unknown) = &error {
                    self.core.topics.forget(&unknown.topic);
                }
                if let (CommitError::StoreFailed(_), Some(value)) = (&error, written.value) {
                    let stepping = written.steps.iter().flat_map(|step| &step.seqs);
                    let settling = written.burying.iter().chain(stepping);
                    self.flushing.doubt.add(value, settling.copied().collect());
                }
                self.state.not_buried(&written.burying);
                if written.steps.is_empty() || matches!(error, CommitError::StoreFailed(_)) {
                    self.flushing.failed(now_ms, &self.core.options);
                    if !matches!(error, CommitError::UnknownTopic(_)) {
                        let cause = self.core.unwritten.failed(&self.name, &error);
                        self.flushing.refused = Some(cause);
                    }
                }
                self.steps_not_written(written.steps, &error, now_ms);
                self.return_credit();
                None
            }
        }
    }

    /// Everything up to these changes is written.
    pub(super) fn is_clean_at(&mut self, changes: u64) {
        self.flushing.is_clean_at(changes);
        self.core.unwritten.settled(&self.name);
    }

    /// The change that writes the record over the version that is there.
    pub(super) fn record_change(&self, version: u64, settling: &[u64]) -> Change {
        Change::Put {
            key: record_key(&self.name.topic, &self.name.group),
            value: self.record(settling).to_bytes(),
            expect: Expect::Version(version),
        }
    }

    pub(super) fn flush(&mut self) {
        if let Existence::Stored { version } = self.existence {
            let mut batch = Batch::new();
            batch.change(self.record_change(version, &[]));
            let changes = self.state.changes();
            let began_ms = self.core.monotonic_ms();
            let store = self.core.store.clone();
            let writing = Writing::begin(batch, changes, began_ms, |batch| store.commit(batch));
            self.writing = Some(writing);
        }
    }
}
