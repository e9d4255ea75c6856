//! A log as the copy of another: runs of batches are there as a whole with their position, whatever a crash takes, and
//! copies of the same runs hold the same.

use crate::fixture::START_MS;
use crate::plan::{Plan, PlannedEvent};
use crate::reading::read_all;
use crate::seeds;
use prombus_log::fault::FaultFiles;
use prombus_log::{Applied, Log, LogOptions, OpenError, Role};
use prombus_store::conformance::Random;
use prombus_store::{
    Batch, Change, CommitError, EventOutcome, Expect, IfExists, ManualClock, TopicOptions,
};
use std::collections::BTreeMap;
use std::sync::Arc;

const LOG_ID: u64 = 77;
const TOPICS: [&str; 3] = ["a", "b", "c"];

fn options(segment_bytes: u64) -> LogOptions {
    LogOptions {
        segment_bytes,
        tail_cache_bytes: 1000,
        index_cache_bytes: 2000,
        preallocate_bytes: 0,
        reserve_bytes: 0,
        clock: Arc::new(ManualClock::at(START_MS)),
        log_id: Some(LOG_ID),
        role: Role::Copy,
        // Syncs come from full segments and from runs that need them.
        os_sync_interval_ms: 1 << 30,
        maintain_interval_ms: 5,
        ..LogOptions::default()
    }
}

fn open(disk: &Arc<FaultFiles>, segment_bytes: u64) -> Log {
    let (log, report) = Log::open(disk.clone(), options(segment_bytes)).expect("it opens");
    assert_eq!(report.damage, Vec::<String>::new());
    log
}

/// What one message of the other log holds.
struct Run {
    batches: Vec<Batch>,
    now_ms: u64,
}

fn put_topic(topic: &str, if_exists: IfExists) -> Change {
    Change::PutTopic {
        topic: topic.into(),
        options: TopicOptions::default(),
        if_exists,
    }
}

fn some_run(random: &mut Random, number: u64) -> Run {
    let mut batches = Vec::new();
    for _ in 0..=random.index(4) {
        let mut plan = Plan {
            atomic: random.index(2) == 0,
            ..Plan::default()
        };
        let topic = TOPICS[random.index(TOPICS.len())];
        match random.index(12) {
            0 => plan.changes.push(Change::DeleteTopic {
                topic: topic.into(),
            }),
            1 => plan.changes.push(Change::Trim {
                topic: topic.into(),
                first_seq: random.index(40) as u64,
            }),
            2..6 => plan.changes.push(Change::Put {
                key: format!("k{}", random.index(4)).into(),
                value: vec![number as u8; random.index(50)].into(),
                // Some of them are refused, here as everywhere.
                expect: match random.index(3) {
                    0 => Expect::Version(random.index(6) as u64),
                    _ => Expect::Any,
                },
            }),
            8 => plan.changes.push(Change::Delete {
                key: format!("k{}", random.index(4)).into(),
                expect: Expect::Any,
            }),
            6..8 => plan.changes.push(put_topic(topic, IfExists::Keep)),
            _ => {}
        }
        for _ in 0..random.index(6) {
            let topic = TOPICS[random.index(TOPICS.len())];
            let payload = format!("\"{}\"", "x".repeat(random.index(80)));
            let event = PlannedEvent::new(topic, payload);
            plan.events.push(match random.index(3) {
                0 => event.with_id(format!("id-{}", random.index(30))),
                _ => event,
            });
        }
        batches.push(plan.batch());
    }
    Run {
        batches,
        now_ms: START_MS + number * 10,
    }
}

/// Applies a run and waits until readers see it.
fn apply(log: &Log, run: &Run, position: u64) -> Result<Vec<String>, CommitError> {
    let Applied { outcomes, commit } = log.append_all(&run.batches, run.now_ms, position)?;
    commit.wait()?;
    assert_eq!(log.position(), Some(position));
    Ok(outcomes.iter().map(|one| format!("{one:?}")).collect())
}

/// All that readers see, but for sizes, which are the copy's own.
fn seen(log: &Log) -> Vec<String> {
    let mut lines = Vec::new();
    for topic in log.topics() {
        let (first_seq, tail_seq) = (topic.first_seq, topic.tail_seq);
        let name = &topic.name;
        lines.push(format!(
            "{name} {} {first_seq} {tail_seq}",
            topic.incarnation
        ));
        let events = read_all(log, name, &mut Random::seeded(1));
        lines.extend(events.iter().map(|event| event.json().to_owned()));
    }
    let keyed = log.list("").into_iter();
    lines.extend(keyed.map(|(key, keyed)| format!("{key} {keyed:?}")));
    lines
}

#[test]
fn after_a_crash_the_position_and_its_batches_are_there_together_or_not_at_all() {
    seeds::run(30, |seed| {
        let mut random = Random::seeded(seed);
        let runs: Vec<Run> = (0..60).map(|at| some_run(&mut random, at)).collect();
        let segment_bytes = [600, 3000, 1 << 20][random.index(3)];
        let mut disk = Arc::new(FaultFiles::new());
        let mut log = open(&disk, segment_bytes);
        // What a copy showed at each position, and what became of the batches that led there.
        let mut shown: BTreeMap<u64, (Vec<String>, Vec<String>)> = BTreeMap::new();
        let mut next: u64 = 1;
        let mut crashes = 0;
        while let Some(run) = runs.get(next as usize - 1) {
            let outcomes = apply(&log, run, next).expect("a run");
            let now = (outcomes, seen(&log));
            match shown.get(&next) {
                // It was applied before a crash, and comes to the same again.
                Some(before) => assert_eq!(*before, now, "seed {seed}, position {next}"),
                None => drop(shown.insert(next, now)),
            }
            next += 1;
            if random.index(8) == 0 && crashes < 12 {
                crashes += 1;
                let after = match random.index(3) {
                    0 => disk.process_crash(),
                    _ => disk.crash(random.number()),
                };
                drop(log);
                disk = Arc::new(after);
                log = open(&disk, segment_bytes);
                let position = log.position().unwrap_or(0);
                assert!(position < next, "seed {seed}");
                let expected = shown.get(&position).map(|(_, seen)| seen);
                let empty = position == 0;
                assert!(
                    expected.map_or(empty, |expected| *expected == seen(&log)),
                    "seed {seed}: position {position} does not show what it did"
                );
                next = position + 1;
            }
        }
        assert_eq!(log.position(), Some(60));
    });
}

#[test]
fn copies_of_the_same_runs_hold_the_same() {
    seeds::run(10, |seed| {
        let mut random = Random::seeded(seed);
        let runs: Vec<Run> = (0..80).map(|at| some_run(&mut random, at)).collect();
        let mut all = Vec::new();
        for segment_bytes in [500, 1 << 20] {
            let disk = Arc::new(FaultFiles::new());
            let log = open(&disk, segment_bytes);
            let outcomes: Vec<_> = (1..)
                .zip(&runs)
                .map(|(position, run)| {
                    if position % 7 == 0 && segment_bytes == 500 {
                        log.maintain().expect("maintenance");
                    }
                    apply(&log, run, position).expect("a run")
                })
                .collect();
            all.push((outcomes, seen(&log)));
        }
        assert_eq!(all[0], all[1], "seed {seed}");
    });
}

#[test]
fn only_runs_that_let_something_go_are_synced() {
    let disk = Arc::new(FaultFiles::new());
    let log = open(&disk, 1 << 20);
    let mut plan = Plan::topic("t", TopicOptions::default());
    plan.events = vec![PlannedEvent::new("t", "1"); 3];
    let run = |plan: &Plan| Run {
        batches: vec![plan.batch()],
        now_ms: START_MS,
    };
    apply(&log, &run(&plan), 1).expect("a run");
    let syncs = disk.syncs();
    for position in 2..50 {
        let put = Change::Put {
            key: "k".into(),
            value: vec![1].into(),
            expect: Expect::Any,
        };
        let mut plan = Plan::events(vec![PlannedEvent::new("t", "2")]);
        plan.changes.push(put);
        apply(&log, &run(&plan), position).expect("a run");
        assert_eq!(log.get("k").map(|keyed| keyed.version), Some(position - 1));
    }
    assert_eq!(disk.syncs(), syncs, "nothing waits for the disk");
    let mut plan = Plan::default();
    plan.changes.push(Change::Trim {
        topic: "t".into(),
        first_seq: 10,
    });
    apply(&log, &run(&plan), 50).expect("a run");
    assert!(disk.syncs() > syncs);
    assert_eq!(log.topic("t").map(|topic| topic.first_seq), Some(10));
    assert!(log.list("").iter().all(|(key, _)| &**key == "k"));
}

#[test]
fn a_copy_forgets_only_what_it_is_told_to() {
    let disk = Arc::new(FaultFiles::new());
    let log = open(&disk, 400);
    let retained = TopicOptions {
        max_events: Some(5),
        compaction: true,
        ..TopicOptions::default()
    };
    let mut plan = Plan::topic("t", retained);
    plan.events = (0..40)
        .map(|at| PlannedEvent::new("t", at.to_string()).with_key("k"))
        .collect();
    let run = Run {
        batches: vec![plan.batch()],
        now_ms: START_MS,
    };
    apply(&log, &run, 1).expect("a run");
    log.maintain().expect("maintenance");
    let topic = log.topic("t").expect("a topic");
    assert_eq!((topic.first_seq, topic.events), (1, 40));
    let trims = log.due_trims(START_MS);
    let expected = Change::Trim {
        topic: "t".into(),
        first_seq: 36,
    };
    assert_eq!(trims, [expected]);
    let mut batch = Batch::new();
    trims.into_iter().for_each(|trim| batch.change(trim));
    let run = Run {
        batches: vec![batch],
        now_ms: START_MS,
    };
    apply(&log, &run, 2).expect("a run");
    assert_eq!(log.topic("t").map(|topic| topic.first_seq), Some(36));
    assert_eq!(log.due_trims(START_MS), []);
}

#[test]
fn events_carry_the_id_of_the_log_and_the_time_of_the_run() {
    let disk = Arc::new(FaultFiles::new());
    let log = open(&disk, 1 << 20);
    let mut plan = Plan::topic("t", TopicOptions::default());
    plan.events = vec![PlannedEvent::new("t", "1")];
    let batches = [plan.batch()];
    let applied = log.append_all(&batches, 5_000_000, 9).expect("a run");
    let Ok(receipt) = &applied.outcomes[0] else {
        panic!("refused: {:?}", applied.outcomes);
    };
    let EventOutcome::Stored(stored) = receipt.events[0] else {
        panic!("not stored: {receipt:?}");
    };
    assert_eq!((stored.ts, stored.seq), (5_000_000, 1));
    applied.commit.wait().expect("it is written");
    log.close().expect("it closes");
    drop(log);
    let disk = Arc::new(disk.process_crash());
    let other = LogOptions {
        log_id: Some(LOG_ID + 1),
        ..options(1 << 20)
    };
    let opened = Log::open(disk.clone(), other).map(drop);
    assert!(
        matches!(opened, Err(OpenError::OtherLog { found: LOG_ID, .. })),
        "{opened:?}"
    );
    assert_eq!(open(&disk, 1 << 20).position(), Some(9));
}

#[test]
fn a_run_that_fails_leaves_nothing_behind() {
    let disk = Arc::new(FaultFiles::new());
    let log = open(&disk, 1 << 20);
    let run = Run {
        batches: vec![Plan::topic("t", TopicOptions::default()).batch()],
        now_ms: START_MS,
    };
    apply(&log, &run, 1).expect("a run");
    disk.set_space(disk.total_bytes());
    let mut plan = Plan::events(vec![PlannedEvent::new("t", "1"); 20]);
    plan.atomic = false;
    let run = Run {
        batches: vec![plan.batch()],
        now_ms: START_MS,
    };
    assert!(apply(&log, &run, 2).is_err());
    assert!(log.append_all(&run.batches, START_MS, 2).is_err());
    drop(log);
    let disk = Arc::new(disk.process_crash());
    let log = open(&disk, 1 << 20);
    assert_eq!(log.position(), Some(1));
    assert_eq!(log.topic("t").map(|topic| topic.tail_seq), Some(0));
    apply(&log, &run, 2).expect("a run");
    assert_eq!(log.topic("t").map(|topic| topic.tail_seq), Some(20));
}
