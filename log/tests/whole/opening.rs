//! What opening makes of what a crash or an operator left.

use crate::fixture::{Fixture, START_MS, options};
use crate::plan::{Plan, PlannedEvent, answer_of};
use crate::seeds;
use prombus_log::fault::FaultFiles;
use prombus_log::{Files, Log, verify};
use prombus_store::{
    Change, CommitError, DamageKind, EventOutcome, Expect, ManualClock, TopicOptions,
};
use std::sync::Arc;

fn put(key: &str, value: String) -> Plan {
    Plan {
        changes: vec![Change::Put {
            key: key.into(),
            value: value.into_bytes().into(),
            expect: Expect::Any,
        }],
        ..Plan::default()
    }
}

fn padded(topic: &str, count: usize) -> Plan {
    let payload = |at: usize| format!(r#""{at} {}""#, "x".repeat(150));
    Plan::events((0..count).map(|at| PlannedEvent::new(topic, payload(at))))
}

#[test]
fn a_new_log_survives_a_crash_at_any_moment_of_its_making() {
    seeds::run(300, |seed| {
        let clock = Arc::new(ManualClock::at(START_MS));
        for stop_after in 0..24 {
            let disk = Arc::new(FaultFiles::new());
            disk.stop_after(stop_after);
            let is_open = Log::open(disk.clone(), options(&clock, 1000)).is_ok();
            assert!(stop_after < 23 || is_open, "a log is made in few steps");
            let left = Arc::new(disk.crash(seed));
            Log::open(left, options(&clock, 1000)).expect("it opens");
        }
    });
}

#[test]
fn what_was_deleted_stays_so_when_the_segment_that_says_it_is_gone() {
    let mut fixture = Fixture::with_topic(2000, "t", TopicOptions::default());
    fixture
        .commit(&Plan::topic("old", TopicOptions::default()))
        .expect("a topic");
    fixture.commit(&put("old", "1".into())).expect("a record");
    fixture.commit(&padded("t", 20)).expect("a sealed segment");
    fixture.log.maintain().expect("maintenance");
    let delete = Plan {
        changes: vec![
            Change::Delete {
                key: "old".into(),
                expect: Expect::Any,
            },
            Change::DeleteTopic {
                topic: "old".into(),
            },
        ],
        ..Plan::default()
    };
    fixture.commit(&delete).expect("a deletion");
    for round in 0..4 {
        let value = format!("{round}{}", "v".repeat(1000));
        fixture.commit(&put("new", value)).expect("a record");
    }
    fixture.log.maintain().expect("maintenance");
    for crashed in [false, true] {
        if crashed {
            fixture.open_on(fixture.disk.crash(1))
        } else {
            fixture.reopen()
        };
        assert_eq!(fixture.log.get("old"), None, "crashed: {crashed}");
        assert!(fixture.log.topic("old").is_none(), "crashed: {crashed}");
        assert!(fixture.log.get("new").is_some());
    }
}

#[test]
fn a_log_without_its_last_segment_goes_on_behind_all_that_were_merged() {
    let mut fixture = Fixture::with_topic(2000, "t", TopicOptions::default());
    fixture
        .commit(&Plan::topic("short", TopicOptions::default()))
        .expect("a topic");
    for _ in 0..6 {
        fixture.commit(&padded("short", 9)).expect("a full segment");
        fixture.commit(&padded("t", 1)).expect("one that stays");
    }
    let trim = Change::Trim {
        topic: "short".into(),
        first_seq: 1000,
    };
    fixture
        .commit(&Plan {
            changes: vec![trim],
            ..Plan::default()
        })
        .expect("a trim");
    for _ in 0..2 {
        fixture.log.maintain().expect("maintenance");
        fixture.log.commit_now();
    }
    fixture.log.close().expect("it closes");
    let disk = fixture.disk.process_crash();
    let names = disk.list().expect("names");
    let last = names.iter().filter(|name| name.ends_with(".seg")).max();
    disk.remove(last.expect("a segment")).expect("a removal");
    let report = fixture.open_on(disk);
    assert!(!report.damage.is_empty(), "a segment is missing");
    let before = fixture.seqs("t");
    assert!(!before.is_empty());
    fixture.store(&padded("t", 1));
    let after = fixture.seqs("t");
    assert_eq!(after.len(), before.len() + 1);
    fixture.open_on(fixture.disk.process_crash());
    assert_eq!(fixture.seqs("t"), after);
}

/// After a failed sync the system may take what it could not write for written: a later sync says nothing about it.
#[test]
fn what_a_failed_sync_left_is_safe_once_the_log_was_opened_again_also_in_a_crash() {
    seeds::run(100, |seed| {
        let mut fixture = Fixture::with_topic(20_000, "t", TopicOptions::default());
        fixture.store(&padded("t", 3));
        fixture.disk.fail_sync_after(1);
        let event = PlannedEvent::new("t", format!(r#""{}""#, "x".repeat(3000))).with_id("own");
        let failed = fixture.commit(&Plan::events([event.clone()]));
        assert!(matches!(failed, Err(CommitError::StoreFailed(_))));
        fixture.open_on(fixture.disk.process_crash());
        let receipt = fixture.commit(&Plan::events([event])).expect("a commit");
        assert!(matches!(receipt.events[0], EventOutcome::Duplicate(_)));
        let report = fixture.open_on(fixture.disk.crash(seed));
        assert_eq!(report.damage, Vec::<String>::new());
        assert_eq!(fixture.seqs("t"), [1, 2, 3, 4]);
    });
}

#[test]
fn closing_says_so_when_the_last_commit_fails() {
    let mut fixture = Fixture::with_topic(20_000, "t", TopicOptions::default());
    fixture.store(&padded("t", 1));
    let mut commit = fixture.log.append(&padded("t", 1).batch());
    fixture.disk.fail_sync_after(1);
    let closed = fixture.log.close();
    assert!(
        matches!(closed, Err(CommitError::StoreFailed(_))),
        "{closed:?}"
    );
    let answer = answer_of(&mut commit).expect("an answer");
    assert!(matches!(answer, Err(CommitError::StoreFailed(_))));
    let report = fixture.open_on(fixture.disk.crash(0));
    assert_eq!(report.damage, Vec::<String>::new());
    assert_eq!(fixture.seqs("t")[0], 1);
}

#[test]
fn what_was_begun_and_not_finished_is_cleaned_up() {
    let mut fixture = Fixture::with_topic(2000, "t", TopicOptions::default());
    fixture.store(&padded("t", 20));
    fixture.log.maintain().expect("maintenance");
    let names = fixture.disk.list().expect("names");
    let unfinished = [
        "0000000000000001.seg.new",
        "0000000000000001.idx.new",
        "00000000000000aa.idx",
    ];
    for name in unfinished {
        fixture.disk.create(name).expect("a file");
    }
    fixture.disk.create("notes.new").expect("someone's file");
    // An index without its segment is the last trace of it.
    let report = fixture.open_on(fixture.disk.process_crash());
    assert_eq!(report.damage.len(), 1, "{report:?}");
    assert_eq!(report.damage[0].kind, DamageKind::OrphanIndex);
    let mut left = fixture.disk.list().expect("names");
    left.retain(|name| name != "notes.new" && !name.starts_with("damaged-00000000000000aa."));
    assert_eq!(left, names);
    assert_eq!(fixture.seqs("t").len(), 20);
    assert!(fixture.disk.bytes_of("notes.new").is_ok());
}

#[test]
fn room_that_was_made_ahead_is_no_torn_tail_and_no_damage() {
    let segment_bytes = 4000;
    let fixture = Fixture::with_topic(segment_bytes, "t", TopicOptions::default());
    fixture.commit(&padded("t", 2)).expect("a commit");
    let name = "0000000000000001.seg";
    let bytes_of = |disk: &FaultFiles| disk.bytes_of(name).expect("a segment");
    let with_room = bytes_of(&fixture.disk);
    assert_eq!(with_room.len() as u64, segment_bytes);
    assert!(with_room.ends_with(&[0; 1000]));

    let crashed = Arc::new(fixture.disk.process_crash());
    assert_eq!(verify(crashed.clone()).expect("a check").torn_tail_bytes, 0);
    let (log, report) =
        Log::open(crashed.clone(), options(&fixture.clock, segment_bytes)).expect("it opens");
    assert_eq!(report, Default::default());
    assert_eq!(log.tail_seq("t"), 2);
    let used = bytes_of(&crashed).len();
    assert!(used < 1500, "{used} bytes are left of the room");

    log.close().expect("it closes");
    assert_eq!(bytes_of(&crashed), with_room[..used]);
}

#[test]
fn a_torn_tail_in_the_room_is_cut_without_the_room() {
    let fixture = Fixture::with_topic(4000, "t", TopicOptions::default());
    fixture.commit(&padded("t", 2)).expect("a commit");
    let name = "0000000000000001.seg";
    let opened = Arc::new(fixture.disk.process_crash());
    drop(Log::open(opened.clone(), options(&fixture.clock, 4000)).expect("it opens"));
    let disk = Arc::new(opened.process_crash());
    let end = disk.bytes_of(name).expect("a segment").len() as u64;
    // The beginning of a record that never came whole, and room behind it.
    let file = disk.open(name).expect("a segment");
    file.write_at(&[200, 0, 0, 0, 1, 2, 3, 4, 1, 1], end)
        .expect("a write");
    file.write_at(&[0; 500], end + 10).expect("a write");
    let (log, report) = Log::open(disk, options(&fixture.clock, 4000)).expect("it opens");
    assert_eq!(report.damage, Vec::<String>::new());
    assert_eq!(report.cut_tail.expect("a cut tail").bytes, 10);
    assert_eq!(log.tail_seq("t"), 2);
}
