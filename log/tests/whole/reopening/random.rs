//! Failing disks at random, told by a seed: syncs and writes that fail, space that runs out and comes back, crashes of
//! the process and of the power, and a log that is opened anew each time. After every step it holds what was
//! acknowledged, where it was, and nothing twice.

use super::{os, payloads};
use crate::fixture::Fixture;
use crate::plan::{Plan, PlannedEvent};
use crate::seeds;
use prombus_store::conformance::Random;
use prombus_store::{Change, CommitError, EventOutcome, Expect, TopicOptions};
use std::collections::BTreeMap;

const STEPS: usize = 60;
const FSYNC_TOPIC: &str = "f";
const OS_TOPIC: &str = "o";

#[test]
fn nothing_acknowledged_is_lost_over_failures_and_reopenings() {
    seeds::run(300, |seed| {
        let mut run = Run::new(seed);
        for _ in 0..STEPS {
            run.step();
        }
    });
}

#[test]
fn the_seeds_hit_failures() {
    let reopened = (0..20).map(|seed| {
        let mut run = Run::new(seed);
        (0..STEPS).for_each(|_| run.step());
        run.reopened
    });
    assert!(reopened.sum::<usize>() > 20, "failures were hit");
}

/// A log on its way, and what was acknowledged.
struct Run {
    seed: u64,
    fixture: Fixture,
    random: Random,
    count: usize,
    /// By topic and position.
    acknowledged: BTreeMap<(&'static str, u64), String>,
    /// The keyed record's version, as the last batch that was answered left it.
    version: u64,
    /// Events that were answered with a failure: each may be there once, and none has to be.
    failed: Vec<String>,
    reopened: usize,
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut random = Random::seeded(seed);
        let segment_bytes = 800 + random.index(3000) as u64;
        let fixture = Fixture::with_topic(segment_bytes, FSYNC_TOPIC, TopicOptions::default());
        fixture
            .commit(&Plan::topic(OS_TOPIC, os()))
            .expect("a topic");
        Self {
            seed,
            fixture,
            random,
            count: 0,
            acknowledged: BTreeMap::new(),
            version: 0,
            failed: Vec::new(),
            reopened: 0,
        }
    }

    fn step(&mut self) {
        let soon = 1 + self.random.index(6) as u64;
        match self.random.index(16) {
            0 => self.fixture.disk.fail_sync_after(soon),
            1 => self.fixture.disk.fail_write_after(soon),
            2 => {
                let room = self.random.index(900) as u64;
                let space = self.fixture.disk.total_bytes() + room;
                self.fixture.disk.set_space(space);
            }
            3 | 4 => self.fixture.disk.clear_faults(),
            5 => {
                // It may fail, and is tried again.
                let _ = self.fixture.log.maintain();
            }
            6 => self.crash(),
            _ => self.publish(),
        }
        if self.fixture.log.has_failed() {
            self.open_anew();
        }
        self.check();
    }

    fn publish(&mut self) {
        let mut topics = Vec::new();
        let mut plan = Plan {
            atomic: self.random.index(3) == 0,
            ..Plan::default()
        };
        for _ in 0..1 + self.random.index(3) {
            self.count += 1;
            let topic = [FSYNC_TOPIC, OS_TOPIC][self.random.index(2)];
            topics.push(topic);
            let payload = format!("\"{} {}\"", self.count, "x".repeat(self.random.index(200)));
            plan.events.push(PlannedEvent::new(topic, payload));
        }
        let with_record = self.random.index(2) == 0;
        if with_record {
            let expect = match self.version {
                0 => Expect::Absent,
                version => Expect::Version(version),
            };
            plan.changes.push(Change::Put {
                key: "k".into(),
                value: self.count.to_string().into_bytes().into(),
                expect,
            });
        }
        let texts = plan
            .events
            .iter()
            .map(|event| event.payload.trim_matches('"'));
        let texts: Vec<String> = texts.map(str::to_owned).collect();
        match self.fixture.commit(&plan) {
            Ok(receipt) => {
                self.version = receipt.versions.first().copied().unwrap_or(self.version);
                for ((topic, text), outcome) in topics.into_iter().zip(texts).zip(receipt.events) {
                    let EventOutcome::Stored(placed) = outcome else {
                        panic!("seed {}: {outcome:?}", self.seed);
                    };
                    let before = self.acknowledged.insert((topic, placed.seq), text);
                    assert_eq!(before, None, "seed {}: a position twice", self.seed);
                }
            }
            Err(CommitError::StoreFailed(_)) => self.failed.extend(texts),
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
    }

    /// Tries until it opens; faults that are set may keep it from that.
    fn open_anew(&mut self) {
        self.reopened += 1;
        for attempt in 0..8 {
            if self.fixture.open_anew().is_ok() {
                return self.learn_version();
            }
            self.check();
            if attempt == 5 {
                self.fixture.disk.clear_faults();
            }
        }
        panic!("seed {}: it does not open any more", self.seed);
    }

    fn crash(&mut self) {
        // Where a sync of names failed nobody can tell what a power loss leaves.
        let power_loss = self.random.index(2) == 0 && !self.fixture.disk.has_names_in_doubt();
        let seed = self.random.index(1 << 20) as u64;
        let disk = if power_loss {
            self.fixture.disk.crash(seed)
        } else {
            self.fixture.disk.process_crash()
        };
        self.fixture.open_on(disk);
        if power_loss {
            let tail_seq = self.fixture.log.tail_seq(OS_TOPIC);
            let is_there = |(topic, seq): &(&str, u64), _: &mut String| {
                *topic == FSYNC_TOPIC || *seq <= tail_seq
            };
            self.acknowledged.retain(is_there);
        }
        self.learn_version();
    }

    /// A write that failed may have happened; whoever goes on reads the version again.
    fn learn_version(&mut self) {
        let found = self.fixture.log.get("k").map_or(0, |record| record.version);
        assert!(found >= self.version, "seed {}: {found}", self.seed);
        self.version = found;
    }

    fn check(&self) {
        let seed = self.seed;
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for topic in [FSYNC_TOPIC, OS_TOPIC] {
            let found = payloads(&self.fixture, topic);
            let acknowledged = self.acknowledged.iter();
            for ((_, seq), text) in acknowledged.filter(|((of, _), _)| *of == topic) {
                let there = found.get(*seq as usize - 1);
                assert_eq!(there, Some(text), "seed {seed}: {topic} {seq}");
            }
            for text in found {
                *seen.entry(text).or_default() += 1;
            }
        }
        let told = self.acknowledged.values().chain(&self.failed);
        let told: std::collections::BTreeSet<&String> = told.collect();
        for (text, times) in &seen {
            assert_eq!(*times, 1, "seed {seed}: {text:?} is there twice");
            assert!(
                told.contains(text),
                "seed {seed}: {text:?} comes from nowhere"
            );
        }
        assert_eq!(
            self.fixture.log.damage(),
            Vec::<String>::new(),
            "seed {seed}"
        );
    }
}
