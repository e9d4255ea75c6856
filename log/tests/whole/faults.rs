//! A disk that fails: the Nth sync, the Nth write, no more space. Whoever waits hears of it, nothing is acknowledged
//! that is not durable, reading goes on, and after a restart publishing works again.

use crate::fixture::Fixture;
use crate::plan::{Plan, PlannedEvent, answer_of};
use prombus_log::OpenReport;
use prombus_log::fault::FaultFiles;
use prombus_store::{Change, CommitError, Durability, EventOutcome, Expect, Receipt, TopicOptions};
use std::collections::BTreeMap;

const ROUNDS: usize = 30;
const FSYNC_TOPIC: &str = "f";
const OS_TOPIC: &str = "o";

#[test]
fn a_failed_sync_is_heard_and_a_crash_loses_nothing_acknowledged() {
    let failed = (1..120).filter(|&nth| play(nth, |disk| disk.fail_sync_after(nth)));
    assert!(failed.count() > 40, "faults were hit");
}

#[test]
fn a_failed_write_is_heard_and_a_crash_loses_nothing_acknowledged() {
    let failed = (1..120).filter(|&nth| play(nth, |disk| disk.fail_write_after(nth)));
    let failed = failed.count();
    assert!(failed > 30, "only {failed} faults were hit");
}

#[test]
fn a_full_disk_is_heard_and_a_crash_loses_nothing_acknowledged() {
    let failed = (0..60).filter(|&step| {
        play(step, |disk| {
            disk.set_space(disk.total_bytes() + step * 97);
        })
    });
    assert!(failed.count() > 40, "the disk was full");
}

/// What was answered with `Ok`.
#[derive(Default)]
struct Acknowledged {
    /// By topic and position: the payload.
    events: BTreeMap<(&'static str, u64), String>,
    /// The value of the keyed record.
    value: usize,
}

/// Publishes until a commit fails, then checks everything, once for each kind of restart; false if none failed.
fn play(seed: u64, arm: impl Fn(&FaultFiles)) -> bool {
    let mut any_failed = false;
    for power_loss in [false, true] {
        let mut fixture = new_desk();
        let mut acknowledged = Acknowledged::default();
        for round in 0..6 {
            let all_well = publish(&fixture, round, &mut acknowledged);
            assert!(all_well, "no fault is set");
            fixture.log.maintain().expect("maintenance");
        }
        arm(&fixture.disk);
        let failed = (6..ROUNDS).find(|&round| {
            // Maintenance may fail too; that harms nobody, and it is tried again.
            let _ = fixture.log.maintain();
            !publish(&fixture, round, &mut acknowledged)
        });
        if let Some(round) = failed {
            check_failed_log(&fixture, round, &acknowledged);
            any_failed = true;
        }
        let report = if power_loss {
            fixture.open_on(fixture.disk.crash(seed))
        } else {
            fixture.open_on(fixture.disk.process_crash())
        };
        check_after_restart(&fixture, &report, power_loss, &acknowledged);
        let mut later = Acknowledged::default();
        assert!(
            publish(&fixture, ROUNDS, &mut later),
            "it takes writes again"
        );
        if power_loss {
            fixture.open_on(fixture.disk.crash(seed));
            check_after_restart(&fixture, &report, power_loss, &later);
        }
    }
    any_failed
}

fn new_desk() -> Fixture {
    let fixture = Fixture::with_topic(1200, FSYNC_TOPIC, TopicOptions::default());
    let options = TopicOptions {
        durability: Durability::Os,
        ..TopicOptions::default()
    };
    fixture
        .commit(&Plan::topic(OS_TOPIC, options))
        .expect("a topic");
    fixture
}

fn payload(topic: &str, round: usize, at: usize) -> String {
    format!(r#""{topic} {round} {at} {}""#, "x".repeat(40))
}

/// Publishes to both topics and to a keyed record; false if a commit failed.
fn publish(fixture: &Fixture, round: usize, acknowledged: &mut Acknowledged) -> bool {
    let events = |topic: &'static str| {
        let planned = (0..2).map(move |at| PlannedEvent::new(topic, payload(topic, round, at)));
        Plan::events(planned)
    };
    let mut keyed = events(FSYNC_TOPIC);
    keyed.atomic = true;
    keyed.changes.push(Change::Put {
        key: "round".into(),
        value: round.to_string().into_bytes().into(),
        expect: Expect::Any,
    });
    let plans = [
        (OS_TOPIC, events(OS_TOPIC)),
        (FSYNC_TOPIC, keyed),
        (OS_TOPIC, events(OS_TOPIC)),
    ];
    let before = fixture.log.list("");
    let mut commits = plans.map(|(topic, plan)| {
        let commit = fixture.log.append(&plan.batch());
        (topic, plan, commit)
    });
    assert!(fixture.log.is_changing("round") && fixture.log.is_any_changing("rou"));
    assert_eq!(fixture.log.list(""), before, "nothing is committed");
    fixture.log.commit_now();
    let mut all_well = fixture.log.failure().is_none();
    for (topic, plan, commit) in &mut commits {
        match answer_of(commit).expect("an answer") {
            Ok(receipt) => acknowledged.take(topic, plan, &receipt, round),
            Err(error) => {
                assert!(matches!(error, CommitError::StoreFailed(_)), "{error}");
                all_well = false;
            }
        }
    }
    all_well
}

impl Acknowledged {
    fn take(&mut self, topic: &'static str, plan: &Plan, receipt: &Receipt, round: usize) {
        for (event, outcome) in plan.events.iter().zip(&receipt.events) {
            let EventOutcome::Stored(placed) = outcome else {
                panic!("{outcome:?}");
            };
            let place = (topic, placed.seq);
            self.events.insert(place, event.payload.clone());
        }
        if !plan.changes.is_empty() {
            self.value = round;
        }
    }
}

/// It refuses to write and goes on reading, also when maintenance is asked for.
fn check_failed_log(fixture: &Fixture, round: usize, acknowledged: &Acknowledged) {
    let failure = fixture.log.failure().expect("a failure");
    let refused = fixture
        .log
        .append(&Plan::events([PlannedEvent::new(OS_TOPIC, "1")]).batch());
    let answer = refused.wait();
    assert_eq!(answer, Err(CommitError::StoreFailed(failure.clone())));
    check_events(fixture, acknowledged, |_| true);
    check_record(fixture, acknowledged);
    for _ in 0..2 {
        let _ = fixture.log.maintain();
        check_events(fixture, acknowledged, |_| true);
    }
    let closed = fixture.log.close();
    assert_eq!(closed, Err(CommitError::StoreFailed(failure)), "in {round}");
}

fn check_after_restart(
    fixture: &Fixture,
    report: &OpenReport,
    power_loss: bool,
    acknowledged: &Acknowledged,
) {
    assert_eq!(report.damage, Vec::<String>::new());
    check_events(fixture, acknowledged, |topic| {
        topic == FSYNC_TOPIC || !power_loss
    });
    let value = fixture.log.get("round").expect("a record").value;
    let value: usize = String::from_utf8_lossy(&value).parse().expect("a number");
    assert!(value >= acknowledged.value);
    // The record and the events of its batch are there together.
    let seqs = fixture.seqs(FSYNC_TOPIC);
    let last = fixture.events(FSYNC_TOPIC).pop().expect("an event");
    assert!(last.contains(&format!(r#""f {value} 1 "#)), "{last}");
    assert_eq!(seqs.len() % 2, 0);
    assert_eq!(fixture.log.damage(), Vec::<String>::new());
}

/// Readers see the record that was acknowledged last, whatever was appended since.
fn check_record(fixture: &Fixture, acknowledged: &Acknowledged) {
    let record = fixture.log.get("round").expect("a record");
    assert_eq!(*record.value, *acknowledged.value.to_string().as_bytes());
    assert_eq!(fixture.log.list(""), [("round".into(), record)]);
}

/// All that was acknowledged is there, as it was published, without gaps.
fn check_events(fixture: &Fixture, acknowledged: &Acknowledged, is_safe: impl Fn(&str) -> bool) {
    let seen = fixture.look();
    for topic in [FSYNC_TOPIC, OS_TOPIC] {
        let events = &seen.topics[topic].events;
        let seqs: Vec<u64> = events.iter().map(|event| event.seq()).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "{topic}");
        let expected = acknowledged.events.iter();
        for ((_, seq), payload) in expected.filter(|((of, _), _)| *of == topic) {
            let event = events.get(*seq as usize - 1);
            assert!(event.is_some() || !is_safe(topic), "{topic} {seq} is gone");
            if let Some(event) = event {
                assert_eq!(event.payload(), payload, "{topic} {seq}");
            }
        }
    }
}

/// What was not synced may not have happened after a crash, so nothing may be thrown away for it.
#[test]
fn upkeep_frees_nothing_for_a_change_that_a_crash_may_undo() {
    for (seed, trim) in (0..20).flat_map(|seed| [(seed, false), (seed, true)]) {
        let mut fixture = Fixture::with_topic(1200, "t", TopicOptions::default());
        for round in 0..10 {
            let events = (0..4).map(|at| PlannedEvent::new("t", payload("t", round, at)));
            fixture.store(&Plan::events(events));
        }
        let before = fixture.events("t");
        let (topic, first_seq) = ("t".into(), 30);
        let change = if trim {
            Change::Trim { topic, first_seq }
        } else {
            Change::DeleteTopic { topic }
        };
        fixture.disk.fail_sync_after(1);
        let failed = fixture.commit(&Plan {
            changes: vec![change],
            ..Plan::default()
        });
        assert!(failed.is_err());
        for _ in 0..3 {
            let _ = fixture.log.maintain();
        }
        fixture.open_on(fixture.disk.crash(seed));
        match fixture.log.topic("t").map(|topic| topic.first_seq) {
            Some(1) => assert_eq!(fixture.events("t"), before, "seed {seed}, trim {trim}"),
            happened => assert_eq!(happened, trim.then_some(first_seq)),
        }
    }
}

/// A key's last event stays until the one that takes its place is safe from a crash.
#[test]
fn compaction_drops_nothing_for_an_event_that_a_crash_may_undo() {
    for seed in 0..20 {
        let options = TopicOptions {
            durability: Durability::Os,
            compaction: true,
            ..TopicOptions::default()
        };
        let mut fixture = Fixture::with_topic(1200, OS_TOPIC, options);
        let event = |round: usize, key: usize| {
            let key = format!("key{key}");
            PlannedEvent::new(OS_TOPIC, payload(OS_TOPIC, round, 0)).with_key(key)
        };
        for round in 0..4 {
            fixture.store(&Plan::events((0..6).map(|key| event(round, key))));
        }
        fixture.disk.fail_sync_after(1);
        let mut commit = fixture
            .log
            .append(&Plan::events((0..6).map(|key| event(9, key))).batch());
        fixture.log.commit_now();
        let answer = answer_of(&mut commit).expect("an answer");
        assert!(answer.is_ok(), "it was written: {answer:?}");
        for _ in 0..3 {
            let _ = fixture.log.maintain();
        }
        fixture.open_on(fixture.disk.crash(seed));
        for key in 0..6 {
            let latest = fixture.log.latest(OS_TOPIC, &format!("key{key}"));
            assert!(latest.expect("a look-up").is_some(), "key{key} is gone");
        }
    }
}
