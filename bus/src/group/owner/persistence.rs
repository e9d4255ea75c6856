//! Writing the group's record: alone, or with dead letters or transactions, one write at a time. The record's version
//! is checked with every write, so that of two owners only one can win.

use super::ack_publish::AckPublish;
use super::in_doubt::{InDoubtWrites, record_value};
use super::{Existence, Owner, Stop};
use crate::error::GroupError;
use crate::group::record::record_key;
use crate::group::subscriber::Ended;
use crate::options::BusOptions;
use prombus_store::{Answer, Batch, Change, CommitError, Expect, Receipt};
use std::sync::Arc;

/// The longest that writing rests after failures.
const MAX_WRITE_BACKOFF_MS: u64 = 30_000;

/// A write that is under way.
pub(super) struct PendingWrite {
    answer: Answer<Receipt, CommitError>,
    began_ms: u64,
    /// What the state's changes were when it was written.
    changes: u64,
    /// The events whose dead letters are in it.
    dead_letters: Vec<u64>,
    /// The transactions that are in it.
    ack_publishes: Vec<AckPublish>,
    /// The group's record in it.
    value: Option<Arc<[u8]>>,
}

/// A write that is done.
pub(super) struct CompletedWrite {
    committed: Result<Receipt, CommitError>,
    value: Option<Arc<[u8]>>,
    began_ms: u64,
    changes: u64,
    dead_letters: Vec<u64>,
    ack_publishes: Vec<AckPublish>,
}

/// When the next write is due.
#[derive(Debug, Default)]
pub(super) struct FlushSchedule {
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
    retry_at_ms: u64,
    /// Why the store did not take the record, until it does.
    pub(super) write_error: Option<Arc<str>>,
    /// Writes that may have happened although they failed.
    pub(super) in_doubt: InDoubtWrites,
}

/// Waits for the write that is under way, for ever where there is none.
pub(super) async fn done(pending_write: &mut Option<PendingWrite>) -> CompletedWrite {
    let Some(pending) = pending_write else {
        return std::future::pending().await;
    };
    let committed = pending.answer.as_mut().await;
    let written = CompletedWrite {
        committed,
        value: pending.value.take(),
        began_ms: pending.began_ms,
        changes: pending.changes,
        dead_letters: std::mem::take(&mut pending.dead_letters),
        ack_publishes: std::mem::take(&mut pending.ack_publishes),
    };
    *pending_write = None;
    written
}

impl PendingWrite {
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
            dead_letters: Vec::new(),
            ack_publishes: Vec::new(),
        }
    }

    /// With the dead letters of these events.
    pub(super) fn with_dead_letters(mut self, seqs: Vec<u64>) -> Self {
        self.dead_letters = seqs;
        self
    }

    /// With these transactions.
    pub(super) fn with_ack_publishes(mut self, ack_publishes: Vec<AckPublish>) -> Self {
        self.ack_publishes = ack_publishes;
        self
    }
}

impl FlushSchedule {
    /// Everything up to these changes is written.
    pub(super) fn is_clean_at(&mut self, changes: u64) {
        self.clean_at = changes;
        self.dirty_since_ms = None;
        self.failures = 0;
        self.retry_at_ms = 0;
        self.write_error = None;
        self.in_doubt.clear();
    }

    /// Lets writing rest, longer with each failure.
    pub(super) fn failed(&mut self, now_ms: u64, options: &BusOptions) {
        self.failures += 1;
        let rest_ms = options.ack_flush_ms.max(10) << self.failures.min(10);
        self.retry_at_ms = now_ms.saturating_add(rest_ms.min(MAX_WRITE_BACKOFF_MS));
    }
}

impl Owner {
    /// Begins the next write, where one is due.
    pub(super) fn flush_if_due(&mut self, now_ms: u64) {
        if self.flush_schedule.clean_at != self.state.changes() {
            self.flush_schedule.dirty_since_ms.get_or_insert(now_ms);
        }
        if let Some(pending_write) = &self.pending_write {
            if pending_write.changes != self.state.changes() {
                self.flush_schedule.dirty_again_ms.get_or_insert(now_ms);
            }
            return;
        }
        self.flush_schedule.dirty_again_ms = None;
        let is_resting = now_ms < self.flush_schedule.retry_at_ms;
        if !self.dead_letters.is_empty() && !is_resting {
            return self.write_dead_letters(now_ms);
        }
        // A member waits for its transaction, so a failing store is reported at once.
        self.write_ack_publishes(now_ms);
        if self.pending_write.is_some() || is_resting {
            return;
        }
        if self.originals_read.is_none() && self.state.has_dead_lettering() {
            self.read_originals();
        }
        if self
            .next_flush_ms()
            .is_some_and(|moment_ms| moment_ms <= now_ms)
        {
            self.flush();
        }
    }

    /// When the clock alone brings the next write.
    pub(super) fn next_flush_ms(&self) -> Option<u64> {
        if self.pending_write.is_some() {
            return None;
        }
        let rest_ms = self.flush_schedule.retry_at_ms;
        let dead_letters_pending = !self.dead_letters.is_empty() || self.state.has_dead_lettering();
        let resting = (dead_letters_pending && rest_ms > 0).then_some(rest_ms);
        let dirty_ms = match self.existence {
            Existence::Stored { .. } => self.flush_schedule.dirty_since_ms,
            Existence::Absent | Existence::Ephemeral => None,
        };
        // A change is to be durable by then, not only on its way.
        let flush_ms = self.core.options.ack_flush_ms;
        let wait_ms = if self.is_others_turn() {
            // It ends as soon as it is written.
            0
        } else {
            flush_ms - self.flush_schedule.write_ms.min(flush_ms / 2)
        };
        let due = dirty_ms.map(|since_ms| (since_ms + wait_ms).max(rest_ms));
        [due, resting].into_iter().flatten().min()
    }

    /// Whether writing rests after a failure.
    pub(super) fn is_write_resting(&self, now_ms: u64) -> bool {
        now_ms < self.flush_schedule.retry_at_ms
    }

    /// Whether all that is known is written.
    pub(super) fn is_written(&self) -> bool {
        let letters = self.state.has_dead_lettering()
            || self.originals_read.is_some()
            || !self.dead_letters.is_empty();
        self.pending_write.is_none() && self.ack_publishes.is_empty() && self.is_clean() && !letters
    }

    /// Whether the record says all that is known, or there is none to say it.
    pub(super) fn is_clean(&self) -> bool {
        let stored = matches!(self.existence, Existence::Stored { .. });
        !stored || self.flush_schedule.clean_at == self.state.changes()
    }

    /// Writes now and waits for it: what was asked for is to hold after a crash too.
    pub(super) async fn flush_and_wait(&mut self) -> Result<(), GroupError> {
        self.await_pending_write().await;
        let Existence::Stored { version } = self.existence else {
            return Ok(());
        };
        self.plan_claim();
        let mut batch = Batch::new();
        batch.change(self.record_change(version, &[]));
        let changes = self.state.changes();
        let value = record_value(&batch);
        let committed = self.core.store.commit(batch).await;
        if let (Err(error), Some(value)) = (&committed, value)
            && error.is_ambiguous()
        {
            self.flush_schedule.in_doubt.add(value, Vec::new());
        }
        let receipt = committed.map_err(|error| self.not_written(error))?;
        if let Some(&version) = receipt.versions.first() {
            self.existence = Existence::Stored { version };
        }
        self.is_clean_at(changes);
        self.claim_written(self.core.monotonic_ms());
        Ok(())
    }

    /// Waits for the write that is under way, where there is one.
    pub(super) async fn await_pending_write(&mut self) -> Option<Stop> {
        self.pending_write.as_ref()?;
        let written = done(&mut self.pending_write).await;
        self.write_completed(written).await
    }

    pub(super) fn is_writing_ack_publishes(&self) -> bool {
        let pending_write = self.pending_write.as_ref();
        pending_write.is_some_and(|pending_write| !pending_write.ack_publishes.is_empty())
    }

    /// Takes note of a write; a group that someone else has written is theirs now.
    pub(super) async fn write_completed(&mut self, written: CompletedWrite) -> Option<Stop> {
        let now_ms = self.now_ms();
        match written.committed {
            Ok(receipt) => {
                if let (Existence::Stored { version }, Some(&new)) =
                    (&mut self.existence, receipt.versions.first())
                {
                    *version = new;
                }
                let changed = self.state.changes() != written.changes;
                self.flush_schedule.write_ms = now_ms.saturating_sub(written.began_ms);
                let dirty_again_ms = self.flush_schedule.dirty_again_ms.take();
                self.is_clean_at(written.changes);
                self.state.dead_lettered(&written.dead_letters, now_ms);
                self.ack_publishes_written(written.ack_publishes, &receipt, now_ms);
                if changed {
                    self.flush_schedule.dirty_since_ms = Some(dirty_again_ms.unwrap_or(now_ms));
                } else {
                    // Settling what was in it is what the record already says.
                    self.flush_schedule.clean_at = self.state.changes();
                }
                self.claim_written(now_ms);
                self.return_credit();
                None
            }
            Err(CommitError::VersionMismatch(_)) if self.resolve_in_doubt(now_ms).await => {
                self.state.dead_letter_failed(&written.dead_letters);
                // A transaction whose events are settled by now would publish its results a second time.
                let (open, settled) = written.ack_publishes.into_iter().partition(|ack_publish| {
                    let mut seqs = ack_publish.seqs.iter();
                    seqs.all(|&seq| self.state.is_pinned(seq))
                });
                self.ack_publishes.put_back(open);
                self.fail_ack_publishes_taken_over(settled);
                self.flush_schedule.retry_at_ms = 0;
                self.return_credit();
                None
            }
            Err(CommitError::VersionMismatch(_)) => {
                self.fail_ack_publishes_taken_over(written.ack_publishes);
                // The record goes with its topic.
                let is_deleted = self.is_stale();
                Some(Stop::Abandoning(if is_deleted {
                    Ended::TopicDeleted
                } else {
                    Ended::TakenOver
                }))
            }
            Err(error) => {
                if let CommitError::UnknownTopic(unknown) = &error {
                    self.core.topics.forget(&unknown.topic);
                }
                if let Some(value) = written.value
                    && error.is_ambiguous()
                {
                    let acknowledged = written
                        .ack_publishes
                        .iter()
                        .flat_map(|ack_publish| &ack_publish.seqs);
                    let settling = written.dead_letters.iter().chain(acknowledged);
                    self.flush_schedule
                        .in_doubt
                        .add(value, settling.copied().collect());
                }
                self.state.dead_letter_failed(&written.dead_letters);
                if written.ack_publishes.is_empty() || error.is_store_failure() {
                    self.flush_schedule.failed(now_ms, &self.core.options);
                    if !matches!(error, CommitError::UnknownTopic(_)) {
                        let cause = self.core.unwritten.failed(&self.name, &error);
                        self.flush_schedule.write_error = Some(cause);
                    }
                }
                self.ack_publishes_failed(written.ack_publishes, &error, now_ms);
                self.return_credit();
                None
            }
        }
    }

    /// Everything up to these changes is written.
    pub(super) fn is_clean_at(&mut self, changes: u64) {
        self.flush_schedule.is_clean_at(changes);
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
            let pending_write =
                PendingWrite::begin(batch, changes, began_ms, |batch| store.commit(batch));
            self.pending_write = Some(pending_write);
        }
    }
}
