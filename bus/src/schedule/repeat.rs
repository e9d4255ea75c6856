//! How a schedule is repeated: every so often, or by a cron line in a time zone.

use crate::error::InvalidField;
use cronexpr::{Crontab, FallbackTimezoneOption, MakeTimestamp, ParseOptions, parse_crontab_with};

/// The shortest interval.
const MIN_INTERVAL_MS: u64 = 1_000;
/// The longest text of a repetition.
const MAX_TEXT_BYTES: usize = 256;
/// The units of intervals.
const UNITS: &[(&str, u64)] = &[
    ("ms", 1),
    ("s", 1_000),
    ("m", 60 * 1_000),
    ("h", 60 * 60 * 1_000),
    ("d", 24 * 60 * 60 * 1_000),
    ("w", 7 * 24 * 60 * 60 * 1_000),
];

/// A repetition.
#[derive(Debug, Clone)]
pub(super) enum Repeat {
    /// So many milliseconds after the time before.
    Interval(u64),
    /// As a cron line says.
    Cron(Box<Crontab>),
}

impl Repeat {
    /// Reads `30s`, or a cron line of five fields and perhaps a time zone.
    pub(super) fn parse(text: &str) -> Result<Self, InvalidField> {
        let bad = |reason: String| InvalidField::new("every", reason);
        if text.len() > MAX_TEXT_BYTES {
            return Err(bad(format!("longer than {MAX_TEXT_BYTES} bytes")));
        }
        if let Some(interval_ms) = interval(text) {
            if interval_ms < MIN_INTERVAL_MS {
                return Err(bad(format!("shorter than {MIN_INTERVAL_MS} ms")));
            }
            return Ok(Self::Interval(interval_ms));
        }
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::UTC;
        match parse_crontab_with(text, options) {
            Ok(crontab) => Ok(Self::Cron(Box::new(crontab))),
            Err(_) => Err(bad(
                "expected an interval like 30s, or a cron line like 0 9 * * 1-5 Europe/Berlin"
                    .to_owned(),
            )),
        }
    }

    /// The first time of a schedule that starts at `start`, or now; `None` where there is none.
    pub(super) fn first(&self, start: Option<u64>, now_ms: u64) -> Option<u64> {
        match (self, start) {
            (Self::Interval(_), Some(start)) => Some(start),
            (Self::Interval(interval_ms), None) => now_ms.checked_add(*interval_ms),
            (Self::Cron(_), start) => {
                self.next(start.unwrap_or(now_ms.saturating_add(1)).saturating_sub(1))
            }
        }
    }

    /// The time that comes after a time of the schedule; `None` where there is none.
    pub(super) fn next(&self, due: u64) -> Option<u64> {
        match self {
            Self::Interval(interval_ms) => due.checked_add(*interval_ms),
            Self::Cron(crontab) => {
                let after = MakeTimestamp::from_millisecond(i64::try_from(due).ok()?).ok()?;
                let next = crontab.find_next(after).ok()?;
                u64::try_from(next.timestamp().as_millisecond()).ok()
            }
        }
    }

    /// The last time of the schedule that is not after `now_ms`, starting from one that is not.
    pub(super) fn last_until(&self, due: u64, now_ms: u64) -> u64 {
        match self {
            Self::Interval(interval_ms) => {
                let passed = now_ms.saturating_sub(due) / interval_ms;
                due.saturating_add(passed * interval_ms)
            }
            Self::Cron(_) => self.last_cron_until(due, now_ms),
        }
    }

    /// Goes back from now in growing steps until a time of the line comes before now, and then forward.
    fn last_cron_until(&self, due: u64, now_ms: u64) -> u64 {
        const FIRST_STEP_MS: u64 = 60 * 60 * 1_000;
        let mut step_ms = FIRST_STEP_MS;
        loop {
            let from = now_ms.saturating_sub(step_ms);
            if from <= due {
                break;
            }
            if let Some(found) = self.next(from).filter(|found| *found <= now_ms) {
                return self.forward(found, now_ms);
            }
            step_ms = step_ms.saturating_mul(2);
        }
        self.forward(due, now_ms)
    }

    fn forward(&self, mut due: u64, now_ms: u64) -> u64 {
        while let Some(next) = self.next(due).filter(|next| *next <= now_ms) {
            due = next;
        }
        due
    }
}

/// A whole number with its unit.
fn interval(text: &str) -> Option<u64> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let (_, unit_ms) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*unit_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 60 * 60 * 1_000;
    /// 2026-11-18T00:00:00Z, a Wednesday.
    const WEDNESDAY: u64 = 1_794_960_000_000;

    fn repeat(text: &str) -> Repeat {
        Repeat::parse(text).expect(text)
    }

    #[test]
    fn intervals_follow_the_time_before() {
        let every = repeat("90s");
        assert_eq!(every.first(None, 1_000), Some(91_000));
        assert_eq!(every.first(Some(500), 1_000), Some(500));
        assert_eq!(every.next(91_000), Some(181_000));
        assert_eq!(every.last_until(1_000, 1_000), 1_000);
        assert_eq!(every.last_until(1_000, 90_999), 1_000);
        assert_eq!(
            every.last_until(1_000, 91_000 + 10 * 90_000),
            91_000 + 10 * 90_000
        );
        assert_eq!(every.next(u64::MAX), None);
    }

    #[test]
    fn cron_lines_are_utc_unless_they_say_otherwise() {
        let at_nine = repeat("0 9 * * *");
        assert_eq!(
            at_nine.first(None, WEDNESDAY),
            Some(WEDNESDAY + 9 * HOUR_MS)
        );
        let berlin = repeat("0 9 * * * Europe/Berlin");
        assert_eq!(berlin.first(None, WEDNESDAY), Some(WEDNESDAY + 8 * HOUR_MS));
        // A start that is a time of the line is the first one.
        let start = WEDNESDAY + 9 * HOUR_MS;
        assert_eq!(at_nine.first(Some(start), WEDNESDAY), Some(start));
        assert_eq!(
            at_nine.first(Some(start + 1), WEDNESDAY),
            Some(start + 24 * HOUR_MS)
        );
        assert_eq!(at_nine.next(start), Some(start + 24 * HOUR_MS));
    }

    #[test]
    fn summer_time_moves_utc_and_not_the_clock_on_the_wall() {
        // The clocks go forward on 2027-03-28 in Berlin.
        let berlin = repeat("0 9 * * * Europe/Berlin");
        let saturday = 1_806_105_600_000 + 8 * HOUR_MS;
        assert_eq!(berlin.next(saturday - 1), Some(saturday));
        assert_eq!(berlin.next(saturday), Some(saturday + 23 * HOUR_MS));
    }

    #[test]
    fn the_last_missed_time_is_found_however_long_ago_the_first_was() {
        let year = 365 * 24 * HOUR_MS;
        for (text, last) in [
            ("*/5 * * * *", WEDNESDAY),
            ("0 9 * * *", WEDNESDAY - 15 * HOUR_MS),
            // The first of January.
            ("0 0 1 1 *", 1_767_225_600_000),
        ] {
            let every = repeat(text);
            let due = every.next(WEDNESDAY - 5 * year).expect("a time");
            assert_eq!(every.last_until(due, WEDNESDAY), last, "{text}");
        }
        let daily = repeat("0 9 * * *");
        let due = WEDNESDAY + 9 * HOUR_MS;
        assert_eq!(daily.last_until(due, due), due);
        assert_eq!(daily.last_until(due, due + HOUR_MS), due);
    }

    #[test]
    fn what_is_none_is_refused() {
        let long = "0 ".repeat(200);
        for bad in [
            "",
            "5",
            "s",
            "500ms",
            "1y",
            "* * * *",
            "61 * * * *",
            "* * * * * * * *",
            "0 9 * * * Mars/Olympus",
            "99999999999999999999s",
            &long,
        ] {
            assert!(Repeat::parse(bad).is_err(), "{bad}");
        }
    }
}
