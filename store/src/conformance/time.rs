//! Obligation 5, by time: everything of a range once, in the order of (ts, seq).

use super::Harness;
use super::case::{ALL, Case, START_MS, all_time, at_most, plain, seqs, with_ts};
use crate::{ReadLimit, StoredEvent, TimeRange};
use std::sync::Arc;

/// Publishers' times in any order come out sorted, in pages of any size, and interleaved with the store's own.
pub async fn events_come_by_time_then_position<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let mut moments = shuffled_times(&case, &topic, 200).await;
    moments.sort_unstable();
    let case = case.reopen().await;
    let small = ReadLimit {
        events: 1000,
        bytes: 600,
    };
    for limit in [ALL, at_most(1), at_most(7), at_most(200), small] {
        let read = case.pages_by_time(&topic, all_time(), limit).await;
        assert_eq!(moments_of(&read), moments, "{limit:?}");
    }
    for (from_ts, to_ts) in [(0, 40), (20, 60), (41, START_MS - 1), (START_MS, u64::MAX)] {
        let range = between(from_ts, to_ts);
        let within = moments
            .iter()
            .filter(|(ts, _)| (from_ts..=to_ts).contains(ts));
        let expected: Vec<(u64, u64)> = within.copied().collect();
        let read = case.pages_by_time(&topic, range, at_most(3)).await;
        assert_eq!(moments_of(&read), expected, "{range:?}");
    }
}

/// No event is lost or doubled where pages end within one millisecond.
pub async fn thousands_share_one_millisecond<H: Harness>(harness: &H) {
    const EVENTS: u64 = 3000;
    let (case, topic) = Case::with_topic(harness).await;
    case.store(&topic, &with_ts(START_MS - 1)).await;
    case.store_all(&topic, &vec![plain("0"); EVENTS as usize])
        .await;
    case.store(&topic, &with_ts(START_MS + 1)).await;
    case.store(&topic, &with_ts(START_MS)).await;
    let case = case.reopen().await;
    let mut expected: Vec<u64> = (2..=EVENTS + 1).collect();
    expected.push(EVENTS + 3);
    let range = between(START_MS, START_MS);
    let by_bytes = ReadLimit {
        events: 5000,
        bytes: 10_000,
    };
    for limit in [at_most(1000), at_most(997), at_most(3001), by_bytes, ALL] {
        let read = case.pages_by_time(&topic, range, limit).await;
        assert_eq!(seqs(&read), expected, "{limit:?}");
    }
}

/// Both ends are inclusive, `after` is not, and a range may be empty.
pub async fn the_ends_of_a_range_belong_to_it<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    case.store_all(&topic, &[10, 20, 20, 30, 15].map(with_ts))
        .await;
    let expected = [
        ((10, 30), None, &[1, 5, 2, 3, 4][..]),
        ((11, 29), None, &[5, 2, 3]),
        ((20, 20), None, &[2, 3]),
        ((21, 29), None, &[]),
        ((30, 10), None, &[]),
        ((31, u64::MAX), None, &[]),
        ((0, 30), Some((20, 2)), &[3, 4]),
        ((20, 30), Some((10, 9)), &[2, 3, 4]),
        ((0, 20), Some((30, 4)), &[]),
    ];
    for ((from_ts, to_ts), after, expected) in expected {
        let range = TimeRange {
            after,
            ..between(from_ts, to_ts)
        };
        let read = case.pages_by_time(&topic, range, ALL).await;
        assert_eq!(seqs(&read), expected, "{range:?}");
    }
}

/// What is trimmed is gone by time too, and a restart changes nothing.
pub async fn times_are_kept_after_trimming_and_reopening<H: Harness>(harness: &H) {
    let (mut case, topic) = Case::with_topic(harness).await;
    let moments = shuffled_times(&case, &topic, 90).await;
    for first_seq in [1, 2, 31, 32, 80, 91] {
        case.trim(&topic, first_seq).await;
        case = case.reopen().await;
        let mut expected = moments[first_seq as usize - 1..].to_vec();
        expected.sort_unstable();
        let read = case.pages_by_time(&topic, all_time(), at_most(8)).await;
        assert_eq!(moments_of(&read), expected, "from {first_seq} on");
    }
}

/// The lowest position whose event is that late, though later positions may be earlier in time.
pub async fn the_first_event_since_a_time<H: Harness>(harness: &H) {
    let (mut case, topic) = Case::with_topic(harness).await;
    assert_eq!(case.find_ts(&topic, 0).await, None);
    let moments = shuffled_times(&case, &topic, 60).await;
    for first_seq in [1u64, 20, 59] {
        case.trim(&topic, first_seq).await;
        let kept = &moments[first_seq as usize - 1..];
        for ts in (0..102).chain([START_MS - 1, START_MS, START_MS + 1, u64::MAX]) {
            let first = kept.iter().find(|&&(at, _)| at >= ts);
            let expected = first.map(|&(_, seq)| seq);
            assert_eq!(case.find_ts(&topic, ts).await, expected, "since {ts}");
        }
        case = case.reopen().await;
    }
}

/// Publishes events at times from 0 to 100 in no order, and every fifth at the store's own time.
async fn shuffled_times<H: Harness>(
    case: &Case<'_, H>,
    topic: &Arc<str>,
    count: u64,
) -> Vec<(u64, u64)> {
    let mut moments = Vec::new();
    for number in 0..count {
        let draft = match number % 5 {
            4 => plain("0"),
            _ => with_ts(number * 67 % 101),
        };
        let placed = case.store(topic, &draft).await;
        moments.push((placed.ts, placed.seq));
    }
    moments
}

fn between(from_ts: u64, to_ts: u64) -> TimeRange {
    TimeRange {
        from_ts,
        to_ts,
        after: None,
    }
}

fn moments_of(events: &[StoredEvent]) -> Vec<(u64, u64)> {
    events
        .iter()
        .map(|event| (event.ts(), event.seq()))
        .collect()
}
