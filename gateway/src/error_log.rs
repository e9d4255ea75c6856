//! The error log of the server: requests that failed in the store, and requests that were not authorized. Each kind is
//! logged at most once a second, with the number that was suppressed.

use crate::api_error::ApiError;
use crate::peer::Peer;
use prombus_api::Code;
use std::sync::atomic::{AtomicU64, Ordering};

/// The shortest time between two lines of one kind.
const INTERVAL_MS: u64 = 1_000;

/// The request that failed.
pub(crate) struct ErrorSource<'a> {
    pub(crate) peer: &'a Peer,
    /// Without its query, which may hold a token.
    pub(crate) path: &'a str,
    /// Whose token it was, where that is known.
    pub(crate) subject: Option<&'a str>,
}

/// The rate-limited log.
#[derive(Debug, Default)]
pub(crate) struct ErrorLog {
    failures: RateLimitedLog,
    rejections: RateLimitedLog,
}

#[derive(Debug, Default)]
struct RateLimitedLog {
    logged_ms: AtomicU64,
    suppressed: AtomicU64,
}

impl ErrorLog {
    /// Logs an error if operators should know of it.
    pub(crate) fn record(&self, error: &ApiError, source: &ErrorSource<'_>, now_ms: u64) {
        let (code, message) = (error.code.as_str(), error.message.as_str());
        let (peer, path) = (source.peer.address, source.path);
        let subject = source.subject.or(source.peer.subject.as_deref());
        let subject = subject.unwrap_or_default();
        match error.code {
            Code::PublishFailed | Code::AckFailed | Code::ReadFailed => {
                if let Some(suppressed) = self.failures.due(now_ms) {
                    tracing::error!(code, message, %peer, path, subject, suppressed, "request failed");
                }
            }
            Code::Unauthorized | Code::BadToken | Code::TokenExpired | Code::Forbidden => {
                if let Some(suppressed) = self.rejections.due(now_ms) {
                    tracing::warn!(code, message, %peer, path, subject, suppressed, "request rejected");
                }
            }
            _ => {}
        }
    }
}

impl RateLimitedLog {
    /// How many were suppressed since the last line, if the next one is due.
    fn due(&self, now_ms: u64) -> Option<u64> {
        let logged_ms = self.logged_ms.load(Ordering::Relaxed);
        let is_time = logged_ms == 0 || now_ms >= logged_ms.saturating_add(INTERVAL_MS);
        let taken = is_time
            && self
                .logged_ms
                .compare_exchange(
                    logged_ms,
                    now_ms.max(1),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                )
                .is_ok();
        if taken {
            Some(self.suppressed.swap(0, Ordering::Relaxed))
        } else {
            self.suppressed.fetch_add(1, Ordering::Relaxed);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_told_once_a_second_with_its_size() {
        let kind = RateLimitedLog::default();
        assert_eq!(kind.due(5_000), Some(0));
        for now_ms in [5_000, 5_500, 5_999] {
            assert_eq!(kind.due(now_ms), None);
        }
        assert_eq!(kind.due(6_000), Some(3));
        assert_eq!(kind.due(6_001), None);
        assert_eq!(kind.due(9_000), Some(1));
    }
}
