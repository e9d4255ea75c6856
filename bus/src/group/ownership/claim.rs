//! What an owner may hand out: positions and lengths of leases that it has written down before.

use serde::{Deserialize, Serialize};

/// By how many positions a claim goes beyond the tail where few events come, and where many do. What is claimed waits for
/// its grace when the owner is lost, so it should not be much more than what comes until the next write.
const AHEAD: (u64, u64) = (64, 1_000);
/// By how many positions it goes beyond what was read, where the group is far behind the tail.
const UNREAD: u64 = 10_000;

/// What an owner may hand out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Claim {
    /// Events up to this position.
    pub(crate) to_seq: u64,
    /// Leases of up to this length.
    pub(crate) hold_ms: u64,
}

impl Claim {
    /// What covers both.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            to_seq: self.to_seq.max(other.to_seq),
            hold_ms: self.hold_ms.max(other.hold_ms),
        }
    }
}

/// What is claimed for certain, and what the next write of the group's record claims. Neither ever shrinks, for leases
/// may be open that rely on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Claims {
    written: Claim,
    planned: Claim,
    /// Where the tail was at the last plan.
    tail: u64,
}

impl Claims {
    /// Goes on from the claim of the owner before.
    pub(crate) fn after(before: Claim) -> Self {
        Self {
            written: Claim::default(),
            planned: before,
            tail: before.to_seq,
        }
    }

    /// Plans the next write, for leases of up to `hold_ms`, where the group has read up to `head`.
    pub(crate) fn plan(&mut self, head: u64, tail: u64, hold_ms: u64) {
        self.planned.hold_ms = self.planned.hold_ms.max(hold_ms);
        if !self.is_low(head, tail) {
            return;
        }
        let came = tail.saturating_sub(self.tail);
        let ahead = if came > AHEAD.0 / 2 { AHEAD.1 } else { AHEAD.0 };
        let to_seq = (tail + ahead).min(head + UNREAD);
        self.planned.to_seq = self.planned.to_seq.max(to_seq);
        self.tail = tail;
    }

    fn is_low(&self, head: u64, tail: u64) -> bool {
        let limit = (tail + AHEAD.0 / 2).min(head + UNREAD / 2);
        self.planned.to_seq < limit
    }

    /// What was planned is written.
    pub(crate) fn confirm(&mut self) {
        self.written = self.planned;
    }

    /// Whether the next write claims more than is written.
    pub(crate) fn is_raised(&self) -> bool {
        self.planned != self.written
    }

    pub(crate) fn written(&self) -> Claim {
        self.written
    }

    pub(crate) fn planned(&self) -> Claim {
        self.planned
    }
}

/// How long leases of up to `hold_ms` are waited for, by a clock that may run faster than the one they are counted by.
pub(crate) fn grace_ms(hold_ms: u64) -> u64 {
    hold_ms.saturating_add(hold_ms.div_ceil(32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_follow_the_tail_and_never_shrink() {
        let mut claims = Claims::after(Claim::default());
        claims.plan(0, 0, 30_000);
        assert_eq!(claims.written(), Claim::default(), "nothing is written yet");
        claims.confirm();
        assert_eq!((claims.written().to_seq, claims.is_raised()), (64, false));
        claims.plan(10, 10, 10_000);
        assert!(!claims.is_raised(), "there is room");
        claims.plan(500, 500, 10_000);
        claims.confirm();
        assert_eq!(claims.written().to_seq, 1_500, "many came");
        assert_eq!(claims.written().hold_ms, 30_000);
        // Far behind the tail no more is claimed than is read soon.
        let mut claims = Claims::after(Claim::default());
        claims.plan(0, 1_000_000, 1);
        assert_eq!(claims.planned().to_seq, 10_000);
    }
}
