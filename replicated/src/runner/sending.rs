//! Sending commits and what the log answers. Answers may come in any order; commits are applied in theirs.

use super::Runner;
use crate::flight::{Flight, Sender, durability_of};
use crate::shared_log::{AppendError, Entry};
use prombus_store::CommitError;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The pause before a message whose answer was lost is sent again; it doubles up to the second.
const FIRST_RESEND: Duration = Duration::from_millis(100);
const LAST_RESEND: Duration = Duration::from_secs(1);

impl Runner {
    /// Whether enough waits for another commit to be begun. If not, the queue says when.
    pub(super) fn can_begin(&self) -> bool {
        let wanted = self.window.wanted_bytes();
        self.follower.is_some() && wanted.is_some_and(|bytes| self.queue.has(bytes))
    }

    /// Sends what waits.
    pub(super) fn begin(&mut self) {
        while self.can_begin() {
            let sender = self.sender();
            let now_ms = self.clock.now_ms();
            let is_first = self.window.is_empty();
            let store = &self.store;
            let topic_durability = |topic: &Arc<str>| Some(store.topic(topic)?.options.durability);
            let begun = Flight::gather(&self.queue, sender, now_ms, is_first, |batch| {
                durability_of(batch, topic_durability)
            });
            let Some(flight) = begun else {
                return;
            };
            self.window.push(flight);
            self.send(self.window.len() - 1);
        }
    }

    pub(super) fn sender(&self) -> Sender {
        let applied = self.applier.last_number(self.boot);
        Sender {
            boot: self.boot,
            last_number: self.window.last_number(applied),
            progress: self.applier.progress(),
            max_message_bytes: self.log.description().max_message_bytes,
        }
    }

    /// Appends the next message of the commit at a place of the window.
    pub(super) fn send(&mut self, at: usize) {
        let patience = self.options.patience;
        let Some(flight) = self.window.at_mut(at) else {
            return;
        };
        flight.resend_at = None;
        flight.stored_at = None;
        flight.rejected = None;
        flight.sent_at = Instant::now();
        let append = self.log.append(flight.message(), flight.durability);
        flight.append = Some(Box::pin(async move {
            let unanswered = |_| AppendError::Unknown {
                cause: "no acknowledgement".into(),
            };
            timeout(patience, append).await.map_err(unanswered)?
        }));
    }

    /// An append was answered.
    pub(super) async fn appended(&mut self, at: usize, answer: Result<u64, AppendError>) {
        match answer {
            Ok(position) => {
                self.heard_at = Instant::now();
                self.state.set_rejection(None);
                self.state.note_last(position);
                if let Some(flight) = self.window.at_mut(at) {
                    flight.stored_at = Some(position);
                    self.state.note_round_trip(flight.sent_at.elapsed());
                }
            }
            Err(AppendError::Rejected { cause }) => {
                self.state.set_rejection(Some(cause.clone()));
                if let Some(flight) = self.window.at_mut(at) {
                    flight.rejected = Some(cause);
                }
            }
            Err(AppendError::Unknown { cause }) => self.resend_later(at, &cause, true),
        }
        self.apply_stored().await;
    }

    /// Applies what is stored and comes next, without waiting for the follower to bring it.
    pub(super) async fn apply_stored(&mut self) {
        while let Some(first) = self.window.first() {
            let Some(position) = first.stored_at else {
                break;
            };
            let applied = self.applier.progress().position;
            if position <= applied {
                // It was void: the log stored it before the one that it comes behind.
                self.send(0);
            } else if position == applied + 1 {
                let message = first.message();
                self.apply(Entry { position, message }).await;
            } else {
                // It is applied when the follower has brought what is before it.
                break;
            }
        }
        self.settle_rejected();
    }

    /// Where the first commit was rejected: it is given up if nothing behind it is stored or will be, for then its number
    /// is free; else it is sent again, because those behind it count only after it.
    fn settle_rejected(&mut self) {
        let Some(cause) = self.window.first().and_then(|first| first.rejected.clone()) else {
            return;
        };
        if self.window.is_rejected() {
            let error = CommitError::Unavailable { cause };
            while let Some(mut flight) = self.window.pop() {
                let (replies, bytes) = flight.take_failed(&error);
                self.queue.finish(replies, bytes);
            }
        } else if self.window.iter().all(|flight| flight.append.is_none()) {
            self.resend_later(0, &cause, false);
        }
    }

    fn resend_later(&mut self, at: usize, cause: &Arc<str>, is_uncertain: bool) {
        let Some(flight) = self.window.at_mut(at) else {
            return;
        };
        flight.is_uncertain |= is_uncertain;
        if flight.resend_at.is_some() {
            return;
        }
        tracing::debug!(%cause, attempts = flight.attempts, "a commit was not acknowledged and is sent again");
        let pause = FIRST_RESEND.saturating_mul(1 << flight.attempts.min(10));
        flight.attempts += 1;
        flight.resend_at = Some(Instant::now() + pause.min(LAST_RESEND));
    }

    /// Gives what is under way other numbers where those it has cannot count any more: this boot was forgotten, or the
    /// parts of a commit were given up at a snapshot, which is then the only one under way.
    pub(super) fn renumber(&mut self) {
        let Some(first) = self.window.first() else {
            return;
        };
        let last_number = self.applier.last_number(self.boot);
        let has_parts = self.applier.parts_of(self.boot) == first.applied_parts();
        if first.next_number() == last_number + 1 && has_parts {
            return;
        }
        if last_number == 0 {
            self.draw_boot();
        }
        let sender = Sender {
            last_number: self.applier.last_number(self.boot),
            ..self.sender()
        };
        self.window.number(sender);
        for at in 0..self.window.len() {
            self.send(at);
        }
    }
}
