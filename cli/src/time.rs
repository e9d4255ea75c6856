//! Times as people write them: RFC 3339, a date, epoch milliseconds, `now`, or so long ago (`-1h`).

use prombus::{Clock, SystemClock};
use prombus_api::http::Age;

/// Reads a time, for the command line.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    parse_at(text, SystemClock.now_ms())
}

/// A time as RFC 3339, or as a number where no calendar reaches it.
pub(crate) fn show(ts: u64) -> String {
    let time = i64::try_from(ts)
        .ok()
        .map(jiff::Timestamp::from_millisecond);
    match time {
        Some(Ok(time)) => format!("{time:.3}"),
        _ => ts.to_string(),
    }
}

/// Reads a duration like `30s`, `12h` or `3d`.
pub(crate) fn parse_age(text: &str) -> Result<Age, String> {
    Age::parse(text)
        .ok_or_else(|| format!("invalid duration {text:?}; expected one like 30s, 12h or 3d"))
}

fn parse_at(text: &str, now_ms: u64) -> Result<u64, String> {
    if text == "now" {
        return Ok(now_ms);
    }
    if let Ok(ts) = text.parse() {
        return Ok(ts);
    }
    if let Some(age) = text.strip_prefix('-').and_then(Age::parse) {
        return Ok(now_ms.saturating_sub(age.ms));
    }
    timestamp(text)
        .and_then(|time| u64::try_from(time.as_millisecond()).ok())
        .ok_or_else(|| {
            format!(
                "invalid time {text:?}; expected one like 2026-11-15, 2026-11-15T12:00:00Z, epoch milliseconds, now, or -1h for an hour ago"
            )
        })
}

/// With an offset; a date or a time without one is UTC.
fn timestamp(text: &str) -> Option<jiff::Timestamp> {
    let offset = jiff::tz::Offset::UTC;
    text.parse().ok().or_else(|| {
        let time: jiff::civil::DateTime = text.parse().ok()?;
        offset.to_timestamp(time).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        assert_eq!(parse_at("1700000000123", 5), Ok(1_700_000_000_123));
        assert_eq!(parse_at("now", 5), Ok(5));
        assert_eq!(parse_at("-1h", 3_600_001), Ok(1));
        assert_eq!(parse_at("-1h", 5), Ok(0));
        assert_eq!(parse_at("2023-11-14T22:13:20.5Z", 0), Ok(1_700_000_000_500));
        assert_eq!(
            parse_at("2023-11-14T23:13:20+01:00", 0),
            Ok(1_700_000_000_000)
        );
        assert_eq!(parse_at("2023-11-14T22:13:20", 0), Ok(1_700_000_000_000));
        assert_eq!(parse_at("2023-11-14 22:13", 0), Ok(1_699_999_980_000));
        assert_eq!(parse_at("2023-11-14", 0), Ok(1_699_920_000_000));
    }

    #[test]
    fn anything_else_is_an_error() {
        for text in [
            "",
            "soon",
            "1h",
            "-1",
            "-h",
            "2023-13-14",
            "1969-12-31T23:59:59Z",
        ] {
            assert!(parse_at(text, 0).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_shown_to_the_millisecond() {
        assert_eq!(show(1_700_000_000_500), "2023-11-14T22:13:20.500Z");
        assert_eq!(show(u64::MAX), u64::MAX.to_string());
    }
}
