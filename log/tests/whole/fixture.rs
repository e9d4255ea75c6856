//! A log without threads on a disk that lies, for tests that tell one story.

use crate::plan::{Plan, answer_of};
use crate::reading::{Seen, look, read_all};
use prombus_log::fault::FaultFiles;
use prombus_log::{Log, LogOptions, OpenReport};
use prombus_store::conformance::Random;
use prombus_store::{CommitError, EventOutcome, EventRef, ManualClock, Receipt, TopicOptions};
use std::sync::Arc;

pub(crate) const START_MS: u64 = 1_700_000_000_000;

/// A log, its disk and its clock.
pub(crate) struct Fixture {
    pub(crate) disk: Arc<FaultFiles>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) segment_bytes: u64,
    pub(crate) log: Log,
}

impl Fixture {
    /// A new log with small segments.
    pub(crate) fn new(segment_bytes: u64) -> Self {
        let disk = Arc::new(FaultFiles::new());
        let clock = Arc::new(ManualClock::at(START_MS));
        let (log, _) = Log::open(disk.clone(), options(&clock, segment_bytes)).expect("a new log");
        Self {
            disk,
            clock,
            segment_bytes,
            log,
        }
    }

    /// A new log with this topic.
    pub(crate) fn with_topic(segment_bytes: u64, topic: &str, options: TopicOptions) -> Self {
        let fixture = Self::new(segment_bytes);
        fixture
            .commit(&Plan::topic(topic, options))
            .expect("a topic");
        fixture
    }

    /// Appends and commits.
    pub(crate) fn commit(&self, plan: &Plan) -> Result<Receipt, CommitError> {
        let mut commit = self.log.append(&plan.batch());
        self.log.commit_now();
        answer_of(&mut commit).expect("an answer")
    }

    /// Commits events that all have to be stored; says where.
    pub(crate) fn store(&self, plan: &Plan) -> Vec<EventRef> {
        let receipt = self.commit(plan).expect("a commit");
        let placed = receipt.events.iter().map(|outcome| match outcome {
            EventOutcome::Stored(placed) => *placed,
            other => panic!("not stored: {other:?}"),
        });
        placed.collect()
    }

    /// Closes the log properly and opens it again.
    pub(crate) fn reopen(&mut self) -> OpenReport {
        self.log.close().expect("it closes");
        self.open_on(self.disk.process_crash())
    }

    /// Opens the log that a disk holds now.
    pub(crate) fn open_on(&mut self, disk: FaultFiles) -> OpenReport {
        self.disk = Arc::new(disk);
        let options = options(&self.clock, self.segment_bytes);
        let (log, report) = Log::open(self.disk.clone(), options).expect("it opens");
        self.log = log;
        report
    }

    /// All that the log shows.
    pub(crate) fn look(&self) -> Seen {
        look(&self.log, &mut Random::seeded(1))
    }

    /// The JSON of all events of a topic.
    pub(crate) fn events(&self, topic: &str) -> Vec<String> {
        let events = read_all(&self.log, topic, &mut Random::seeded(1));
        events.iter().map(|event| event.json().to_owned()).collect()
    }

    /// The positions of all events of a topic.
    pub(crate) fn seqs(&self, topic: &str) -> Vec<u64> {
        let events = read_all(&self.log, topic, &mut Random::seeded(1));
        events.iter().map(|event| event.seq()).collect()
    }
}

/// Options of a log whose every step is the test's.
pub(crate) fn options(clock: &Arc<ManualClock>, segment_bytes: u64) -> LogOptions {
    LogOptions {
        segment_bytes,
        tail_cache_bytes: 1000,
        index_cache_bytes: 2000,
        tombstone_ms: 2000,
        clock: clock.clone(),
        log_id: Some(7),
        reserve_bytes: 0,
        threads: false,
        ..LogOptions::default()
    }
}
