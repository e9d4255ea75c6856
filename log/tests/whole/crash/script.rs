//! One run: what the seed says is appended, committed, kept up, closed, crashed and opened again.

use super::check;
use super::model::{Event, Expected, Outcome, Refusal, Unit, World};
use crate::plan::{Plan, PlannedEvent, answer_of};
use crate::{finding, reading};
use prombus_log::fault::FaultFiles;
use prombus_log::{Commit, Log, LogOptions, verify};
use prombus_store::conformance::Random;
use prombus_store::{
    Change, Clock, CommitError, Durability, EventOutcome, EventRef, Expect, IfExists, ManualClock,
    Receipt, TopicOptions,
};
use std::rc::Rc;
use std::sync::Arc;

const STEPS: usize = 160;
const TOPICS: [&str; 5] = ["a", "a.b", "b", "c", "d"];
const KEYS: [&str; 6] = ["k1", "k2", "k3", "k4", "k5", "k6"];
/// As many as groups of a few topics have, so that state runs differ from each other and are merged.
const RECORDS: [&str; 9] = [
    "cursor/a",
    "cursor/b",
    "group/a/1",
    "group/a/2",
    "group/a.b/1",
    "group/c/1",
    "lease/1",
    "lease/2",
    "x",
];
const START_MS: u64 = 1_700_000_000_000;
const TOMBSTONE_MS: u64 = 2_000;
/// How many changes to the disk at most before the power goes.
const STOP_WITHIN: usize = 60;

/// A log, its disk and its model on their way.
pub(super) struct Run {
    disk: Arc<FaultFiles>,
    clock: Arc<ManualClock>,
    random: Random,
    segment_bytes: u64,
    /// Mostly keyed records, so that whole segments have no events.
    mostly_keyed: bool,
    log: Log,
    /// What is durable for certain, and the units since.
    base: World,
    units: Vec<Unit>,
    /// With all units applied.
    front: World,
    waiting: Vec<Waiting>,
    /// How many of the units survive the process, and how many a power loss.
    written: usize,
    synced: usize,
    /// Makes payloads and ids unique.
    count: u64,
    latest_ms: u64,
    /// Some operation to come fails, or the power goes there.
    armed: bool,
    /// What may fail is a sync.
    sync_may_fail: bool,
}

/// A commit that was not answered when last looked at.
struct Waiting {
    commit: Commit,
    expected: Expected,
    /// How many units there were with its own.
    units: usize,
}

impl Run {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::seeded(seed);
        let clock = Arc::new(ManualClock::at(START_MS));
        let disk = Arc::new(FaultFiles::new());
        let segment_bytes = 1500 + random.index(5000) as u64;
        let (log, _) = Log::open(disk.clone(), options(&clock, segment_bytes)).expect("a new log");
        Self {
            disk,
            clock,
            mostly_keyed: random.index(4) == 0,
            random,
            segment_bytes,
            log,
            base: World::default(),
            units: Vec::new(),
            front: World::default(),
            waiting: Vec::new(),
            written: 0,
            synced: 0,
            count: 0,
            latest_ms: START_MS,
            armed: false,
            sync_may_fail: false,
        }
    }

    pub(super) fn play(mut self) {
        for name in &TOPICS[..3] {
            let options = self.some_options();
            self.append(&Plan::topic(name, options));
        }
        for _ in 0..STEPS {
            self.step();
        }
        self.crash();
    }

    fn step(&mut self) {
        match self.random.index(100) {
            0..58 => {
                let plan = self.some_plan();
                self.append(&plan);
            }
            58..74 => self.commit(),
            74..84 => self.maintain(),
            84..90 => self.move_clock(),
            90..93 => self.close(),
            93..97 => self.arm(),
            _ => self.crash(),
        }
    }

    /// Lets something go wrong soon.
    fn arm(&mut self) {
        let within = 1 + self.random.index(STOP_WITHIN) as u64;
        match self.random.index(4) {
            0 => {
                self.disk.fail_sync_after(within);
                self.sync_may_fail = true;
            }
            1 => self.disk.fail_write_after(within),
            _ => self.disk.stop_after(within),
        }
        self.armed = true;
    }

    fn append(&mut self, plan: &Plan) {
        let predicted = self.front.admit(plan);
        let mut commit = self.log.append(&plan.batch());
        match (predicted, answer_of(&mut commit)) {
            (Ok((expected, units)), None) => {
                self.units.extend(units);
                self.waiting.push(Waiting {
                    commit,
                    expected,
                    units: self.units.len(),
                });
            }
            (Err(refusal), Some(Err(error))) => {
                assert_eq!(Some(refusal), Refusal::of(&error), "{error}\n{plan:?}");
            }
            (Ok(_), Some(Err(CommitError::StoreFailed(_)))) if self.armed => self.crash(),
            (_, answer) => panic!("answered {answer:?} to {plan:?}"),
        }
    }

    fn commit(&mut self) {
        self.log.commit_now();
        if !self.take_answers() {
            assert!(self.armed, "{:?}", self.log.failure());
            return self.crash();
        }
        self.base = self.front.clone();
        self.units.clear();
        (self.written, self.synced) = (0, 0);
        for (name, topic) in &self.front.topics {
            let first_seq = self.log.topic(name).expect("a topic").first_seq;
            let allowed = topic.first_seq..=topic.may_first_seq;
            assert!(allowed.contains(&first_seq), "{name} from {first_seq} on");
            let topic = self.base.topic_mut(name).expect("the same topics");
            (topic.first_seq, topic.may_first_seq) = (first_seq, first_seq);
        }
        self.front = self.base.clone();
        if self.random.index(6) == 0 {
            self.look(false);
        }
    }

    /// Takes the answers to all commits; false if some failed.
    fn take_answers(&mut self) -> bool {
        let mut all_well = self.log.failure().is_none();
        for mut waiting in std::mem::take(&mut self.waiting) {
            match answer_of(&mut waiting.commit).expect("an answer") {
                Ok(receipt) => {
                    check_receipt(&waiting.expected, &receipt);
                    self.written = self.written.max(waiting.units);
                    if waiting.expected.needs_sync {
                        self.synced = self.synced.max(waiting.units);
                    }
                }
                Err(error) => {
                    assert!(matches!(error, CommitError::StoreFailed(_)), "{error}");
                    all_well = false;
                }
            }
        }
        all_well
    }

    fn maintain(&mut self) {
        let names: Vec<Arc<str>> = self.front.topics.keys().cloned().collect();
        for name in names {
            let bound = self.trimmed_at_most_to(&name);
            // A crash may leave the trim or not, so both ends know of it.
            for world in [&mut self.base, &mut self.front] {
                if let Some(topic) = world.topic_mut(&name) {
                    topic.may_first_seq = topic.may_first_seq.max(bound);
                }
            }
        }
        if let Err(error) = self.log.maintain() {
            assert!(self.armed, "{error}");
            self.crash();
        }
    }

    /// The first position that retention may leave of what readers see.
    fn trimmed_at_most_to(&self, name: &str) -> u64 {
        let Some(topic) = self.base.topics.get(name) else {
            return 0;
        };
        if self.front.topics[name].life != topic.life {
            return 0;
        }
        let options = &topic.options;
        let by_events = options
            .max_events
            .map_or(0, |most| topic.next_seq.saturating_sub(most));
        let by_bytes = options.max_bytes.map_or(0, |_| topic.next_seq);
        let by_age = options.retention_ms.map_or(0, |retention_ms| {
            let cutoff_ts = self.clock.now_ms() - retention_ms;
            let kept = topic.events.range(topic.first_seq..).find(|(_, event)| {
                let learned = event.learned.get().expect("readers see it");
                // When an event with a ts of its own was stored is not told.
                let has_log_time = event.planned.ts.is_none();
                has_log_time && learned.ts >= cutoff_ts && topic.surely_holds(event)
            });
            kept.map_or(topic.next_seq, |(seq, _)| *seq)
        });
        by_events.max(by_bytes).max(by_age)
    }

    fn move_clock(&mut self) {
        let now_ms = self.clock.now_ms();
        self.clock.set(match self.random.index(6) {
            0 => now_ms - self.random.index(500) as u64,
            1 => now_ms + self.random.index(3000) as u64,
            _ => now_ms + self.random.index(40) as u64,
        });
        self.latest_ms = self.latest_ms.max(self.clock.now_ms());
    }

    /// A clean stop, after which everything is there.
    fn close(&mut self) {
        let closed = self.log.close();
        if !self.take_answers() || closed.is_err() {
            assert!(self.armed, "{closed:?}");
            return self.crash();
        }
        (self.written, self.synced) = (self.units.len(), self.units.len());
        self.disk = Arc::new(self.disk.process_crash());
        self.armed = false;
        self.reopen();
    }

    fn crash(&mut self) {
        // Without the writer's help nobody gets an answer, except those whose records are in the log already.
        let waiting = std::mem::take(&mut self.waiting);
        for mut waiting in waiting {
            let answer = answer_of(&mut waiting.commit);
            assert!(!matches!(answer, Some(Ok(_))), "{answer:?}");
        }
        // A process that goes on where a sync has failed is another story: nobody knows what its folder is worth.
        let power_loss = self.sync_may_fail || self.random.index(2) == 0;
        self.disk = Arc::new(if power_loss {
            self.disk.crash(self.random.number())
        } else {
            self.disk.process_crash()
        });
        self.written = if power_loss {
            self.synced
        } else {
            self.written
        };
        self.armed = false;
        self.reopen();
    }

    /// Opens the log, at times with the power going again in the middle of it.
    fn reopen(&mut self) {
        self.sync_may_fail = false;
        loop {
            if self.random.index(8) == 0 {
                self.disk.stop_after(self.random.index(12) as u64);
                self.armed = true;
            }
            match Log::open(self.disk.clone(), options(&self.clock, self.segment_bytes)) {
                Ok((log, report)) => {
                    assert_eq!(report.damage, Vec::<String>::new(), "after a mere crash");
                    self.log = log;
                    break;
                }
                Err(error) => assert!(self.armed, "{error}"),
            }
            self.disk = Arc::new(self.disk.crash(self.random.number()));
            self.written = self.synced;
            self.armed = false;
        }
        self.look(true);
    }

    /// Compares the log with the model, after a crash with each of its states since what was acknowledged.
    fn look(&mut self, after_crash: bool) {
        let seen = reading::look(&self.log, &mut self.random);
        let gone_before_ms = self.latest_ms.saturating_sub(TOMBSTONE_MS);
        if after_crash {
            let at_least = self.written;
            let mut found =
                check::after_crash(&self.base, &self.units, at_least, &seen, gone_before_ms);
            found.deleted_version = 0;
            self.front = found.clone();
            self.base = found;
            self.units.clear();
            (self.written, self.synced) = (0, 0);
        } else {
            let compared = check::compare(&self.front, &seen, gone_before_ms);
            compared.unwrap_or_else(|why| panic!("without a crash: {why}"));
        }
        for (name, topic) in &seen.topics {
            finding::check(&self.log, name, &topic.events, &mut self.random);
        }
        assert_eq!(self.log.damage(), Vec::<String>::new());
        if self.random.index(4) == 0 {
            let report = verify(self.disk.clone()).expect("a check");
            assert!(report.damage.is_empty(), "{report:?}");
            assert!(report.damage.is_empty(), "{report:?}");
            assert!(report.bad_indexes.is_empty(), "{report:?}");
            assert_eq!(report.torn_tail_bytes, 0, "{report:?}");
        }
    }
}

/// What is chosen at random.
impl Run {
    fn some_options(&mut self) -> TopicOptions {
        let random = &mut self.random;
        let mut maybe = |within: u64| match random.index(6) {
            0 => Some(1 + random.number() % within),
            _ => None,
        };
        let (retention_ms, max_events, max_bytes) = (maybe(3000), maybe(40), maybe(6000));
        TopicOptions {
            durability: match random.index(2) {
                0 => Durability::Os,
                _ => Durability::Fsync,
            },
            retention_ms,
            max_bytes,
            max_events,
            compaction: random.index(3) == 0,
            attributes: String::new(),
        }
    }

    fn some_plan(&mut self) -> Plan {
        let mut plan = Plan {
            atomic: self.random.index(3) == 0,
            ..Plan::default()
        };
        let (changes, events) = match (self.mostly_keyed, self.random.index(8)) {
            (false, 0..3) => (1 + self.random.index(3), [1, 4, 12][self.random.index(3)]),
            (false, _) | (true, 0) => (0, [1, 4, 12][self.random.index(3)]),
            (true, _) => (1 + self.random.index(12), 0),
        };
        for _ in 0..changes {
            let change = self.some_change();
            plan.changes.push(change);
        }
        for _ in 0..self.random.index(events + 1) {
            let event = self.some_event(&plan);
            plan.events.push(event);
        }
        if plan.changes.is_empty() && plan.events.is_empty() {
            let event = self.some_event(&plan);
            plan.events.push(event);
        }
        plan
    }

    fn some_change(&mut self) -> Change {
        let topic: Arc<str> = TOPICS[self.random.index(TOPICS.len())].into();
        let key: Arc<str> = RECORDS[self.random.index(RECORDS.len())].into();
        let version = self.front.keyed.get(&key).map(|(version, _)| *version);
        let expect = match self.random.index(8) {
            0 => Expect::Absent,
            1 => Expect::Version(99),
            2..4 => Expect::Any,
            _ => version.map_or(Expect::Absent, Expect::Version),
        };
        match self.random.index(24) {
            0..2 => Change::DeleteTopic { topic },
            2..5 => Change::PutTopic {
                topic,
                options: self.some_options(),
                if_exists: match self.random.index(3) {
                    0 => IfExists::Keep,
                    _ => IfExists::Replace,
                },
            },
            5..7 => {
                let next_seq = self.front.topics.get(&topic).map_or(1, |one| one.next_seq);
                let first_seq = self.random.index(next_seq as usize + 2) as u64;
                Change::Trim { topic, first_seq }
            }
            7..10 => Change::Delete { key, expect },
            _ => {
                self.count += 1;
                let value = format!("{}{}", self.count, "v".repeat(self.random.index(100)));
                Change::Put {
                    key,
                    value: value.into_bytes().into(),
                    expect,
                }
            }
        }
    }

    fn some_event(&mut self, so_far: &Plan) -> PlannedEvent {
        self.count += 1;
        let count = self.count;
        let topic = TOPICS[self.random.index(TOPICS.len())];
        let pad = "p".repeat(match self.random.index(30) {
            0 => 2500,
            _ => self.random.index(250),
        });
        let mut event = PlannedEvent::new(topic, format!(r#"{{"n":{count},"pad":"{pad}"}}"#));
        if self.random.index(2) == 0 {
            event.key = Some(KEYS[self.random.index(KEYS.len())].to_owned());
            event.tombstone = self.random.index(6) == 0;
        }
        if self.random.index(7) == 0 {
            let around_ms = self.clock.now_ms() + self.random.index(4000) as u64;
            event.ts = Some(around_ms - 3000);
        }
        match self.random.index(10) {
            0..2 => event.id = Some(format!("own-{count}")),
            2 => self.hand_back(&mut event),
            // The same id twice in a batch, with the same payload and with another.
            3 => {
                if let Some(earlier) = so_far.events.last().filter(|last| last.id.is_some()) {
                    event.topic = earlier.topic.clone();
                    event.id.clone_from(&earlier.id);
                    if self.random.index(2) == 0 {
                        event.payload.clone_from(&earlier.payload);
                    }
                }
            }
            _ => {}
        }
        event
    }

    /// Publishes an event again that the topic holds, or one that it surely does not hold any more, by its id.
    fn hand_back(&mut self, event: &mut PlannedEvent) {
        let Some(topic) = self.front.topics.get(&event.topic) else {
            return;
        };
        let choosable: Vec<&Rc<Event>> = topic
            .events
            .values()
            .filter(|held| {
                if held.seq < topic.first_seq {
                    held.planned.id.is_some()
                } else {
                    topic.surely_holds(held)
                }
            })
            .filter(|held| held.id().is_some_and(|id| topic.is_newest(held.seq, id)))
            .collect();
        if choosable.is_empty() {
            return;
        }
        let chosen = choosable[self.random.index(choosable.len())];
        event.id = chosen.id().map(str::to_owned);
        if self.random.index(3) > 0 {
            event.payload.clone_from(&chosen.planned.payload);
        }
    }
}

fn options(clock: &Arc<ManualClock>, segment_bytes: u64) -> LogOptions {
    LogOptions {
        segment_bytes,
        tail_cache_bytes: 1000,
        index_cache_bytes: 2000,
        tombstone_ms: TOMBSTONE_MS,
        clock: clock.clone(),
        log_id: Some(7),
        reserve_bytes: 0,
        threads: false,
        ..LogOptions::default()
    }
}

fn check_receipt(expected: &Expected, receipt: &Receipt) {
    assert_eq!(expected.versions, receipt.versions);
    assert_eq!(expected.outcomes.len(), receipt.events.len());
    for (expected, outcome) in expected.outcomes.iter().zip(&receipt.events) {
        match (expected, outcome) {
            (Outcome::Stored(event), EventOutcome::Stored(placed))
            | (Outcome::Duplicate(event), EventOutcome::Duplicate(placed))
            | (Outcome::IdConflict(event), EventOutcome::IdConflict(placed)) => {
                check_placed(event, placed);
            }
            (Outcome::UnknownTopic, EventOutcome::UnknownTopic) => {}
            _ => panic!("{outcome:?} instead of {expected:?}"),
        }
    }
}

fn check_placed(event: &Event, placed: &EventRef) {
    assert_eq!(event.seq, placed.seq, "{event:?}");
    event.learn(placed.id.as_str(), placed.ts);
}
