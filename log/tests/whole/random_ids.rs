//! Random client ids in many sealed segments: a look-up reads little, and duplicates are recognised whatever happens to
//! the set of ids beside the segments.

use crate::fixture::{START_MS, options};
use crate::plan::{Plan, PlannedEvent, answer_of};
use prombus_log::fault::FaultFiles;
use prombus_log::{File, Files, Log, LogOptions};
use prombus_store::conformance::Random;
use prombus_store::{Change, EventOutcome, ManualClock, Receipt, TopicOptions};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const SEGMENT_BYTES: u64 = 1500;
const EVENTS: usize = 600;

/// A folder that counts reads.
struct Counting {
    files: FaultFiles,
    reads: Arc<AtomicU64>,
}

struct Counted {
    file: Arc<dyn File>,
    reads: Arc<AtomicU64>,
}

impl Counting {
    fn count(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        let reads = self.reads.clone();
        Arc::new(Counted { file, reads })
    }
}

impl Files for Counting {
    fn list(&self) -> io::Result<Vec<String>> {
        self.files.list()
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.count(self.files.open(name)?))
    }
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(self.count(self.files.create(name)?))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.files.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.remove(name)
    }
    fn sync_names(&self) -> io::Result<()> {
        self.files.sync_names()
    }
    fn lock(&self) -> io::Result<()> {
        self.files.lock()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.files.free_bytes()
    }
}

impl File for Counted {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> io::Result<usize> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.file.read_at(buffer, at)
    }
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.file.write_at(bytes, at)
    }
    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }
    fn truncate(&self, bytes: u64) -> io::Result<()> {
        self.file.truncate(bytes)
    }
}

/// Ids that rise with nothing.
fn random_ids(seed: u64, count: usize) -> Vec<String> {
    let mut random = Random::seeded(seed);
    let ids = (0..count).map(|_| format!("{:016x}{:016x}", random.number(), random.number()));
    ids.collect()
}

fn with_ids(ids: &[String]) -> Plan {
    let events = ids
        .iter()
        .map(|id| PlannedEvent::new("t", format!("{id:?}")).with_id(id));
    Plan::events(events)
}

fn open(disk: Arc<dyn Files>, id_filter_bytes: usize) -> Log {
    let clock = Arc::new(ManualClock::at(START_MS));
    let options = LogOptions {
        id_filter_bytes,
        ..options(&clock, SEGMENT_BYTES)
    };
    Log::open(disk, options).expect("it opens").0
}

fn commit(log: &Log, plan: &Plan) -> Receipt {
    let mut commit = log.append(&plan.batch());
    log.commit_now();
    answer_of(&mut commit)
        .expect("an answer")
        .expect("a commit")
}

/// Fills many segments; returns the ids that were stored.
fn filled(log: &Log) -> Vec<String> {
    commit(log, &Plan::topic("t", TopicOptions::default()));
    let ids = random_ids(1, EVENTS);
    for (at, some) in ids.chunks(10).enumerate() {
        let receipt = commit(log, &with_ids(some));
        let is_stored = |outcome: &EventOutcome| matches!(outcome, EventOutcome::Stored(_));
        assert!(receipt.events.iter().all(is_stored));
        if at % 5 == 0 {
            log.maintain().expect("maintenance");
        }
    }
    log.maintain().expect("maintenance");
    assert!(log.stats().segments > 30, "{:?}", log.stats());
    ids
}

fn assert_all_duplicates(log: &Log, ids: &[String]) {
    let receipt = commit(log, &with_ids(ids));
    let is_duplicate = |outcome: &EventOutcome| matches!(outcome, EventOutcome::Duplicate(_));
    let count = receipt
        .events
        .iter()
        .filter(|one| is_duplicate(one))
        .count();
    assert_eq!(count, ids.len());
}

fn run_names(disk: &FaultFiles) -> Vec<String> {
    let names = disk.list().expect("names").into_iter();
    names.filter(|name| name.ends_with(".ids")).collect()
}

#[test]
fn looking_for_a_random_id_that_is_not_there_reads_little_however_many_segments_there_are() {
    for (id_filter_bytes, most_reads) in [(1 << 20, 0.2), (0, 2.0)] {
        let disk = FaultFiles::new();
        let reads = Arc::new(AtomicU64::new(0));
        let counting = Counting {
            files: disk.another_handle(),
            reads: reads.clone(),
        };
        let log = open(Arc::new(counting), id_filter_bytes);
        let ids = filled(&log);
        assert!(run_names(&disk).len() <= 4, "{:?}", run_names(&disk));
        let looked_for = random_ids(2, 500);
        let before = reads.load(Ordering::Relaxed);
        for id in &looked_for {
            assert_eq!(log.find_id("t", id).expect("an answer"), None);
        }
        let each = (reads.load(Ordering::Relaxed) - before) as f64 / looked_for.len() as f64;
        assert!(each <= most_reads, "{each} reads with {id_filter_bytes}");
        assert_all_duplicates(&log, &ids);
    }
}

#[test]
fn duplicates_are_recognised_after_a_restart_and_though_the_runs_are_gone_or_damaged() {
    let disk = FaultFiles::new();
    let log = open(Arc::new(disk.another_handle()), 1 << 20);
    let ids = filled(&log);
    drop(log);
    let mut random = Random::seeded(3);
    for round in 0..40 {
        let copy = disk.copy();
        for name in run_names(&copy) {
            match round {
                0 => {}
                1 => copy.remove(&name).expect("it goes"),
                2 => copy
                    .overwrite(&name, |bytes| bytes.truncate(5000))
                    .expect("it is cut"),
                _ => {
                    let damage = |bytes: &mut Vec<u8>| {
                        let start = random.index(bytes.len());
                        let end = bytes.len().min(start + 1 + random.index(64));
                        bytes[start..end].iter_mut().for_each(|byte| *byte = !*byte);
                    };
                    copy.overwrite(&name, damage).expect("it is damaged");
                }
            }
        }
        let log = open(Arc::new(copy.another_handle()), 1 << 20);
        assert_all_duplicates(&log, &ids);
        log.maintain().expect("maintenance");
        assert_all_duplicates(&log, &ids);
        assert!(!run_names(&copy).is_empty());
        let fresh = random_ids(100 + round, 20);
        let receipt = commit(&log, &with_ids(&fresh));
        let is_stored = |outcome: &EventOutcome| matches!(outcome, EventOutcome::Stored(_));
        assert!(receipt.events.iter().all(is_stored));
    }
}

#[test]
fn duplicates_are_recognised_after_a_power_loss_at_any_step_of_upkeep() {
    let disk = FaultFiles::new();
    let log = open(Arc::new(disk.another_handle()), 1 << 20);
    commit(&log, &Plan::topic("t", TopicOptions::default()));
    let ids = random_ids(1, 300);
    for some in ids.chunks(10) {
        commit(&log, &with_ids(some));
    }
    drop(log);
    for steps in 0..60 {
        let copy = disk.copy();
        let log = open(Arc::new(copy.another_handle()), 1 << 20);
        copy.stop_after(steps * 3);
        // The disk stops answering in the middle of it.
        let _ = log.maintain();
        let lost = copy.crash(steps);
        drop(log);
        let log = open(Arc::new(lost), 1 << 20);
        assert_all_duplicates(&log, &ids);
        log.maintain().expect("maintenance");
        assert_all_duplicates(&log, &ids);
    }
}

#[test]
fn ids_that_retention_let_go_are_forgotten_with_their_segments() {
    let disk = FaultFiles::new();
    let log = open(Arc::new(disk.another_handle()), 1 << 20);
    let ids = filled(&log);
    let before: u64 = sizes(&disk);
    let trim = Plan {
        changes: vec![Change::Trim {
            topic: "t".into(),
            first_seq: EVENTS as u64 - 20,
        }],
        ..Plan::default()
    };
    commit(&log, &trim);
    log.maintain().expect("maintenance");
    let again = commit(&log, &with_ids(&ids[..300]));
    assert!(
        again
            .events
            .iter()
            .all(|one| matches!(one, EventOutcome::Stored(_)))
    );
    assert_all_duplicates(&log, &ids[..300]);
    let more = random_ids(9, EVENTS);
    for some in more.chunks(10) {
        commit(&log, &with_ids(some));
        log.maintain().expect("maintenance");
    }
    assert_all_duplicates(&log, &ids[..300]);
    assert_all_duplicates(&log, &more);
    // Some 900 ids are there now, instead of 600.
    assert!(sizes(&disk) < 2 * before, "{before}, then {}", sizes(&disk));
}

fn sizes(disk: &FaultFiles) -> u64 {
    let names = run_names(disk);
    let bytes = names
        .iter()
        .map(|name| disk.bytes_of(name).expect("a file"));
    bytes.map(|bytes| bytes.len() as u64).sum()
}

#[test]
fn a_run_does_not_speak_for_other_segments_that_got_the_numbers_of_lost_ones() {
    let disk = FaultFiles::new();
    let log = open(Arc::new(disk.another_handle()), 1 << 20);
    filled(&log);
    drop(log);
    let mut names = disk.list().expect("names");
    names.retain(|name| name.ends_with(".seg") || name.ends_with(".idx"));
    names.sort();
    for name in names.iter().rev().take(16) {
        disk.remove(name).expect("it is lost");
    }
    for restarts in [false, true] {
        let copy = disk.copy();
        let mut log = open(Arc::new(copy.another_handle()), 1 << 20);
        let ids = random_ids(5, 100);
        for some in ids.chunks(10) {
            commit(&log, &with_ids(some));
        }
        log.maintain().expect("maintenance");
        if restarts {
            drop(log);
            log = open(Arc::new(copy.another_handle()), 1 << 20);
        }
        assert_all_duplicates(&log, &ids);
        log.maintain().expect("maintenance");
        assert_all_duplicates(&log, &ids);
    }
}
