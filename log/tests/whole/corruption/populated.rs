//! A log with a bit of everything: grouped and single-topic segments, compacted and trimmed topics, keyed records, and a
//! tail that is not sealed.

use crate::fixture::{START_MS, options};
use crate::plan::{Plan, PlannedEvent, answer_of};
use crate::reading::{Seen, look};
use prombus_log::fault::FaultFiles;
use prombus_log::{Files, Log, LogOptions};
use prombus_store::conformance::Random;
use prombus_store::{Change, Durability, Expect, ManualClock, TopicOptions};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const SEGMENT_BYTES: u64 = 3000;
const ROUNDS: usize = 60;

/// A log at rest.
pub(super) struct Populated {
    pub(super) disk: FaultFiles,
    pub(super) log_id: u64,
    /// What it shows.
    pub(super) seen: Seen,
    /// The JSON of all events that were ever stored, by topic and position: what was trimmed may come back.
    pub(super) ever: BTreeMap<(String, u64), String>,
    pub(super) is_closed: bool,
    /// The segment that was being written.
    pub(super) active: String,
}

/// The options of a log with this identity.
pub(super) fn log_options(log_id: u64) -> LogOptions {
    let clock = Arc::new(ManualClock::at(START_MS));
    LogOptions {
        log_id: Some(log_id),
        ..options(&clock, SEGMENT_BYTES)
    }
}

impl Populated {
    pub(super) fn closed(log_id: u64) -> Self {
        let (log, disk, ever) = fill(log_id);
        log.close().expect("it closes");
        Self::at_rest(&log, &disk, ever, log_id, true)
    }

    /// As a killed process leaves it.
    pub(super) fn killed(log_id: u64) -> Self {
        let (log, disk, ever) = fill(log_id);
        Self::at_rest(&log, &disk, ever, log_id, false)
    }

    fn at_rest(
        log: &Log,
        disk: &FaultFiles,
        ever: BTreeMap<(String, u64), String>,
        log_id: u64,
        is_closed: bool,
    ) -> Self {
        let mut populated = Self {
            disk: disk.copy(),
            log_id,
            seen: look(log, &mut Random::seeded(1)),
            ever,
            is_closed,
            active: String::new(),
        };
        let segments = populated.names(".seg");
        assert!(segments.len() > 5, "{segments:?}");
        populated.active = segments[segments.len() - 1].clone();
        populated
    }

    /// The names of files of one kind, in order.
    pub(super) fn names(&self, suffix: &str) -> Vec<String> {
        let mut names = self.disk.list().expect("names");
        names.retain(|name| name.ends_with(suffix));
        names.sort();
        names
    }
}

fn fill(log_id: u64) -> (Log, Arc<FaultFiles>, BTreeMap<(String, u64), String>) {
    let disk = Arc::new(FaultFiles::new());
    let (log, _) = Log::open(disk.clone(), log_options(log_id)).expect("a new log");
    let mut ever = BTreeMap::new();
    let mut commit = |plan: &Plan| {
        let mut commit = log.append(&plan.batch());
        log.commit_now();
        answer_of(&mut commit)
            .expect("an answer")
            .expect("a commit");
        for (name, topic) in look(&log, &mut Random::seeded(1)).topics {
            let events = topic.events.iter();
            ever.extend(events.map(|one| ((name.to_string(), one.seq()), one.json().to_owned())));
        }
    };
    for (topic, compaction) in [
        ("plain", false),
        ("keyed", true),
        ("short", false),
        ("gone", false),
    ] {
        let options = TopicOptions {
            compaction,
            durability: if compaction {
                Durability::Os
            } else {
                Durability::Fsync
            },
            ..TopicOptions::default()
        };
        commit(&Plan::topic(topic, options));
    }
    for round in 0..ROUNDS {
        commit(&round_of(round));
        if round % 10 == 9 {
            log.maintain().expect("maintenance");
        }
    }
    let delete = Change::DeleteTopic {
        topic: "gone".into(),
    };
    let trim = Change::Trim {
        topic: "short".into(),
        first_seq: ROUNDS as u64 / 2,
    };
    commit(&Plan {
        changes: vec![delete, trim],
        ..Plan::default()
    });
    // One topic alone has these segments.
    for at in 0..24 {
        let text = format!(r#""alone {at} {}""#, "y".repeat(200));
        commit(&Plan::events([PlannedEvent::new("plain", text)]));
    }
    for _ in 0..2 {
        log.maintain().expect("maintenance");
        log.commit_now();
    }
    for round in 0..2 {
        commit(&round_of(ROUNDS + round));
    }
    (log, disk, ever)
}

fn round_of(round: usize) -> Plan {
    let topics = ["plain", "keyed", "short", "gone"];
    let topics = &topics[..if round < ROUNDS { 4 } else { 3 }];
    let events = topics.iter().map(|topic| {
        let text = format!(r#""{topic} of {round} {}""#, "x".repeat(round % 30));
        let event = PlannedEvent::new(topic, text);
        match *topic {
            "keyed" => event.with_key(format!("k{}", round % 7)),
            "short" => event.with_id(format!("own-{round}")),
            _ => event,
        }
    });
    Plan {
        changes: vec![Change::Put {
            key: format!("group/plain/{}", round % 5).into(),
            value: round.to_string().into_bytes().into(),
            expect: Expect::Any,
        }],
        ..Plan::events(events)
    }
}
