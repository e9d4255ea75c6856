//! When a schedule is due first, and what is refused.

use super::*;

const NOW: u64 = 1_000_000;

fn at(schedule: Schedule<'_>) -> Result<u64, &'static str> {
    due(&schedule, NOW).map_err(|error| error.field)
}

#[test]
fn a_time_a_delay_or_a_repetition_says_when() {
    let none = Schedule::default();
    assert_eq!(at(none), Err("deliver_at"));
    let deliver_at = Some(5);
    assert_eq!(at(Schedule { deliver_at, ..none }), Ok(5), "late is now");
    let delay_ms = Some(7);
    assert_eq!(at(Schedule { delay_ms, ..none }), Ok(NOW + 7));
    let both = Schedule {
        deliver_at,
        delay_ms,
        ..none
    };
    assert_eq!(at(both), Err("delay_ms"));
    let every = Some("1m");
    assert_eq!(at(Schedule { every, ..none }), Ok(NOW + 60_000));
    let delayed = Schedule {
        every,
        delay_ms,
        ..none
    };
    assert_eq!(at(delayed), Ok(NOW + 7));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let none = Schedule::default();
    for (field, schedule) in [
        ("deliver_at", Schedule::at(MAX_TS + 1)),
        ("delay_ms", Schedule::after(u64::MAX)),
        (
            "every",
            Schedule {
                every: Some("often"),
                ..none
            },
        ),
        (
            "every",
            Schedule {
                every: Some("99999999w"),
                ..none
            },
        ),
        (
            "every",
            Schedule {
                every: Some("0 0 31 2 *"),
                ..none
            },
        ),
        (
            "catch_up",
            Schedule {
                deliver_at: Some(1),
                catch_up: true,
                ..none
            },
        ),
    ] {
        assert_eq!(at(schedule), Err(field), "{schedule:?}");
    }
}
