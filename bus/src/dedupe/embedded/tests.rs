//! Marks are there until they run out, for every bus on the store, and never take more than they may.

use super::*;
use prombus_store::ManualClock;
use prombus_store::memory::MemoryStore;

const TTL_MS: u64 = 1_000;

fn store() -> (Arc<MemoryStore>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(1_000_000));
    (Arc::new(MemoryStore::new(clock.clone())), clock)
}

#[tokio::test]
async fn a_mark_is_seen_by_all_until_it_runs_out() {
    let (store, clock) = store();
    let one = EmbeddedDedupe::new(store.clone(), clock.clone());
    assert_eq!(one.seen("s", "a").await, Ok(false));
    one.mark("s", "a", TTL_MS).await.expect("marked");
    let other = EmbeddedDedupe::new(store, clock.clone());
    assert_eq!(other.seen("s", "a").await, Ok(true));
    assert_eq!(other.seen("s", "b").await, Ok(false));
    assert_eq!(
        other.seen("t", "a").await,
        Ok(false),
        "scopes are apart from each other"
    );
    clock.advance(TTL_MS - 1);
    assert_eq!(other.seen("s", "a").await, Ok(true));
    one.mark("s", "a", TTL_MS).await.expect("marked again");
    clock.advance(1);
    assert_eq!(other.seen("s", "a").await, Ok(true), "it was renewed");
    clock.advance(TTL_MS);
    assert_eq!(other.seen("s", "a").await, Ok(false));
}

#[tokio::test]
async fn marks_of_several_buses_in_one_slot_are_all_kept() {
    let (store, clock) = store();
    let buses: Vec<_> = (0..4)
        .map(|_| EmbeddedDedupe::new(store.clone(), clock.clone()))
        .collect();
    let key = slot_key("s", "0");
    let same_slot: Vec<String> = (0..200_000)
        .map(|number| number.to_string())
        .filter(|id| slot_key("s", id) == key)
        .take(40)
        .collect();
    assert_eq!(same_slot.len(), 40);
    let marking = same_slot
        .iter()
        .enumerate()
        .map(|(at, id)| tokio::spawn(buses[at % 4].mark("s", id, TTL_MS)));
    for marked in marking.collect::<Vec<_>>() {
        marked.await.expect("it ends").expect("marked");
    }
    for id in &same_slot {
        assert_eq!(buses[0].seen("s", id).await, Ok(true), "{id}");
    }
}

#[tokio::test]
async fn what_has_run_out_is_dropped_and_its_records_go() {
    let (store, clock) = store();
    let dedupe = EmbeddedDedupe::new(store.clone(), clock.clone());
    for number in 0..50 {
        let mark = dedupe.mark("s", &format!("short-{number}"), TTL_MS);
        mark.await.expect("marked");
    }
    dedupe.mark("s", "long", 10 * TTL_MS).await.expect("marked");
    clock.advance(TTL_MS);
    assert_eq!(dedupe.prune().await, Ok(50));
    assert_eq!(dedupe.prune().await, Ok(0));
    let left = store.list("dedupe/").await.expect("they are listed");
    assert_eq!(left.len(), 1);
    assert_eq!(dedupe.seen("s", "long").await, Ok(true));
    assert!(dedupe.inner.maintenance.held_bytes() < 200);
}

#[tokio::test]
async fn a_store_that_is_full_of_marks_refuses_more_until_some_run_out() {
    let (store, clock) = store();
    let dedupe = EmbeddedDedupe::with_limit(store, clock.clone(), 2_000);
    let mut marked = Vec::new();
    let refused = loop {
        let id = format!("id-{}", marked.len());
        match dedupe.mark("s", &id, TTL_MS).await {
            Ok(()) => marked.push(id),
            Err(error) => break error,
        }
        assert!(marked.len() < 1_000, "there is a limit");
    };
    assert!(refused.to_string().contains("dedupe_bytes"), "{refused}");
    assert!(marked.len() > 10);
    for id in &marked {
        assert_eq!(dedupe.seen("s", id).await, Ok(true), "{id}");
    }
    clock.advance(20 * TTL_MS);
    dedupe.mark("s", "next", TTL_MS).await.expect("room again");
    assert_eq!(dedupe.seen("s", "next").await, Ok(true));
}

#[tokio::test]
async fn a_full_slot_forgets_what_runs_out_first_and_says_so() {
    let (store, clock) = store();
    let dedupe = EmbeddedDedupe::new(store, clock.clone());
    let key = slot_key("s", "0");
    let same_slot: Vec<String> = (0..2_000_000)
        .map(|number| number.to_string())
        .filter(|id| slot_key("s", id) == key)
        .take(MAX_SLOT_MARKS + 2)
        .collect();
    assert_eq!(same_slot.len(), MAX_SLOT_MARKS + 2);
    for id in &same_slot {
        dedupe.mark("s", id, TTL_MS).await.expect("marked");
        clock.advance(1);
    }
    assert_eq!(dedupe.forgotten(), 2);
    for (at, id) in same_slot.iter().enumerate() {
        assert_eq!(dedupe.seen("s", id).await, Ok(at >= 2), "{id}");
    }
}

#[tokio::test]
async fn names_that_are_too_long_are_refused() {
    let (store, clock) = store();
    let dedupe = EmbeddedDedupe::new(store, clock);
    let long = "x".repeat(MAX_NAME_BYTES + 1);
    for (scope, id) in [(long.as_str(), "a"), ("s", long.as_str())] {
        let refused = dedupe.mark(scope, id, TTL_MS).await.expect_err("too long");
        assert!(matches!(refused, DedupeError::LimitReached(_)), "{refused}");
    }
}
