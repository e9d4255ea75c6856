//! A log that is opened anew after a write or a sync failed, in the same process and on the same disk: what was
//! acknowledged or shown is there, what nobody was told of is not, and everything goes on.

mod random;

use crate::fixture::{Fixture, options};
use crate::plan::{Plan, PlannedEvent};
use prombus_log::{Log, LogOptions, OpenError};
use prombus_store::{Change, CommitError, Durability, Expect, StoreFailed, TopicOptions};

fn events(topic: &str, texts: &[&str]) -> Plan {
    let spelled = texts.iter().map(|text| format!("{text:?}"));
    Plan::events(spelled.map(|payload| PlannedEvent::new(topic, payload)))
}

fn put(key: &str, value: &str, expect: Expect) -> Plan {
    Plan {
        changes: vec![Change::Put {
            key: key.into(),
            value: value.as_bytes().into(),
            expect,
        }],
        ..Plan::default()
    }
}

fn payloads(fixture: &Fixture, topic: &str) -> Vec<String> {
    let seen = fixture.look();
    let events = seen.topics[topic].events.iter();
    events
        .map(|event| event.payload().trim_matches('"').to_owned())
        .collect()
}

fn os() -> TopicOptions {
    TopicOptions {
        durability: Durability::Os,
        ..TopicOptions::default()
    }
}

impl Fixture {
    /// Opens the log anew underneath, as a store does.
    fn open_anew(&mut self) -> Result<(), OpenError> {
        let _ = self.log.close();
        let (log, report) = Log::open_after(&self.log, self.disk.clone())?;
        assert_eq!(report.damage, Vec::<String>::new());
        self.log = log;
        Ok(())
    }
}

fn is_store_failed<T>(outcome: Result<T, CommitError>) -> bool {
    matches!(outcome, Err(CommitError::StoreFailed(_)))
}

#[test]
fn a_log_goes_on_once_a_full_disk_has_room() {
    let mut fixture = Fixture::with_topic(3000, "t", TopicOptions::default());
    let (mut acknowledged, mut failures) = (Vec::new(), 0);
    for round in 0..60 {
        match round % 20 {
            5 => fixture.disk.set_space(fixture.disk.total_bytes() + 700),
            15 => fixture.disk.clear_faults(),
            _ => {}
        }
        let text = format!("{round} {}", "x".repeat(100));
        let plan = events("t", &[&text]);
        match fixture.commit(&plan) {
            Ok(_) => acknowledged.push(text),
            Err(error) => {
                assert!(matches!(error, CommitError::StoreFailed(_)), "{error}");
                failures += 1;
                assert!(fixture.log.has_failed());
                fixture.open_anew().expect("it opens on a full disk");
            }
        }
        let _ = fixture.log.maintain();
        assert_eq!(payloads(&fixture, "t"), acknowledged, "round {round}");
    }
    assert!(failures > 5, "{failures}");
    let seqs: Vec<u64> = (1..=acknowledged.len() as u64).collect();
    assert_eq!(fixture.seqs("t"), seqs);
    fixture.reopen();
    assert_eq!(payloads(&fixture, "t"), acknowledged);
}

/// After a failed sync the system may have dropped what was written and say nothing of it. What readers have seen is
/// written again from memory, and what nobody was told of is cut off.
#[test]
fn what_a_failed_sync_left_open_is_settled() {
    for seed in 0..40 {
        let mut fixture = Fixture::with_topic(3000, "f", TopicOptions::default());
        fixture.commit(&Plan::topic("o", os())).expect("a topic");
        fixture
            .commit(&put("k", "1", Expect::Any))
            .expect("a record");
        let mut shown = fixture.log.append(&events("o", &["shown"]).batch());
        fixture.log.commit_now();
        let shown = crate::plan::answer_of(&mut shown).expect("an answer");
        shown.expect("it was written");
        fixture.disk.fail_sync_after(1);
        assert!(is_store_failed(fixture.commit(&events("f", &["unsynced"]))));
        fixture.open_anew().expect("it opens");
        assert_eq!(payloads(&fixture, "f"), Vec::<String>::new());
        assert_eq!(payloads(&fixture, "o"), ["shown"]);
        fixture
            .commit(&put("k", "2", Expect::Version(1)))
            .expect("the version that was seen");
        fixture.commit(&events("f", &["again"])).expect("a commit");
        fixture.open_on(fixture.disk.crash(seed));
        assert_eq!(payloads(&fixture, "f"), ["again"], "seed {seed}");
        assert_eq!(payloads(&fixture, "o"), ["shown"], "seed {seed}");
    }
}

#[test]
fn a_failure_while_opening_anew_is_tried_again() {
    let mut fixture = Fixture::with_topic(3000, "t", TopicOptions::default());
    fixture.commit(&events("t", &["first"])).expect("a commit");
    fixture.disk.fail_sync_after(1);
    assert!(is_store_failed(fixture.commit(&events("t", &["lost"]))));
    for _ in 0..3 {
        fixture.disk.fail_sync_after(1);
        assert!(fixture.open_anew().is_err());
        assert_eq!(payloads(&fixture, "t"), ["first"], "reading goes on");
        assert!(is_store_failed(fixture.commit(&events("t", &["refused"]))));
    }
    fixture.open_anew().expect("it opens");
    fixture.commit(&events("t", &["second"])).expect("a commit");
    assert_eq!(payloads(&fixture, "t"), ["first", "second"]);
}

/// Versions of keyed records grow while the log is open, though it was opened anew in between.
#[test]
fn a_record_made_again_goes_on_behind_the_deleted_one() {
    let mut fixture = Fixture::with_topic(3000, "t", TopicOptions::default());
    for _ in 0..4 {
        fixture
            .commit(&put("k", "1", Expect::Any))
            .expect("a record");
    }
    let delete = Change::Delete {
        key: "k".into(),
        expect: Expect::Version(4),
    };
    fixture
        .commit(&Plan {
            changes: vec![delete],
            ..Plan::default()
        })
        .expect("it is deleted");
    fixture.disk.fail_sync_after(1);
    assert!(is_store_failed(fixture.commit(&events("t", &["1"]))));
    fixture.open_anew().expect("it opens");
    let receipt = fixture
        .commit(&put("k", "1", Expect::Absent))
        .expect("a record");
    assert_eq!(receipt.versions, [5]);
}

const RESERVE_BYTES: u64 = 20_000;

/// A log with a reserve on a disk that events have filled, half of them of the topic `old`.
fn full_desk() -> Fixture {
    let mut fixture = Fixture::with_topic(4000, "old", TopicOptions::default());
    fixture.log.close().expect("it closes");
    let with_reserve = LogOptions {
        reserve_bytes: RESERVE_BYTES,
        ..options(&fixture.clock, fixture.segment_bytes)
    };
    let (log, _) = Log::open(fixture.disk.clone(), with_reserve).expect("it opens");
    fixture.log = log;
    assert!(fixture.disk.bytes_of("reserve").expect("a reserve").len() as u64 == RESERVE_BYTES);
    let text = "x".repeat(500);
    for _ in 0..150 {
        fixture.commit(&events("old", &[&text])).expect("a commit");
        fixture.log.maintain().expect("maintenance");
    }
    fixture
        .commit(&Plan::topic("t", TopicOptions::default()))
        .expect("a topic");
    fixture.disk.set_space(fixture.disk.total_bytes() + 5000);
    let mut stored = 0;
    while fixture.commit(&events("t", &[&text])).is_ok() {
        stored += 1;
        assert!(stored < 100, "the disk never fills");
    }
    fixture.open_anew().expect("it opens on a full disk");
    fixture
}

#[test]
fn a_full_disk_takes_everything_but_events() {
    let mut fixture = full_desk();
    assert!(!fixture.log.has_failed());
    let StoreFailed { cause } = fixture.log.failure().expect("it is full");
    assert!(cause.starts_with("the disk is full"), "{cause}");
    assert!(fixture.disk.bytes_of("reserve").is_err(), "it is given up");
    let before = payloads(&fixture, "t");
    assert!(is_store_failed(fixture.commit(&events("t", &["refused"]))));
    for version in 0..20 {
        let expect = match version {
            0 => Expect::Absent,
            _ => Expect::Version(version),
        };
        fixture
            .commit(&put("group", "cursor", expect))
            .expect("groups are written down");
    }
    let trim = Change::Trim {
        topic: "t".into(),
        first_seq: 3,
    };
    fixture
        .commit(&Plan {
            changes: vec![trim],
            ..Plan::default()
        })
        .expect("a topic is trimmed");
    fixture.log.maintain().expect("maintenance");
    assert!(fixture.log.failure().is_some(), "there is no room yet");

    let delete = Change::DeleteTopic {
        topic: "old".into(),
    };
    fixture
        .commit(&Plan {
            changes: vec![delete],
            ..Plan::default()
        })
        .expect("a topic is deleted");
    // The first round frees what the topic had, the next finds room.
    for _ in 0..2 {
        fixture.log.maintain().expect("maintenance");
    }
    assert_eq!(fixture.log.failure(), None);
    fixture.commit(&events("t", &["taken"])).expect("a commit");
    let reserve = fixture.disk.bytes_of("reserve").expect("it is taken back");
    assert_eq!(reserve.len() as u64, RESERVE_BYTES);
    let mut expected = before[2..].to_vec();
    expected.push("taken".into());
    assert_eq!(payloads(&fixture, "t"), expected);
    fixture.reopen();
    assert_eq!(payloads(&fixture, "t"), expected);
    let version = fixture.log.get("group").map(|record| record.version);
    assert_eq!(version, Some(20));
}

#[test]
fn a_log_starts_on_a_full_disk() {
    let mut fixture = full_desk();
    let before = payloads(&fixture, "t");
    let disk = fixture.disk.process_crash();
    disk.set_space(disk.total_bytes());
    let with_reserve = LogOptions {
        reserve_bytes: RESERVE_BYTES,
        ..options(&fixture.clock, fixture.segment_bytes)
    };
    fixture.disk = std::sync::Arc::new(disk);
    let (log, _) = Log::open(fixture.disk.clone(), with_reserve).expect("it opens");
    fixture.log = log;
    assert!(fixture.log.failure().is_some());
    assert!(is_store_failed(fixture.commit(&events("t", &["refused"]))));
    assert_eq!(payloads(&fixture, "t"), before);
    fixture.disk.clear_faults();
    fixture.log.maintain().expect("maintenance");
    fixture.commit(&events("t", &["taken"])).expect("a commit");
}
