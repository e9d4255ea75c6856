//! The power goes while threads publish, seal, compact and free space at once: what was acknowledged after an fsync is
//! there, and of a compacted topic the latest event of each key.

use crate::plan::{Plan, PlannedEvent};
use crate::reading::read_all;
use prombus_log::fault::FaultFiles;
use prombus_log::{Log, LogOptions};
use prombus_store::conformance::Random;
use prombus_store::{CommitError, EventOutcome, TopicOptions};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const PUBLISHERS: usize = 3;
const KEYS: usize = 4;
/// More than are published before the power goes.
const MOST: usize = 5_000;

/// The last position and payload that was acknowledged, by key.
type Latest = BTreeMap<String, (u64, String)>;

fn options(threads: bool) -> LogOptions {
    LogOptions {
        segment_bytes: 4_000,
        tail_cache_bytes: 1_000,
        index_cache_bytes: 2_000,
        max_unsealed_segments: 2,
        maintain_interval_ms: 1,
        threads,
        ..LogOptions::default()
    }
}

/// Publishes until the power is gone: an event with a key to a compacted topic and one to a plain topic, in turns.
fn publish(
    log: &Log,
    publisher: usize,
    plain: &Mutex<BTreeMap<u64, String>>,
    latest: &Mutex<Latest>,
) {
    for count in 0..MOST {
        let payload = format!(r#""{publisher} {count}""#);
        let topic = if count % 2 == 0 { "compacted" } else { "plain" };
        let mut event = PlannedEvent::new(topic, payload.clone());
        let key = format!("{publisher} {}", count / 2 % KEYS);
        if topic == "compacted" {
            event = event.with_key(&key);
        }
        let receipt = match log.append(&Plan::events([event]).batch()).wait() {
            Ok(receipt) => receipt,
            Err(CommitError::StoreFailed(_)) => return,
            Err(error) => panic!("{error}"),
        };
        let EventOutcome::Stored(placed) = receipt.events[0] else {
            panic!("{receipt:?}");
        };
        if topic == "compacted" {
            let mut latest = latest.lock().expect("no one panicked");
            latest.insert(key, (placed.seq, payload));
        } else {
            let mut plain = plain.lock().expect("no one panicked");
            plain.insert(placed.seq, payload);
        }
    }
    panic!("the power never went");
}

#[test]
fn a_power_loss_amid_sealing_and_rewriting_loses_nothing_acknowledged() {
    let (mut segments, mut rewritten) = (0, 0);
    for seed in 1..=40 {
        let disk = Arc::new(FaultFiles::new());
        let (log, _) = Log::open(disk.clone(), options(true)).expect("a new log");
        for topic in ["compacted", "plain"] {
            let options = TopicOptions {
                compaction: topic == "compacted",
                ..TopicOptions::default()
            };
            let made = log.append(&Plan::topic(topic, options).batch()).wait();
            made.expect("a topic");
        }
        disk.stop_after(300 + Random::seeded(seed).index(1_500) as u64);
        let (plain, latest) = (Mutex::default(), Mutex::default());
        std::thread::scope(|scope| {
            for publisher in 0..PUBLISHERS {
                let (log, plain, latest) = (&log, &plain, &latest);
                scope.spawn(move || publish(log, publisher, plain, latest));
            }
        });
        let left = Arc::new(disk.crash(seed));
        drop(log);
        let (log, report) = Log::open(left, options(false)).expect("it opens");
        assert_eq!(report.damage, Vec::<String>::new(), "seed {seed}");
        for (seq, payload) in plain.into_inner().expect("no one panicked") {
            let page = log.read("plain", seq, crate::reading::ALL).expect("a page");
            let found = page.events.first().map(|event| event.payload());
            assert_eq!(found, Some(&*payload), "seed {seed}, position {seq}");
        }
        for (key, (seq, payload)) in latest.into_inner().expect("no one panicked") {
            let found = log.latest("compacted", &key).expect("a look-up");
            let found = found.unwrap_or_else(|| panic!("seed {seed}: {key} is gone"));
            // What was on its way may have come behind it.
            assert!(found.seq() >= seq, "seed {seed}: {key}");
            if found.seq() == seq {
                assert_eq!(found.payload(), payload, "seed {seed}: {key}");
            }
        }
        segments += log.stats().segments;
        let kept = read_all(&log, "compacted", &mut Random::seeded(seed)).len() as u64;
        let tail_seq = log.tail_seq("compacted");
        rewritten += u64::from(kept < tail_seq);
    }
    // How much of it the threads get done before the power goes is up to the scheduler.
    assert!(segments > 40, "hardly anything was sealed");
    assert!(rewritten > 0, "nothing was rewritten");
}
