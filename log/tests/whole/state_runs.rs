//! Topics and keyed records are written when they change, not with every segment, and what is lost of them is told.

use crate::fixture::Fixture;
use crate::plan::{Plan, PlannedEvent};
use prombus_log::{Files, LogStats, verify};
use prombus_store::{Change, Durability, Expect, IfExists, TopicOptions};
use std::sync::Arc;

const STATE: &str = ".state";

fn os() -> TopicOptions {
    TopicOptions {
        durability: Durability::Os,
        ..TopicOptions::default()
    }
}

fn put(key: impl std::fmt::Display, value: &str) -> Change {
    Change::Put {
        key: key.to_string().into(),
        value: value.as_bytes().into(),
        expect: Expect::Any,
    }
}

fn changes(changes: impl IntoIterator<Item = Change>) -> Plan {
    Plan {
        changes: changes.into_iter().collect(),
        ..Plan::default()
    }
}

fn state_files(fixture: &Fixture) -> Vec<String> {
    let names = fixture.disk.list().expect("names").into_iter();
    let mut names: Vec<String> = names.filter(|name| name.ends_with(STATE)).collect();
    names.sort();
    names
}

/// Bytes written for the active and the state, for each byte of records appended.
fn amplification(before: &LogStats, after: &LogStats) -> f64 {
    let written = after.active_bytes + after.state_bytes - before.active_bytes - before.state_bytes;
    written as f64 / (after.appended_bytes - before.appended_bytes) as f64
}

/// With many topics and groups, publishing and acknowledging writes little more than what is appended.
#[test]
#[allow(clippy::print_stdout, reason = "the figure is what the test is for")]
fn state_is_not_written_with_every_segment() {
    const MANY: usize = 20_000;
    const ROUNDS: usize = 60;
    let fixture = Fixture::new(1 << 20);
    for part in 0..20 {
        let range = part * MANY / 20..(part + 1) * MANY / 20;
        let topics = range.clone().map(|at| Change::PutTopic {
            topic: format!("topic.{at}").into(),
            options: os(),
            if_exists: IfExists::Replace,
        });
        let groups = range.map(|at| put(format!("group/topic.{at}/g"), &"c".repeat(120)));
        fixture
            .commit(&changes(topics.chain(groups)))
            .expect("a commit");
        fixture.log.maintain().expect("maintenance");
    }
    let before = fixture.log.stats();
    for round in 0..ROUNDS {
        let mut plan = Plan::events((0..500).map(|at| {
            let topic = format!("topic.{}", at % 50);
            PlannedEvent::new(&topic, format!("{:?}", "p".repeat(400)))
        }));
        let active = (0..50).map(|at| put(format!("group/topic.{at}/g"), &round.to_string()));
        plan.changes.extend(active);
        fixture.commit(&plan).expect("a commit");
        fixture.log.maintain().expect("maintenance");
    }
    let after = fixture.log.stats();
    let ratio = amplification(&before, &after);
    println!("active and state: {ratio:.3} bytes written for each appended; {after:?}");
    assert!(after.appended_bytes - before.appended_bytes > 10 << 20);
    assert!(ratio < 1.2, "{ratio}");
    assert!(
        state_files(&fixture).len() < 20,
        "{:?}",
        state_files(&fixture)
    );
}

/// A log with several state runs, some merged, and a deleted record and topic in them.
fn filled() -> Fixture {
    let fixture = Fixture::with_topic(1500, "t", TopicOptions::default());
    for round in 0..14 {
        let topic = format!("made.{}", round % 3);
        let delete = Change::DeleteTopic {
            topic: topic.as_str().into(),
        };
        let make = Change::PutTopic {
            topic: topic.as_str().into(),
            options: os(),
            if_exists: IfExists::Replace,
        };
        let mut plan = changes([delete, make, put("same", &round.to_string())]);
        plan.changes.push(put(format!("own.{round}"), "x"));
        plan.changes.push(Change::Delete {
            key: format!("own.{}", round.max(3) - 3).into(),
            expect: Expect::Any,
        });
        let pad = format!("{:?}", "p".repeat(300));
        plan.events = (0..4)
            .map(|_| PlannedEvent::new("t", pad.clone()))
            .collect();
        plan.events.push(PlannedEvent::new(&topic, pad));
        fixture.commit(&plan).expect("a commit");
        fixture.log.maintain().expect("maintenance");
    }
    fixture
}

#[test]
fn what_was_merged_and_what_was_not_reads_the_same_after_each_start() {
    let mut fixture = filled();
    let keyed = fixture.look().keyed;
    let infos = fixture.log.topics();
    assert!(
        state_files(&fixture).len() > 1,
        "{:?}",
        state_files(&fixture)
    );
    for _ in 0..3 {
        let report = fixture.reopen();
        assert_eq!(report.damage, Vec::<String>::new());
        assert_eq!(fixture.look().keyed, keyed);
        assert_eq!(fixture.log.topics(), infos);
        fixture.log.maintain().expect("maintenance");
    }
    let placed = fixture.store(&Plan::events([PlannedEvent::new("t", "1")]));
    assert_eq!(placed[0].seq, 57, "positions go on");
}

#[test]
fn a_missing_run_is_named_and_everything_else_is_there() {
    let sound = filled();
    let names = state_files(&sound);
    for name in &names {
        let mut fixture = filled();
        fixture.log.close().expect("it closes");
        let disk = fixture.disk.process_crash();
        disk.remove(name).expect("the run is there");
        let checked = verify(Arc::new(disk.copy())).expect("a check");
        assert!(!checked.damage.is_empty(), "{name}");
        let report = fixture.open_on(disk);
        let number = name.trim_end_matches(STATE);
        let lines: Vec<String> = report.damage.iter().map(ToString::to_string).collect();
        let is_named = |line: &String| line.contains("missing") && line.contains(number);
        assert!(lines.iter().any(is_named), "{name}: {lines:?}");
        assert_eq!(fixture.seqs("t"), sound.seqs("t"), "{name}");
        let placed = fixture.store(&Plan::events([PlannedEvent::new("t", "1")]));
        assert_eq!(placed[0].seq, 57, "{name}");
        let again = fixture.reopen();
        assert_eq!(again.damage, report.damage, "{name}");
    }
}

/// The last events of a topic prove its next position and its clock only as long as they are there.
#[test]
fn positions_and_the_clock_go_on_when_all_events_are_gone() {
    let options = TopicOptions {
        retention_ms: Some(1000),
        ..TopicOptions::default()
    };
    let mut fixture = Fixture::with_topic(1500, "t", options);
    fixture
        .commit(&Plan::topic("other", os()))
        .expect("a topic");
    let pad = format!("{:?}", "p".repeat(300));
    let many = |topic| Plan::events((0..12).map(|_| PlannedEvent::new(topic, pad.clone())));
    let last = fixture.store(&many("t"))[11];
    fixture.clock.advance(5000);
    for _ in 0..4 {
        fixture.commit(&many("other")).expect("a commit");
        fixture.log.maintain().expect("maintenance");
    }
    assert_eq!(fixture.seqs("t"), Vec::<u64>::new());
    fixture.clock.set(last.ts - 400);
    fixture.reopen();
    let placed = fixture.store(&Plan::events([PlannedEvent::new("t", "1")]))[0];
    assert_eq!(placed.seq, last.seq + 1);
    assert!(placed.ts >= last.ts && placed.id.as_str() > last.id.as_str());
}
