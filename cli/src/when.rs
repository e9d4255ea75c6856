//! Moments as people write them: RFC 3339, epoch milliseconds, or so long ago (`-1h`).

use prombus::{Clock, SystemClock};
use prombus_api::http::Age;

/// Reads a moment, for the command line.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    parse_at(text, SystemClock.now_ms())
}

/// A moment as RFC 3339, or as it is where no calendar reaches it.
pub(crate) fn show(ts: u64) -> String {
    let time = i64::try_from(ts)
        .ok()
        .map(jiff::Timestamp::from_millisecond);
    match time {
        Some(Ok(time)) => format!("{time:.3}"),
        _ => ts.to_string(),
    }
}

fn parse_at(text: &str, now_ms: u64) -> Result<u64, String> {
    if let Ok(ts) = text.parse() {
        return Ok(ts);
    }
    if let Some(age) = text.strip_prefix('-').and_then(Age::parse) {
        return Ok(now_ms.saturating_sub(age.ms));
    }
    let time: Option<jiff::Timestamp> = text.parse().ok();
    time.and_then(|time| u64::try_from(time.as_millisecond()).ok())
        .ok_or_else(|| {
            "a time is like 2026-11-15T12:00:00Z, epoch milliseconds, or -1h for an hour ago"
                .to_owned()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_three_spellings_are_read() {
        assert_eq!(parse_at("1700000000123", 5), Ok(1_700_000_000_123));
        assert_eq!(parse_at("-1h", 3_600_001), Ok(1));
        assert_eq!(parse_at("-1h", 5), Ok(0));
        assert_eq!(parse_at("2023-11-14T22:13:20.5Z", 0), Ok(1_700_000_000_500));
        assert_eq!(
            parse_at("2023-11-14T23:13:20+01:00", 0),
            Ok(1_700_000_000_000)
        );
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "",
            "now",
            "1h",
            "-1",
            "-h",
            "2023-11-14",
            "1969-12-31T23:59:59Z",
        ] {
            assert!(parse_at(text, 0).is_err(), "{text}");
        }
    }

    #[test]
    fn moments_are_shown_to_the_millisecond() {
        assert_eq!(show(1_700_000_000_500), "2023-11-14T22:13:20.500Z");
        assert_eq!(show(u64::MAX), u64::MAX.to_string());
    }
}
