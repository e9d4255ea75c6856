//! Retention and compaction take only what they may, whatever is on its way meanwhile.

use crate::fixture::{Fixture, START_MS, options};
use crate::plan::{Plan, PlannedEvent, answer_of};
use prombus_log::fault::FaultFiles;
use prombus_log::{Log, LogOptions};
use prombus_store::{Change, IfExists, ManualClock, TopicOptions};
use std::sync::Arc;

fn events(count: usize) -> Plan {
    Plan::events((0..count).map(|at| PlannedEvent::new("t", at.to_string())))
}

#[test]
fn events_on_their_way_are_not_forgotten_with_the_old_ones() {
    let options = TopicOptions {
        retention_ms: Some(1000),
        ..TopicOptions::default()
    };
    let fixture = Fixture::with_topic(4000, "t", options);
    fixture.store(&events(5));
    fixture.clock.advance(5000);
    let mut commit = fixture.log.append(&events(3).batch());
    fixture.log.maintain().expect("maintenance");
    fixture.log.commit_now();
    answer_of(&mut commit)
        .expect("an answer")
        .expect("a commit");
    assert_eq!(fixture.seqs("t"), [6, 7, 8]);
}

#[test]
fn a_topic_made_again_meanwhile_is_not_trimmed_for_the_old_one() {
    let options = TopicOptions {
        max_events: Some(2),
        ..TopicOptions::default()
    };
    let fixture = Fixture::with_topic(4000, "t", options);
    fixture.store(&events(5));
    let again = Plan {
        changes: vec![
            Change::DeleteTopic { topic: "t".into() },
            Change::PutTopic {
                topic: "t".into(),
                options: TopicOptions::default(),
                if_exists: IfExists::Replace,
            },
        ],
        ..events(3)
    };
    let mut commit = fixture.log.append(&again.batch());
    fixture.log.maintain().expect("maintenance");
    fixture.log.commit_now();
    answer_of(&mut commit)
        .expect("an answer")
        .expect("a commit");
    assert_eq!(fixture.seqs("t"), [1, 2, 3]);
}

#[test]
fn a_busy_log_forgets_too() {
    let clock = Arc::new(ManualClock::at(START_MS));
    let interval_ms = 3_600_000;
    let options = LogOptions {
        threads: true,
        // Nobody wakes maintenance but the segments that are full.
        maintain_interval_ms: interval_ms,
        ..options(&clock, 2000)
    };
    let (log, _) = Log::open(Arc::new(FaultFiles::new()), options).expect("a log");
    let few = TopicOptions {
        max_events: Some(10),
        ..TopicOptions::default()
    };
    let commit = log.append(&Plan::topic("t", few).batch());
    commit.wait().expect("a topic");
    let mut rounds = 0;
    while log.topic("t").expect("a topic").first_seq == 1 {
        clock.advance(interval_ms);
        let commit = log.append(&events(10).batch());
        commit.wait().expect("a commit");
        rounds += 1;
        assert!(rounds < 20_000, "nothing is ever forgotten");
    }
}
