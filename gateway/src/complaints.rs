//! What operators hear of requests that were refused: failures of the store, and callers who were not let in. A flood
//! of the same is told once a second, with how many were left out.

use crate::denied::Denied;
use prombus_api::Code;
use std::sync::atomic::{AtomicU64, Ordering};

/// The same kind is told again after this time.
const QUIET_MS: u64 = 1_000;

/// What was told, and when.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    failures: Kind,
    strangers: Kind,
}

#[derive(Debug, Default)]
struct Kind {
    told_ms: AtomicU64,
    left_out: AtomicU64,
}

impl Complaints {
    /// Tells operators of a refusal, if it is one for them.
    pub(crate) fn note(&self, why: &Denied, now_ms: u64) {
        let (code, message) = (why.code.as_str(), why.message.as_str());
        match why.code {
            Code::PublishFailed | Code::AckFailed | Code::ReadFailed => {
                if let Some(left_out) = self.failures.turn(now_ms) {
                    tracing::error!(code, message, left_out, "a request failed");
                }
            }
            Code::Unauthorized | Code::BadToken | Code::TokenExpired | Code::Forbidden => {
                if let Some(left_out) = self.strangers.turn(now_ms) {
                    tracing::warn!(code, message, left_out, "a caller was refused");
                }
            }
            _ => {}
        }
    }
}

impl Kind {
    /// How many were left out since the last one that was told, if it is time for the next.
    fn turn(&self, now_ms: u64) -> Option<u64> {
        let told_ms = self.told_ms.load(Ordering::Relaxed);
        let is_time = told_ms == 0 || now_ms >= told_ms.saturating_add(QUIET_MS);
        let taken = is_time
            && self
                .told_ms
                .compare_exchange(told_ms, now_ms.max(1), Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        match taken {
            true => Some(self.left_out.swap(0, Ordering::Relaxed)),
            false => {
                self.left_out.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_told_once_a_second_with_its_size() {
        let kind = Kind::default();
        assert_eq!(kind.turn(5_000), Some(0));
        for now_ms in [5_000, 5_500, 5_999] {
            assert_eq!(kind.turn(now_ms), None);
        }
        assert_eq!(kind.turn(6_000), Some(3));
        assert_eq!(kind.turn(6_001), None);
        assert_eq!(kind.turn(9_000), Some(1));
    }
}
