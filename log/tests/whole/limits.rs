//! What the format cannot hold is refused when it is appended, never written.

use crate::fixture::{Fixture, options};
use crate::plan::{Plan, PlannedEvent, answer_of};
use prombus_log::fault::FaultFiles;
use prombus_log::{Log, LogOptions};
use prombus_store::{CommitError, LimitReached, ManualClock, TopicOptions};
use std::sync::Arc;

const MAX_RECORD_BYTES: usize = 64 << 20;

/// Readers take a longer record for damage, so it would be acknowledged and lost.
#[test]
fn a_record_over_the_limit_is_refused() {
    let mut fixture = Fixture::with_topic(4000, "t", TopicOptions::default());
    let writes = fixture.disk.writes();
    let huge = format!("{:?}", "x".repeat(MAX_RECORD_BYTES));
    for atomic in [false, true] {
        let events = ["1".to_owned(), huge.clone()].map(|text| PlannedEvent::new("t", text));
        let plan = Plan {
            atomic,
            ..Plan::events(events)
        };
        let refused = fixture.commit(&plan);
        assert_eq!(refused, limit("max_record_bytes", MAX_RECORD_BYTES));
    }
    assert_eq!(fixture.disk.writes(), writes, "nothing is written");
    let placed = fixture.store(&Plan::events([PlannedEvent::new("t", "2")]));
    assert_eq!(placed[0].seq, 1);
    let report = fixture.reopen();
    assert_eq!(report.damage, Vec::<String>::new());
    assert_eq!(fixture.seqs("t"), [1]);
}

/// A batch goes into one segment, so it may not be larger than what may wait to be written.
#[test]
fn a_batch_over_what_may_wait_is_refused() {
    let (disk, clock) = (Arc::new(FaultFiles::new()), Arc::new(ManualClock::at(1)));
    let options = LogOptions {
        max_pending_bytes: 20_000,
        ..options(&clock, 4000)
    };
    let (log, _) = Log::open(disk, options).expect("a log");
    let commit = |plan: &Plan| {
        let mut commit = log.append(&plan.batch());
        log.commit_now();
        answer_of(&mut commit).expect("an answer")
    };
    commit(&Plan::topic("t", TopicOptions::default())).expect("a topic");
    let events = |count: usize| {
        let payload = format!("{:?}", "x".repeat(1000));
        Plan::events((0..count).map(|_| PlannedEvent::new("t", payload.clone())))
    };
    assert_eq!(commit(&events(20)), limit("max_pending_bytes", 20_000));
    let attributes = "x".repeat(20_000);
    let topic = TopicOptions {
        attributes,
        ..TopicOptions::default()
    };
    let refused = commit(&Plan::topic("u", topic));
    assert_eq!(refused, limit("max_pending_bytes", 20_000));
    let stored = commit(&events(10)).expect("it fits");
    assert_eq!(stored.events.len(), 10);
    assert_eq!(log.tail_seq("t"), 10);
}

#[test]
fn options_beyond_the_format_are_refused() {
    for (name, options) in [
        (
            "segment_bytes",
            LogOptions {
                segment_bytes: u64::from(u32::MAX) - 10,
                ..LogOptions::default()
            },
        ),
        (
            "max_pending_bytes",
            LogOptions {
                max_pending_bytes: 4 << 30,
                ..LogOptions::default()
            },
        ),
        (
            "max_keyed_bytes",
            LogOptions {
                max_keyed_bytes: 4 << 30,
                ..LogOptions::default()
            },
        ),
    ] {
        let refused = Log::open(Arc::new(FaultFiles::new()), options).err();
        let refused = refused.expect("it is refused").to_string();
        assert!(
            refused.starts_with(&format!("{name} may be at most ")),
            "{refused}"
        );
    }
}

fn limit<T>(name: &'static str, limit: usize) -> Result<T, CommitError> {
    let limit = limit as u64;
    Err(CommitError::LimitReached(LimitReached { name, limit }))
}
