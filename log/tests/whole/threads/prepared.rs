//! Segments that are written ahead: a log that syncs often goes on in them, one that writes much for each sync does not
//! write everything twice.

use super::file_hook::{Hook, HookedFiles};
use crate::plan::{Plan, PlannedEvent};
use crate::reading::read_all;
use prombus_log::fault::FaultFiles;
use prombus_log::{Files, Log, LogOptions};
use prombus_store::TopicOptions;
use prombus_store::conformance::Random;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const SEGMENT_BYTES: u64 = 600_000;
const PREPARED_NAME: &str = "ffffffffffffffff.seg.new";

/// Counts the segments that were prepared and that were taken.
#[derive(Default)]
struct Prepared {
    created: AtomicUsize,
    taken: AtomicUsize,
}

impl Hook for Prepared {
    fn before_create(&self, name: &str) {
        let is_prepared = name == PREPARED_NAME;
        self.created
            .fetch_add(usize::from(is_prepared), Ordering::SeqCst);
    }

    fn after_rename(&self, from: &str, _to: &str) {
        let is_prepared = from == PREPARED_NAME;
        self.taken
            .fetch_add(usize::from(is_prepared), Ordering::SeqCst);
    }
}

fn open(disk: Arc<FaultFiles>, hook: Arc<Prepared>) -> Log {
    let options = LogOptions {
        segment_bytes: SEGMENT_BYTES,
        ..LogOptions::default()
    };
    let (log, report) = Log::open(Arc::new(HookedFiles { disk, hook }), options).expect("it opens");
    assert_eq!(report.damage, Vec::<String>::new());
    log
}

/// Publishes events of a size, each synced before the next one, until `is_enough`. Returns how many.
fn publish(log: &Log, bytes: usize, is_enough: impl Fn(usize) -> bool) -> usize {
    let plan = Plan::topic("t", TopicOptions::default());
    log.append(&plan.batch()).wait().expect("a topic");
    let payload = format!(r#""{}""#, "x".repeat(bytes));
    let plan = Plan::events([PlannedEvent::new("t", payload)]);
    for count in 0..100_000 {
        if is_enough(count) {
            return count;
        }
        log.append(&plan.batch()).wait().expect("a commit");
    }
    panic!("never enough");
}

#[test]
fn a_log_that_syncs_often_goes_on_in_segments_that_were_written_ahead() {
    let (disk, hook) = (Arc::new(FaultFiles::new()), Arc::new(Prepared::default()));
    let log = open(disk.clone(), hook.clone());
    let published = publish(&log, 2_000, |_| hook.taken.load(Ordering::SeqCst) >= 3);
    log.close().expect("it closes");
    drop(log);
    let names = disk.list().expect("a folder");
    let is_left = names.iter().any(|name| name.ends_with(".new"));
    assert!(!is_left, "{names:?}");
    let log = open(disk, Arc::default());
    let events = read_all(&log, "t", &mut Random::seeded(1));
    assert_eq!(events.len(), published);
}

#[test]
fn a_crash_leaves_the_events_and_nothing_of_what_was_written_ahead() {
    for seed in 0..20 {
        let (disk, hook) = (Arc::new(FaultFiles::new()), Arc::new(Prepared::default()));
        let log = open(disk.clone(), hook.clone());
        let wanted = 1 + seed as usize % 3;
        let published = publish(&log, 2_000, |_| hook.taken.load(Ordering::SeqCst) >= wanted);
        let left = Arc::new(disk.crash(seed));
        drop(log);
        let log = open(left.clone(), Arc::default());
        let events = read_all(&log, "t", &mut Random::seeded(1));
        assert_eq!(events.len(), published, "seed {seed}");
        let names = left.list().expect("a folder");
        assert!(!names.iter().any(|name| name == PREPARED_NAME), "{names:?}");
    }
}

#[test]
fn a_log_that_writes_much_for_each_sync_is_not_written_twice() {
    let (disk, hook) = (Arc::new(FaultFiles::new()), Arc::new(Prepared::default()));
    let log = open(disk, hook.clone());
    publish(&log, 100_000, |count| count == 100);
    log.close().expect("it closes");
    assert_eq!(hook.created.load(Ordering::SeqCst), 0);
}
