//! Ids: one that the topic holds is stored once, whatever retention, deletion and restarts do in between.

use crate::fixture::{Fixture, START_MS};
use crate::plan::{Plan, PlannedEvent, answer_of};
use prombus_store::{Change, EventOutcome, IfExists, TopicOptions};

const SEGMENT_BYTES: u64 = 2000;

fn event(id: &str) -> PlannedEvent {
    PlannedEvent::new("t", format!(r#""of {id}""#)).with_id(id)
}

/// Fills segments until the ones before are sealed.
fn seal(fixture: &Fixture) {
    for round in 0..3 {
        let filler = PlannedEvent::new("filler", format!(r#""{}""#, "f".repeat(2100)));
        let small = PlannedEvent::new("t", round.to_string());
        fixture.store(&Plan::events([filler, small]));
    }
    fixture.log.maintain().expect("maintenance");
}

fn new_desk() -> Fixture {
    let fixture = Fixture::with_topic(SEGMENT_BYTES, "t", TopicOptions::default());
    let filler = Plan::topic("filler", TopicOptions::default());
    fixture.commit(&filler).expect("a topic");
    fixture
}

#[test]
fn an_id_that_retention_let_go_is_stored_once_more_and_not_twice() {
    let fixture = new_desk();
    fixture.store(&Plan::events([event("a"), event("b")]));
    seal(&fixture);
    let trim = Change::Trim {
        topic: "t".into(),
        first_seq: 2,
    };
    let trim = Plan {
        changes: vec![trim],
        ..Plan::default()
    };
    fixture.commit(&trim).expect("a trim");
    // The sealed segment still has both, since only one is forgotten.
    let again = fixture.store(&Plan::events([event("a")]));
    let receipt = fixture
        .commit(&Plan::events([event("a")]))
        .expect("a commit");
    assert_eq!(receipt.events, [EventOutcome::Duplicate(again[0])]);
}

#[test]
fn an_id_that_comes_back_to_its_place_twice_at_once_is_a_duplicate() {
    let fixture = new_desk();
    let made = fixture.store(&Plan::events([PlannedEvent::new("t", "1")]))[0];
    let older = {
        let mut older = new_desk();
        older.clock.set(START_MS + 5);
        older.reopen();
        older
    };
    let import = PlannedEvent::new("t", "1").with_id(made.id.as_str());
    let conflicting = PlannedEvent::new("t", "2").with_id(made.id.as_str());
    let events = [import.clone(), import.clone(), conflicting];
    let mut first = older.log.append(&Plan::events(events).batch());
    let mut second = older.log.append(&Plan::events([import]).batch());
    older.log.commit_now();
    let first = answer_of(&mut first).expect("an answer").expect("a commit");
    let second = answer_of(&mut second)
        .expect("an answer")
        .expect("a commit");
    let EventOutcome::Stored(placed) = first.events[0] else {
        panic!("not stored: {first:?}");
    };
    assert_eq!((placed.seq, placed.id), (made.seq, made.id));
    assert_eq!(first.events[1], EventOutcome::Duplicate(placed));
    assert_eq!(first.events[2], EventOutcome::IdConflict(placed));
    assert_eq!(second.events, [EventOutcome::Duplicate(placed)]);
}

#[test]
fn a_topic_made_again_in_the_same_batch_knows_no_ids_of_the_old_one() {
    for atomic in [false, true] {
        let mut fixture = new_desk();
        fixture.store(&Plan::events([event("a"), event("b")]));
        seal(&fixture);
        let plan = Plan {
            atomic,
            changes: vec![
                Change::DeleteTopic { topic: "t".into() },
                Change::PutTopic {
                    topic: "t".into(),
                    options: TopicOptions::default(),
                    if_exists: IfExists::Replace,
                },
            ],
            events: vec![event("b"), event("a"), event("c")],
        };
        let placed = fixture.store(&plan);
        let seqs: Vec<u64> = placed.iter().map(|placed| placed.seq).collect();
        assert_eq!(seqs, [1, 2, 3], "atomic: {atomic}");
        let report = fixture.open_on(fixture.disk.crash(1));
        assert_eq!(report.cut_tail, None, "atomic: {atomic}");
        assert_eq!(fixture.seqs("t"), [1, 2, 3]);
    }
}

#[test]
fn made_ids_rise_though_the_clock_goes_back_over_a_crash() {
    let mut fixture = new_desk();
    let old_ts = PlannedEvent {
        ts: Some(5),
        ..PlannedEvent::new("t", "1")
    };
    let before = fixture.store(&Plan::events([old_ts]))[0];
    fixture.clock.set(START_MS - 1000);
    fixture.open_on(fixture.disk.process_crash());
    let after = fixture.store(&Plan::events([PlannedEvent::new("t", "2")]))[0];
    assert!(after.id.as_str() > before.id.as_str());
    assert!(after.ts >= START_MS, "{after:?}");
}

#[test]
fn ids_of_several_topics_are_found_at_the_ends_and_in_the_middle_of_what_is_sealed() {
    // Large enough that the ids of a topic fill several blocks of the sealed segments' tables.
    let mut fixture = Fixture::with_topic(40_000, "t0", TopicOptions::default());
    for topic in ["t1", "t2"] {
        let topic = Plan::topic(topic, TopicOptions::default());
        fixture.commit(&topic).expect("a topic");
    }
    let event = |number: usize| {
        let topic = format!("t{}", number % 3);
        let id = format!("id-{:04}", number * 7 % 1000);
        PlannedEvent::new(&topic, number.to_string()).with_id(&id)
    };
    let mut stored = Vec::new();
    for round in 0..10 {
        let events = (round * 100..round * 100 + 100).filter(|number| number % 10 != 0);
        stored.extend(fixture.store(&Plan::events(events.map(event))));
    }
    fixture.log.maintain().expect("maintenance");
    fixture.reopen();
    let held = (0..1000).filter(|number| number % 10 != 0);
    let again = fixture.commit(&Plan::events(held.map(event)));
    let duplicates: Vec<EventOutcome> = stored.into_iter().map(EventOutcome::Duplicate).collect();
    assert_eq!(again.expect("a commit").events, duplicates);
    let others = (0..1000).filter(|number| number % 10 == 0);
    assert_eq!(fixture.store(&Plan::events(others.map(event))).len(), 100);
}
