//! A log that is opened anew after a write or a sync failed, in the same process and on the same disk: what was
//! acknowledged or shown is there, what nobody was told of is not, and everything goes on.

mod random;

use crate::desk::{Desk, options};
use crate::plan::{Plan, PlannedEvent};
use prombus_log::{
    Change, CommitError, Durability, Expect, Log, LogOptions, OpenError, StoreFailed, TopicOptions,
};

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

fn payloads(desk: &Desk, topic: &str) -> Vec<String> {
    let seen = desk.look();
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

impl Desk {
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
    let mut desk = Desk::with_topic(3000, "t", TopicOptions::default());
    let (mut acknowledged, mut failures) = (Vec::new(), 0);
    for round in 0..60 {
        match round % 20 {
            5 => desk.disk.set_space(desk.disk.total_bytes() + 700),
            15 => desk.disk.clear_faults(),
            _ => {}
        }
        let text = format!("{round} {}", "x".repeat(100));
        let plan = events("t", &[&text]);
        match desk.commit(&plan) {
            Ok(_) => acknowledged.push(text),
            Err(error) => {
                assert!(matches!(error, CommitError::StoreFailed(_)), "{error}");
                failures += 1;
                assert!(desk.log.has_failed());
                desk.open_anew().expect("it opens on a full disk");
            }
        }
        let _ = desk.log.maintain();
        assert_eq!(payloads(&desk, "t"), acknowledged, "round {round}");
    }
    assert!(failures > 5, "{failures}");
    let seqs: Vec<u64> = (1..=acknowledged.len() as u64).collect();
    assert_eq!(desk.seqs("t"), seqs);
    desk.reopen();
    assert_eq!(payloads(&desk, "t"), acknowledged);
}

/// After a failed sync the system may have dropped what was written and say nothing of it. What readers have seen is
/// written again from memory, and what nobody was told of is cut off.
#[test]
fn what_a_failed_sync_left_open_is_settled() {
    for seed in 0..40 {
        let mut desk = Desk::with_topic(3000, "f", TopicOptions::default());
        desk.commit(&Plan::topic("o", os())).expect("a topic");
        desk.commit(&put("k", "1", Expect::Any)).expect("a record");
        let mut shown = desk.log.append(&events("o", &["shown"]).batch());
        desk.log.commit_now();
        let shown = crate::plan::answer_of(&mut shown).expect("an answer");
        shown.expect("it was written");
        desk.disk.fail_sync_after(1);
        assert!(is_store_failed(desk.commit(&events("f", &["unsynced"]))));
        desk.open_anew().expect("it opens");
        assert_eq!(payloads(&desk, "f"), Vec::<String>::new());
        assert_eq!(payloads(&desk, "o"), ["shown"]);
        desk.commit(&put("k", "2", Expect::Version(1)))
            .expect("the version that was seen");
        desk.commit(&events("f", &["again"])).expect("a commit");
        desk.open_on(desk.disk.crash(seed));
        assert_eq!(payloads(&desk, "f"), ["again"], "seed {seed}");
        assert_eq!(payloads(&desk, "o"), ["shown"], "seed {seed}");
    }
}

#[test]
fn a_failure_while_opening_anew_is_tried_again() {
    let mut desk = Desk::with_topic(3000, "t", TopicOptions::default());
    desk.commit(&events("t", &["first"])).expect("a commit");
    desk.disk.fail_sync_after(1);
    assert!(is_store_failed(desk.commit(&events("t", &["lost"]))));
    for _ in 0..3 {
        desk.disk.fail_sync_after(1);
        assert!(desk.open_anew().is_err());
        assert_eq!(payloads(&desk, "t"), ["first"], "reading goes on");
        assert!(is_store_failed(desk.commit(&events("t", &["refused"]))));
    }
    desk.open_anew().expect("it opens");
    desk.commit(&events("t", &["second"])).expect("a commit");
    assert_eq!(payloads(&desk, "t"), ["first", "second"]);
}

/// Versions of keyed records grow while the log is open, though it was opened anew in between.
#[test]
fn a_record_made_again_goes_on_behind_the_deleted_one() {
    let mut desk = Desk::with_topic(3000, "t", TopicOptions::default());
    for _ in 0..4 {
        desk.commit(&put("k", "1", Expect::Any)).expect("a record");
    }
    let delete = Change::Delete {
        key: "k".into(),
        expect: Expect::Version(4),
    };
    desk.commit(&Plan {
        changes: vec![delete],
        ..Plan::default()
    })
    .expect("it is deleted");
    desk.disk.fail_sync_after(1);
    assert!(is_store_failed(desk.commit(&events("t", &["1"]))));
    desk.open_anew().expect("it opens");
    let receipt = desk
        .commit(&put("k", "1", Expect::Absent))
        .expect("a record");
    assert_eq!(receipt.versions, [5]);
}

const RESERVE_BYTES: u64 = 20_000;

/// A log with a reserve on a disk that events have filled, half of them of the topic `old`.
fn full_desk() -> Desk {
    let mut desk = Desk::with_topic(4000, "old", TopicOptions::default());
    desk.log.close().expect("it closes");
    let with_reserve = LogOptions {
        reserve_bytes: RESERVE_BYTES,
        ..options(&desk.clock, desk.segment_bytes)
    };
    let (log, _) = Log::open(desk.disk.clone(), with_reserve).expect("it opens");
    desk.log = log;
    assert!(desk.disk.bytes_of("reserve").expect("a reserve").len() as u64 == RESERVE_BYTES);
    let text = "x".repeat(500);
    for _ in 0..150 {
        desk.commit(&events("old", &[&text])).expect("a commit");
        desk.log.maintain().expect("upkeep");
    }
    desk.commit(&Plan::topic("t", TopicOptions::default()))
        .expect("a topic");
    desk.disk.set_space(desk.disk.total_bytes() + 5000);
    let mut stored = 0;
    while desk.commit(&events("t", &[&text])).is_ok() {
        stored += 1;
        assert!(stored < 100, "the disk never fills");
    }
    desk.open_anew().expect("it opens on a full disk");
    desk
}

#[test]
fn a_full_disk_takes_everything_but_events() {
    let mut desk = full_desk();
    assert!(!desk.log.has_failed());
    let StoreFailed { cause } = desk.log.failure().expect("it is full");
    assert!(cause.starts_with("the disk is full"), "{cause}");
    assert!(desk.disk.bytes_of("reserve").is_err(), "it is given up");
    let before = payloads(&desk, "t");
    assert!(is_store_failed(desk.commit(&events("t", &["refused"]))));
    for version in 0..20 {
        let expect = match version {
            0 => Expect::Absent,
            _ => Expect::Version(version),
        };
        desk.commit(&put("group", "cursor", expect))
            .expect("groups are written down");
    }
    let trim = Change::Trim {
        topic: "t".into(),
        first_seq: 3,
    };
    desk.commit(&Plan {
        changes: vec![trim],
        ..Plan::default()
    })
    .expect("a topic is trimmed");
    desk.log.maintain().expect("upkeep");
    assert!(desk.log.failure().is_some(), "there is no room yet");

    let delete = Change::DeleteTopic {
        topic: "old".into(),
    };
    desk.commit(&Plan {
        changes: vec![delete],
        ..Plan::default()
    })
    .expect("a topic is deleted");
    // The first round frees what the topic had, the next finds room.
    for _ in 0..2 {
        desk.log.maintain().expect("upkeep");
    }
    assert_eq!(desk.log.failure(), None);
    desk.commit(&events("t", &["taken"])).expect("a commit");
    let reserve = desk.disk.bytes_of("reserve").expect("it is taken back");
    assert_eq!(reserve.len() as u64, RESERVE_BYTES);
    let mut expected = before[2..].to_vec();
    expected.push("taken".into());
    assert_eq!(payloads(&desk, "t"), expected);
    desk.reopen();
    assert_eq!(payloads(&desk, "t"), expected);
    let version = desk.log.get("group").map(|record| record.version);
    assert_eq!(version, Some(20));
}

#[test]
fn a_log_starts_on_a_full_disk() {
    let mut desk = full_desk();
    let before = payloads(&desk, "t");
    let disk = desk.disk.process_crash();
    disk.set_space(disk.total_bytes());
    let with_reserve = LogOptions {
        reserve_bytes: RESERVE_BYTES,
        ..options(&desk.clock, desk.segment_bytes)
    };
    desk.disk = std::sync::Arc::new(disk);
    let (log, _) = Log::open(desk.disk.clone(), with_reserve).expect("it opens");
    desk.log = log;
    assert!(desk.log.failure().is_some());
    assert!(is_store_failed(desk.commit(&events("t", &["refused"]))));
    assert_eq!(payloads(&desk, "t"), before);
    desk.disk.clear_faults();
    desk.log.maintain().expect("upkeep");
    desk.commit(&events("t", &["taken"])).expect("a commit");
}
