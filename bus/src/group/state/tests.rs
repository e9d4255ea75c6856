//! Single decisions of the state machine, each in a few lines.

use super::*;
use prombus_interface::Ordering;
use prombus_store::{Batch, Draft, GeneratedId, Id, StoredEvent};

/// The tag of the ids in these tests.
const TAG: u32 = 7;

/// An event as the log would return it.
pub(super) fn event(seq: u64, key: Option<&str>, client_id: Option<&str>) -> StoredEvent {
    let mut batch = Batch::new();
    let own = client_id.and_then(Id::from_client);
    let draft = Draft {
        id: own,
        key,
        payload: "1",
        ..Draft::default()
    };
    batch.publish(&"t".into(), &draft);
    let made = GeneratedId {
        ms: 1,
        tag: TAG,
        seq,
    };
    let encoded = batch.events().next().expect("one was added");
    StoredEvent::encode(encoded, &own.unwrap_or(made.to_id()), 1, seq)
}

pub(super) fn rules(
    max_attempts: u32,
    ordering: Ordering,
    exhausted_policy: ExhaustedPolicy,
) -> Rules {
    Rules {
        settings: GroupSettings {
            max_attempts,
            ordering,
            ..GroupSettings::default()
        },
        backoff: Backoff::default(),
        exhausted_policy,
        window: 1_000,
        // Lost deliveries count like others here.
        max_lost_attempts: 1,
        max_undo_settled: 100_000,
        wall_offset_ms: 0,
    }
}

/// A group with members 1 and 2 and `count` events of key `k` that were read.
fn group(rules: Rules, count: u64) -> GroupState {
    let mut state = GroupState::new(rules, 0, 0);
    state.join(1, "one".into());
    state.join(2, "two".into());
    for seq in 1..=count {
        state.offer(event(seq, Some("k"), None), true, 0);
    }
    state
}

fn plain(count: u64) -> GroupState {
    group(rules(5, Ordering::None, ExhaustedPolicy::DeadLetter), count)
}

fn lease(state: &mut GroupState, member: MemberId, count: usize, now_ms: u64) -> Vec<(u64, u32)> {
    let mut out = Vec::new();
    state.lease(member, count, now_ms, &mut out);
    out.iter()
        .map(|leased| (leased.event.seq(), leased.attempt))
        .collect()
}

/// Reads again what is due.
fn supply(state: &mut GroupState, now_ms: u64) {
    while let Some((first, last)) = state.missing(u64::MAX, usize::MAX, |_| true) {
        let events = (first..=last)
            .map(|seq| event(seq, Some("k"), None))
            .collect();
        state.supply(first, events, last + 1, now_ms);
    }
}

#[test]
fn the_cursor_follows_the_lowest_unsettled_event() {
    let mut state = plain(3);
    assert_eq!(lease(&mut state, 1, 10, 0), [(1, 1), (2, 1), (3, 1)]);
    assert_eq!(state.ack(1, 2, None, 0), Settled::Done);
    assert_eq!(state.cursor(), 0);
    assert_eq!(state.ack(1, 1, None, 0), Settled::Done);
    assert_eq!(state.cursor(), 2);
    assert_eq!(state.ack(1, 3, None, 0), Settled::Done);
    assert_eq!(state.cursor(), 3);
}

#[test]
fn a_late_ack_counts_unless_another_member_holds_the_event() {
    let mut state = plain(3);
    lease(&mut state, 1, 3, 0);
    state.tick(30_000);
    assert_eq!(
        state.ack(1, 1, Some(1), 30_000),
        Settled::Done,
        "nobody holds it"
    );
    assert_eq!(state.ack(1, 1, Some(1), 30_000), Settled::Already);
    state.tick(40_000);
    supply(&mut state, 40_000);
    assert_eq!(lease(&mut state, 2, 1, 40_000), [(2, 2)]);
    assert_eq!(state.ack(1, 2, Some(2), 40_000), Settled::LeaseLost);
    assert_eq!(lease(&mut state, 1, 1, 40_000), [(3, 2)]);
    assert_eq!(
        state.ack(1, 3, Some(3), 40_000),
        Settled::Done,
        "it holds it again itself"
    );
    assert_eq!(state.ack(2, 2, None, 40_000), Settled::Done);
    assert_eq!(
        state.ack(2, 9, None, 40_000),
        Settled::Done,
        "it was not read since a restart, so nobody holds it"
    );
    assert_eq!(state.ack(2, 9, None, 40_000), Settled::Already);
}

#[test]
fn a_nack_waits_for_its_backoff_and_a_delay_replaces_it() {
    let mut state = plain(2);
    lease(&mut state, 1, 2, 0);
    state.nack(1, 1, None, "no", Retry::Backoff, 0);
    state.nack(1, 2, None, "no", Retry::After { delay_ms: 5_000 }, 0);
    let due_ms = state.next_due().expect("one waits");
    assert!((15..=20).contains(&due_ms), "{due_ms}");
    state.tick(20);
    supply(&mut state, 20);
    assert_eq!(lease(&mut state, 2, 9, 20), [(1, 2)]);
    state.tick(5_000);
    supply(&mut state, 5_000);
    assert_eq!(lease(&mut state, 2, 9, 5_000), [(2, 2)]);
    assert_eq!(
        state.nack(1, 2, Some(1), "late", Retry::Backoff, 5_000),
        Settled::LeaseLost
    );
}

#[test]
fn an_extension_gives_at_least_a_second_and_only_to_the_holder() {
    let mut state = plain(1);
    lease(&mut state, 1, 1, 0);
    assert_eq!(state.extend(1, 1, Some(1), 10, 29_500), Settled::Done);
    state.tick(30_000);
    assert_eq!(state.next_due(), Some(30_500));
    assert_eq!(state.extend(2, 1, None, 10, 30_000), Settled::LeaseLost);
    assert_eq!(state.extend(1, 1, Some(1), 60_000, 30_000), Settled::Done);
    assert_eq!(state.next_due(), Some(90_000));
    state.ack(1, 1, None, 30_000);
    assert_eq!(state.extend(1, 1, None, 10, 30_000), Settled::Unknown);
}

#[test]
fn a_lost_member_frees_its_events_at_once_and_the_unseen_ones_uncounted() {
    let mut state = plain(2);
    lease(&mut state, 1, 2, 0);
    state.release(1, &[(2, 2)]);
    state.leave(1, "gone", 10);
    supply(&mut state, 10);
    assert_eq!(lease(&mut state, 2, 9, 10), [(1, 2), (2, 1)]);
}

#[test]
fn the_last_failure_ends_in_a_dead_letter_that_settles() {
    let mut state = group(rules(2, Ordering::None, ExhaustedPolicy::DeadLetter), 1);
    for now_ms in [0, 100] {
        state.tick(now_ms);
        supply(&mut state, now_ms);
        assert_eq!(lease(&mut state, 1, 9, now_ms).len(), 1);
        state.nack(1, 1, None, "bad", Retry::Backoff, now_ms);
    }
    let dead_lettering = state.take_dead_lettering(9);
    let (seq, history) = dead_lettering.first().expect("it dies");
    assert_eq!((*seq, history.attempts, history.recent.len()), (1, 2, 2));
    assert_eq!(state.cursor(), 0, "not settled before it is written");
    assert_eq!(state.ack(1, 1, None, 100), Settled::Already);
    state.dead_letter_failed(&[1]);
    assert!(state.has_dead_lettering());
    state.take_dead_lettering(9);
    state.dead_lettered(&[1], 100);
    assert_eq!((state.cursor(), state.counts().dead_lettered), (1, 1));
}

#[test]
fn dead_letters_themselves_keep_trying_at_the_longest_backoff() {
    let mut state = group(rules(1, Ordering::None, ExhaustedPolicy::RetryForever), 1);
    let mut now_ms = 0;
    for attempt in 1..20 {
        state.tick(now_ms);
        supply(&mut state, now_ms);
        assert_eq!(lease(&mut state, 1, 9, now_ms), [(1, attempt)]);
        state.nack(1, 1, None, "bad", Retry::After { delay_ms: 0 }, now_ms);
        let due_ms = state.next_due().expect("it waits");
        assert!(due_ms - now_ms >= 30_000);
        now_ms = due_ms;
    }
    assert!(!state.has_dead_lettering());
}

#[test]
fn an_ephemeral_group_gives_up() {
    let mut state = group(rules(1, Ordering::None, ExhaustedPolicy::Discard), 1);
    lease(&mut state, 1, 1, 0);
    state.nack(1, 1, None, "bad", Retry::Backoff, 0);
    assert_eq!((state.cursor(), state.counts().given_up), (1, 1));
}

#[test]
fn a_retry_blocks_only_its_key() {
    let mut state = group(rules(5, Ordering::Key, ExhaustedPolicy::DeadLetter), 2);
    state.offer(event(3, Some("other"), None), true, 0);
    state.offer(event(4, None, None), true, 0);
    assert_eq!(lease(&mut state, 1, 9, 0), [(1, 1), (3, 1), (4, 1)]);
    state.nack(1, 1, None, "no", Retry::Backoff, 0);
    supply(&mut state, 0);
    assert_eq!(lease(&mut state, 1, 9, 0), []);
    assert_eq!(state.blocked_lanes(9)[0].by_seq, 1);
    state.tick(20);
    supply(&mut state, 20);
    assert_eq!(lease(&mut state, 1, 9, 20), [(1, 2)]);
    state.ack(1, 1, None, 20);
    supply(&mut state, 20);
    assert_eq!(lease(&mut state, 1, 9, 20), [(2, 1)]);
}

#[test]
fn ids_are_found_among_the_delivered() {
    let mut state = plain(1);
    state.offer(event(2, None, Some("mine")), true, 0);
    lease(&mut state, 1, 9, 0);
    let made = |tag, seq| GeneratedId { ms: 1, tag, seq }.to_id();
    assert_eq!(state.seq_of("mine"), Some(2));
    assert_eq!(state.seq_of(made(TAG, 1).as_str()), Some(1));
    for unknown in [
        "other",
        made(TAG, 2).as_str(),
        made(TAG, 3).as_str(),
        made(8, 1).as_str(),
    ] {
        assert_eq!(state.seq_of(unknown), None, "{unknown}");
    }
    state.ack(1, 2, None, 0);
    assert_eq!(state.seq_of("mine"), None);
}

#[test]
fn what_retention_took_is_counted_as_skipped() {
    let mut state = plain(2);
    state.trimmed(2);
    assert_eq!(state.skipped(), 0, "it was read in time");
    state.trimmed(6);
    assert_eq!((state.skipped(), state.head()), (3, 5));
    state.offer(event(6, None, None), true, 0);
    lease(&mut state, 1, 9, 0);
    state.leave(1, "gone", 0);
    state.supply(1, vec![event(6, None, None)], 7, 0);
    assert_eq!(
        (state.skipped(), state.cursor()),
        (5, 5),
        "1 and 2 are gone"
    );
}

#[test]
fn a_seek_voids_leases_and_tells_its_effect() {
    let mut state = plain(10);
    lease(&mut state, 1, 5, 0);
    for seq in [1, 2, 4] {
        state.ack(1, seq, None, 0);
    }
    assert_eq!(state.seek_effect(0, 1, 20), (3, 0));
    assert_eq!(state.seek_effect(3, 1, 20), (1, 1));
    assert_eq!(state.seek_effect(20, 1, 20), (0, 17));
    assert_eq!(
        state.seek_effect(0, 3, 20),
        (1, 0),
        "the first two are not kept"
    );
    state.seek(0);
    let mut freed = Vec::new();
    state.take_freed(|member, count| freed.push((member, count)));
    assert_eq!(freed, [(1, 5)]);
    assert_eq!(state.ack(1, 3, Some(3), 0), Settled::LeaseLost);
    state.offer(event(1, None, None), true, 0);
    assert_eq!(lease(&mut state, 2, 9, 0), [(1, 1)]);
}

#[test]
fn the_timer_heap_stays_bounded() {
    let mut state = plain(1);
    lease(&mut state, 1, 1, 0);
    for now_ms in 0..10_000 {
        state.extend(1, 1, None, 0, now_ms);
    }
    assert!(state.timers.len() < 100);
}
