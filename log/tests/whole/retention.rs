//! Retention and compaction take only what they may, whatever is on its way meanwhile.

use crate::desk::Desk;
use crate::plan::{Plan, PlannedEvent, answer_of};
use prombus_log::{Change, TopicOptions};

fn events(count: usize) -> Plan {
    Plan::events((0..count).map(|at| PlannedEvent::new("t", at.to_string())))
}

#[test]
fn events_on_their_way_are_not_forgotten_with_the_old_ones() {
    let options = TopicOptions {
        retention_ms: Some(1000),
        ..TopicOptions::default()
    };
    let desk = Desk::with_topic(4000, "t", options);
    desk.store(&events(5));
    desk.clock.advance(5000);
    let mut commit = desk.log.append(&events(3).batch());
    desk.log.maintain().expect("upkeep");
    desk.log.commit_now();
    answer_of(&mut commit)
        .expect("an answer")
        .expect("a commit");
    assert_eq!(desk.seqs("t"), [6, 7, 8]);
}

#[test]
fn a_topic_made_again_meanwhile_is_not_trimmed_for_the_old_one() {
    let options = TopicOptions {
        max_events: Some(2),
        ..TopicOptions::default()
    };
    let desk = Desk::with_topic(4000, "t", options);
    desk.store(&events(5));
    let again = Plan {
        changes: vec![
            Change::DeleteTopic { topic: "t".into() },
            Change::PutTopic {
                topic: "t".into(),
                options: TopicOptions::default(),
            },
        ],
        ..events(3)
    };
    let mut commit = desk.log.append(&again.batch());
    desk.log.maintain().expect("upkeep");
    desk.log.commit_now();
    answer_of(&mut commit)
        .expect("an answer")
        .expect("a commit");
    assert_eq!(desk.seqs("t"), [1, 2, 3]);
}
