//! Many threads on one log, with segments so small that they are sealed and rewritten all the time: nothing is lost,
//! doubled or out of order, and whatever was acknowledged is found at once. Once in a real folder, and once on a disk
//! that dawdles, so that the threads meet in all ways.

mod blocking;
mod file_hook;
mod power_loss;
mod prepared;
mod slow_disk;

use crate::plan::{Plan, PlannedEvent};
use crate::reading::{ALL, read_all};
use prombus_log::fault::FaultFiles;
use prombus_log::{Files, Listener, Log, LogOptions, OsFiles};
use prombus_store::conformance::Random;
use prombus_store::{
    CommitError, Durability, EventOutcome, EventRef, ReadLimit, Receipt, TopicOptions,
};
use slow_disk::DawdlingFiles;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

const TOPICS: [&str; 2] = ["fsync", "os"];
const PUBLISHERS: usize = 3;

/// Hears of tails, which may only rise.
#[derive(Default)]
struct Tails(Mutex<HashMap<String, u64>>);

impl Listener for Tails {
    fn tail_moved(&self, topic: &str, tail_seq: u64) {
        let mut tails = self.0.lock().expect("no one panicked");
        let last = tails.insert(topic.to_owned(), tail_seq).unwrap_or(0);
        assert!(tail_seq > last, "{topic}: {tail_seq} after {last}");
    }

    fn topics_changed(&self) {}
}

/// All that was acknowledged: by topic and position, id and payload.
type Stored = Mutex<BTreeMap<(&'static str, u64), (String, String)>>;

fn open(files: Arc<dyn Files>, segment_bytes: u64, listener: Option<Arc<dyn Listener>>) -> Log {
    let options = LogOptions {
        segment_bytes,
        tail_cache_bytes: segment_bytes as usize / 4,
        index_cache_bytes: 20_000,
        max_unsealed_segments: 2,
        maintain_interval_ms: 1,
        // So long that a publisher nobody wakes would be noticed.
        os_sync_interval_ms: 3_600_000,
        threads: listener.is_some(),
        listener,
        ..LogOptions::default()
    };
    let (log, report) = Log::open(files, options).expect("it opens");
    assert_eq!(report.damage, Vec::<String>::new());
    log
}

/// Commits, the first publisher with the sync on its own thread if nobody else is syncing.
fn commit(log: &Log, publisher: usize, plan: &Plan) -> Result<Receipt, CommitError> {
    match publisher {
        0 => log.append_inline(&plan.batch(), |sync| sync()).wait(),
        _ => log.append(&plan.batch()).wait(),
    }
}

#[test]
fn many_threads_in_a_folder_lose_double_and_reorder_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = || -> Arc<dyn Files> { Arc::new(OsFiles::open(folder.path()).expect("a folder")) };
    publish_and_read(files, 12_000, 100);
}

#[test]
fn many_threads_on_a_dawdling_disk_lose_double_and_reorder_nothing() {
    let disk = Arc::new(FaultFiles::new());
    let files = || -> Arc<dyn Files> { Arc::new(DawdlingFiles::new(disk.clone())) };
    publish_and_read(files, 2_500, 200);
}

#[test]
fn a_failing_disk_is_heard_by_every_thread_and_a_crash_loses_nothing_acknowledged() {
    for nth in 1..25 {
        publish_until_failure(nth, |disk| disk.fail_sync_after(nth));
        publish_until_failure(nth, |disk| disk.fail_write_after(nth));
        publish_until_failure(nth, |disk| {
            disk.set_space(disk.total_bytes() + nth * 700);
        });
    }
}

/// Publishes from several threads until each has heard of the failure, or long enough if only maintenance met it.
fn publish_until_failure(seed: u64, arm: impl Fn(&FaultFiles)) {
    let disk = Arc::new(FaultFiles::new());
    let listener = Some(Arc::new(Tails::default()) as Arc<dyn Listener>);
    let log = open(disk.clone(), 2_500, listener);
    make_topics(&log);
    arm(&disk);
    let stored = Stored::default();
    std::thread::scope(|scope| {
        for topic in TOPICS {
            for publisher in 0..PUBLISHERS {
                let (log, stored) = (&log, &stored);
                scope.spawn(move || {
                    for count in 0..60 {
                        let payload = format!(r#""{publisher} {count}""#);
                        let plan = Plan::events([PlannedEvent::new(topic, &payload)]);
                        match commit(log, publisher, &plan) {
                            Ok(receipt) => {
                                let placed = place(&receipt.events[0]).expect("it is stored");
                                take(stored, topic, &placed, &payload);
                            }
                            Err(CommitError::StoreFailed(_)) => return,
                            Err(error) => panic!("{error}"),
                        }
                    }
                });
            }
        }
    });
    let stored = stored.into_inner().expect("no one panicked");
    let left = Arc::new(disk.crash(seed));
    drop(log);
    let log = open(left, 2_500, None);
    for topic in TOPICS {
        let events = read_all(&log, topic, &mut Random::seeded(seed));
        let seqs = events.iter().map(|event| event.seq());
        assert!(seqs.eq(1..=events.len() as u64), "{topic}");
        for ((of, seq), (id, payload)) in &stored {
            match events.get(*seq as usize - 1) {
                _ if *of != topic => {}
                Some(event) => assert_eq!((&*event.id(), event.payload()), (&**id, &**payload)),
                None => assert_eq!(topic, "os", "{seq} is gone"),
            }
        }
    }
}

fn make_topics(log: &Log) {
    for topic in TOPICS {
        let options = TopicOptions {
            durability: match topic {
                "os" => Durability::Os,
                _ => Durability::Fsync,
            },
            ..TopicOptions::default()
        };
        let plan = Plan::topic(topic, options);
        log.append(&plan.batch()).wait().expect("a topic");
    }
}

fn publish_and_read(files: impl Fn() -> Arc<dyn Files>, segment_bytes: u64, batches: usize) {
    let log = open(files(), segment_bytes, Some(Arc::new(Tails::default())));
    make_topics(&log);
    let stored = Stored::default();
    let left = AtomicUsize::new(TOPICS.len() * PUBLISHERS);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (log, stored, left, done) = (&log, &stored, &left, &done);
        for topic in TOPICS {
            for publisher in 0..PUBLISHERS {
                scope.spawn(move || {
                    publish(log, topic, publisher, batches, stored);
                    if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                        done.store(true, Ordering::SeqCst);
                    }
                });
            }
            scope.spawn(move || follow(log, topic, done));
            scope.spawn(move || read_again_and_again(log, topic, done));
        }
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                log.maintain().expect("maintenance");
                std::thread::yield_now();
            }
        });
    });
    let stored = stored.into_inner().expect("no one panicked");
    check(&log, &stored);
    log.close().expect("it closes");
    assert_eq!(log.stats().maintenance_failure, None);
    drop(log);
    check(&open(files(), segment_bytes, None), &stored);
}

/// Publishes events of its own, and ids that all publishers of the topic compete for.
fn publish(log: &Log, topic: &'static str, publisher: usize, batches: usize, stored: &Stored) {
    let mut random = Random::seeded(publisher as u64);
    let key = format!("publisher {publisher}");
    for count in 0..batches {
        let text = format!(r#""{publisher} {count}""#);
        let plain = PlannedEvent::new(topic, text.clone()).with_key(&key);
        let own = plain.clone().with_id(format!("own-{publisher}-{count}"));
        let shared = PlannedEvent::new(topic, count.to_string()).with_id(format!("shared-{count}"));
        let plan = Plan {
            atomic: random.index(2) == 0,
            ..Plan::events([shared, own.clone(), plain])
        };
        let receipt = commit(log, publisher, &plan).expect("a commit");
        let mut placed = Vec::new();
        for (event, outcome) in plan.events.iter().zip(&receipt.events) {
            match outcome {
                EventOutcome::Stored(one) => take(stored, topic, one, &event.payload),
                EventOutcome::Duplicate(_) if event.id.as_ref() == plan.events[0].id.as_ref() => {}
                other => panic!("{other:?} for {event:?}"),
            }
            placed.extend(place(outcome));
        }
        // What is acknowledged is found at once, though its segment is being sealed or rewritten meanwhile.
        for one in &placed {
            let found = log.find_id(topic, one.id.as_str()).expect("a look-up");
            assert_eq!(found, Some(one.seq), "{topic} {one:?}");
        }
        let latest = log.latest(topic, &key).expect("a look-up");
        assert_eq!(latest.map(|event| event.seq()), Some(placed[2].seq));
        let again = log.append(&Plan::events([own]).batch()).wait();
        let outcome = again.expect("a commit").events[0];
        assert_eq!(outcome, EventOutcome::Duplicate(placed[1]));
    }
}

fn place(outcome: &EventOutcome) -> Option<EventRef> {
    match outcome {
        EventOutcome::Stored(placed) | EventOutcome::Duplicate(placed) => Some(*placed),
        _ => None,
    }
}

fn take(stored: &Stored, topic: &'static str, placed: &EventRef, payload: &str) {
    let event = (placed.id.to_string(), payload.to_owned());
    let mut stored = stored.lock().expect("no one panicked");
    let earlier = stored.insert((topic, placed.seq), event);
    assert_eq!(earlier, None, "a position was given twice");
}

/// Reads on and on behind what was read: every position comes once, in order.
fn follow(log: &Log, topic: &str, done: &AtomicBool) {
    let limit = ReadLimit {
        events: 7,
        bytes: 4000,
    };
    let (mut next_seq, mut last_tail) = (1, 0);
    loop {
        let was_done = done.load(Ordering::SeqCst);
        let page = log.read(topic, next_seq, limit).expect("a page");
        assert!(page.tail_seq >= last_tail, "the tail went back");
        last_tail = page.tail_seq;
        for event in &page.events {
            assert_eq!(event.seq(), next_seq, "{topic}");
            next_seq += 1;
        }
        assert_eq!(page.next_seq, next_seq, "{topic}");
        if next_seq > page.tail_seq && was_done {
            return;
        }
        if page.events.is_empty() {
            std::thread::yield_now();
        }
    }
}

/// Reads everything from the start each time, in the order of positions and of time.
fn read_again_and_again(log: &Log, topic: &str, done: &AtomicBool) {
    let mut random = Random::seeded(3);
    let mut last_count = 0;
    while !done.load(Ordering::SeqCst) {
        let tail_seq = log.tail_seq(topic);
        let events = read_all(log, topic, &mut random);
        let seqs = events.iter().map(|event| event.seq());
        assert!(seqs.eq(1..=events.len() as u64), "{topic}");
        assert!(events.len() as u64 >= tail_seq && events.len() >= last_count);
        last_count = events.len();
        let range = prombus_store::TimeRange {
            from_ts: 0,
            to_ts: u64::MAX,
            after: None,
        };
        let page = log.read_by_time(topic, range, ALL).expect("a page");
        assert!(page.events.len() >= last_count, "{topic}");
        if let (Some(first), Some(last)) = (events.first(), events.last()) {
            let found = log.find_ts(topic, first.ts()).expect("a look-up");
            assert_eq!(found, Some(1), "{topic}");
            let found = log.find_ts(topic, last.ts()).expect("a look-up");
            assert!(found.is_some_and(|seq| seq <= last.seq()), "{topic}");
        }
    }
}

/// Exactly what was acknowledged is there.
fn check(log: &Log, stored: &BTreeMap<(&'static str, u64), (String, String)>) {
    for topic in TOPICS {
        let events = read_all(log, topic, &mut Random::seeded(1));
        let read = events.iter().map(|event| {
            let content = (event.id().into_owned(), event.payload().to_owned());
            ((topic, event.seq()), content)
        });
        let read: BTreeMap<_, _> = read.collect();
        let expected = stored.iter().filter(|((of, _), _)| *of == topic);
        assert!(expected.eq(read.iter()), "{topic}");
        let mut ids: Vec<&String> = read.values().map(|(id, _)| id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), read.len(), "{topic}: an id was stored twice");
    }
    assert_eq!(log.damage(), Vec::<String>::new());
}
