//! What happened to an event before: how often it was delivered in vain, and to whom.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How many past attempts are kept; the number of attempts itself is always exact.
const MAX_KEPT_ATTEMPTS: usize = 10;
/// How much of a reason is kept.
const MAX_REASON_BYTES: usize = 200;

/// One delivery that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Who had it.
    pub member: Arc<str>,
    /// When it was delivered, in epoch milliseconds.
    pub start: u64,
    /// When it failed.
    pub end: u64,
    /// Why.
    pub reason: String,
}

/// The failed deliveries of one event.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct History {
    /// How many deliveries failed.
    pub(crate) attempts: u32,
    /// How many of them ended because the member or the server went away.
    #[serde(default)]
    pub(crate) lost: u32,
    /// Whether the last of them did.
    #[serde(default)]
    pub(crate) is_last_lost: bool,
    /// The last of them, oldest first.
    #[serde(rename = "history")]
    pub(crate) recent: Vec<Attempt>,
}

impl History {
    /// Notes that delivery number `attempt` ended because the member or the server went away.
    pub(crate) fn record_lost(&mut self, attempt: u32, failed: Attempt) {
        self.note(attempt, failed);
        self.lost += 1;
        self.is_last_lost = true;
    }

    /// Notes the failure of delivery number `attempt`.
    pub(crate) fn note(&mut self, attempt: u32, mut failed: Attempt) {
        self.attempts = self.attempts.max(attempt);
        self.is_last_lost = false;
        cut(&mut failed.reason);
        if self.recent.len() >= MAX_KEPT_ATTEMPTS {
            self.recent.remove(0);
        }
        self.recent.push(failed);
    }

    /// Why the last delivery failed.
    pub(crate) fn last_reason(&self) -> &str {
        self.recent.last().map_or("", |attempt| &attempt.reason)
    }
}

/// Cuts a reason to its limit, between characters.
fn cut(reason: &mut String) {
    if reason.len() > MAX_REASON_BYTES {
        let mut end = MAX_REASON_BYTES;
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        reason.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_attempts_are_told_and_all_are_counted() {
        let mut history = History::default();
        for attempt in 1..=25 {
            let reason = "ü".repeat(300);
            history.note(
                attempt,
                Attempt {
                    member: "m".into(),
                    start: 1,
                    end: 2,
                    reason,
                },
            );
        }
        assert_eq!(history.attempts, 25);
        assert_eq!(history.recent.len(), MAX_KEPT_ATTEMPTS);
        assert_eq!(history.last_reason(), "ü".repeat(100));
    }
}
