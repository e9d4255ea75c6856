//! A log of several hundred segments in a process that may open few files: it opens, reads, compacts and goes on.

use crate::plan::{Plan, PlannedEvent};
use crate::reading::read_all;
use prombus_log::{Log, LogOptions, OsFiles};
use prombus_store::conformance::Random;
use prombus_store::{ReadLimit, TopicOptions};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Descriptors of the child, its standard active_segments and the lock included.
const DESCRIPTORS: usize = 64;
/// Set for the child: the folder of its log.
const FOLDER: &str = "PROMBUS_DESCRIPTORS_FOLDER";
const SEGMENTS: u64 = 300;
const EVENTS: u64 = 2 * SEGMENTS;

#[test]
fn a_log_with_more_segments_than_descriptors_opens_reads_and_compacts() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = open(folder.path(), LogOptions::default().max_open_files);
    for topic in ["kept", "short"] {
        let topic = Plan::topic(topic, TopicOptions::default());
        commit(&log, &topic);
    }
    let large = format!(r#""{}""#, "x".repeat(1200));
    for number in 0..SEGMENTS {
        let small = number.to_string();
        let pairs = [("kept", &small), ("short", &large)].repeat(2);
        let events = pairs
            .iter()
            .map(|(topic, payload)| PlannedEvent::new(topic, *payload));
        commit(&log, &Plan::events(events));
    }
    log.maintain().expect("maintenance");
    assert!(log.stats().segments > SEGMENTS, "{:?}", log.stats());
    log.close().expect("it closes");
    drop(log);

    let this = std::env::current_exe().expect("this program");
    let run = format!(
        r#"ulimit -n {DESCRIPTORS}; exec "$0" --exact descriptors::with_few --nocapture --test-threads 1"#
    );
    let mut child = Command::new("sh");
    child
        .args(["-c", &run])
        .arg(this)
        .env(FOLDER, folder.path());
    let output = child.output().expect("a child");
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Not a test of its own: it is what the test above starts, with the folder in the environment.
#[test]
fn with_few() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    // The first limit is kept by the log itself; the second is beyond what the process may open.
    for max_open_files in [16, 1000] {
        let log = open(Path::new(&folder), max_open_files);
        let mut random = Random::seeded(1);
        assert_eq!(read_all(&log, "kept", &mut random).len() as u64, EVENTS);
        log.close().expect("it closes");
    }
    let log = open(Path::new(&folder), 16);
    let first = ReadLimit {
        events: 1,
        bytes: 0,
    };
    let before = log.read("kept", 1, first).expect("a page");
    let options = TopicOptions {
        max_events: Some(1),
        ..TopicOptions::default()
    };
    commit(&log, &Plan::topic("short", options));
    // Retention takes most of every segment, then the sparse neighbours are merged.
    for _ in 0..3 {
        log.maintain().expect("maintenance");
        log.commit_now();
    }
    assert!(log.stats().segments < SEGMENTS, "{:?}", log.stats());
    let seqs = read_all(&log, "kept", &mut Random::seeded(2));
    let seqs = seqs.iter().map(|event| event.seq());
    assert!(seqs.eq(1..=EVENTS));
    let after = log.read("kept", 1, first).expect("a page");
    assert_eq!(before.events[0].json(), after.events[0].json());
}

fn open(folder: &Path, max_open_files: usize) -> Log {
    let options = LogOptions {
        segment_bytes: 3000,
        tail_cache_bytes: 1000,
        index_cache_bytes: 10_000,
        max_open_files,
        log_id: Some(7),
        threads: false,
        ..LogOptions::default()
    };
    let files = Arc::new(OsFiles::open(folder).expect("a folder"));
    let (log, report) = Log::open(files, options).expect("it opens");
    assert_eq!(report.damage, Vec::<String>::new());
    log
}

fn commit(log: &Log, plan: &Plan) {
    let commit = log.append(&plan.batch());
    log.commit_now();
    commit.wait().expect("a commit");
}
