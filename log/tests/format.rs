//! A log of each past format on disk still opens and reads the same. `PROMBUS_WRITE_FIXTURE=1 cargo test -p
//! prombus-log --test format` writes the one of the current format anew, which is right only before it is released.
#![cfg(test)]

use prombus_log::{Log, LogOptions, OsFiles};
use prombus_store::{
    Batch, Change, Draft, Durability, Expect, Id, IfExists, ManualClock, ReadLimit, TopicOptions,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const TOPICS: [&str; 2] = ["orders.made", "state.kept"];

/// The format that is written now.
const CURRENT: &str = "format-2";

#[test]
fn a_log_of_each_format_reads_as_it_was_written() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    if std::env::var_os("PROMBUS_WRITE_FIXTURE").is_some() {
        write(&fixtures.join(CURRENT));
    }
    let formats = names(&fixtures);
    assert!(formats.contains(&CURRENT.into()), "{formats:?}");
    for format in formats {
        reads_as_it_was_written(&fixtures.join(format));
    }
}

fn reads_as_it_was_written(fixture: &Path) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in names(&fixture.join("log")) {
        std::fs::copy(fixture.join("log").join(&name), folder.path().join(&name)).expect("a copy");
    }
    let expected = std::fs::read_to_string(fixture.join("expected.ndjson")).expect("the fixture");
    for opening in 0..2 {
        let log = open(folder.path());
        assert_eq!(everything(&log), expected, "opening {opening}");
        assert_eq!(log.damage(), Vec::<String>::new());
        let found = log.find_id(TOPICS[0], "order \"7\"").expect("an answer");
        assert_eq!(found, Some(31));
        let latest = log.latest(TOPICS[1], "a").expect("an answer");
        assert!(latest.expect("the latest of a").is_tombstone());
        let keyed = log
            .get("group/orders.made/billing")
            .expect("a keyed record");
        assert_eq!((keyed.version, &*keyed.value), (2, &b"{\"cursor\":9}"[..]));
        let info = log.topic(TOPICS[0]).expect("the topic");
        assert_eq!((info.first_seq, info.tail_seq), (5, 31));
        log.close().expect("a clean stop");
    }
    // Indexes of earlier versions are used as they are: making all of them again would delay the start.
    for name in names(&fixture.join("log")) {
        if name.extension().is_some_and(|extension| extension == "idx") {
            let read = |folder: &Path| std::fs::read(folder.join(&name)).expect("an index");
            assert!(
                read(folder.path()) == read(&fixture.join("log")),
                "{name:?}"
            );
        }
    }
}

fn open(folder: &Path) -> Log {
    let files = OsFiles::open(folder).expect("a folder");
    let options = LogOptions {
        segment_bytes: 4096,
        clock: Arc::new(ManualClock::at(1_750_000_000_000)),
        log_id: Some(7),
        reserve_bytes: 0,
        threads: false,
        ..LogOptions::default()
    };
    let (log, report) = Log::open(Arc::new(files), options).expect("the log opens");
    assert_eq!(report.cut_tail, None);
    log
}

/// Every event of every topic, a line each.
fn everything(log: &Log) -> String {
    let mut lines = String::new();
    for topic in TOPICS {
        let limit = ReadLimit {
            events: 1000,
            bytes: 1 << 20,
        };
        let page = log.read(topic, 1, limit).expect("a page");
        for event in page.events {
            lines.push_str(event.json());
            lines.push('\n');
        }
    }
    lines
}

fn names(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the fixture");
    let mut names: Vec<PathBuf> = entries
        .map(|entry| PathBuf::from(entry.expect("an entry").file_name()))
        .filter(|name| name != Path::new("LOCK"))
        .collect();
    names.sort();
    names
}

/// Writes a log with everything in it: both layouts of sealed segments, an open one, keyed records, client ids, keys, a
/// tombstone and a trimmed topic.
fn write(fixture: &Path) {
    let _ = std::fs::remove_dir_all(fixture);
    let log = open(&fixture.join("log"));
    let topics: [Arc<str>; 2] = TOPICS.map(Arc::from);
    let mut batch = Batch::new();
    for (topic, compaction) in topics.iter().zip([false, true]) {
        let durability = if compaction {
            Durability::Os
        } else {
            Durability::Fsync
        };
        let options = TopicOptions {
            durability,
            compaction,
            attributes: "{\"partitions\":1}".into(),
            ..TopicOptions::default()
        };
        let topic = topic.clone();
        batch.change(Change::PutTopic {
            topic,
            options,
            if_exists: IfExists::Replace,
        });
    }
    commit(&log, &batch);
    let payload = format!("{{\"of\":\"{}\",\"n\":1E3}}", "prombus ".repeat(12));
    for number in 0..30 {
        let mut batch = Batch::new();
        let plain = Draft {
            sid: Some("boot-1"),
            payload: &payload,
            headers: &[("traceparent".into(), "00-ab".into())],
            tags: &["#fixture".into()],
            ..Draft::default()
        };
        batch.publish(&topics[0], &plain);
        // The first segments hold both topics, the later ones one alone.
        if number < 12 {
            let keyed = Draft {
                key: Some(if number % 2 == 0 { "a" } else { "b" }),
                ts: Some(1_749_000_000_000 - number),
                payload: &payload,
                ..Draft::default()
            };
            batch.publish(&topics[1], &keyed);
        }
        commit(&log, &batch);
        log.maintain().expect("maintenance");
    }
    commit(&log, &last_batch(&topics));
    let lines = everything(&log);
    log.close().expect("a clean stop");
    std::fs::write(fixture.join("expected.ndjson"), lines).expect("the expectation");
    let _ = std::fs::remove_file(fixture.join("log/LOCK"));
}

/// An client id, a tombstone, a keyed record in two versions and a trimmed topic, all in one step.
fn last_batch(topics: &[Arc<str>; 2]) -> Batch {
    let mut batch = Batch::atomic();
    batch.publish(
        &topics[0],
        &Draft {
            id: Id::from_client("order \"7\""),
            payload: "{\"ü\":null}",
            caused_by: &["x".into()],
            ..Draft::default()
        },
    );
    batch.publish(
        &topics[1],
        &Draft {
            key: Some("a"),
            payload: "null",
            tombstone: true,
            ..Draft::default()
        },
    );
    let key: Arc<str> = "group/orders.made/billing".into();
    for (value, expect) in [
        ("{}", Expect::Absent),
        ("{\"cursor\":9}", Expect::Version(1)),
    ] {
        batch.change(Change::Put {
            key: key.clone(),
            value: value.as_bytes().into(),
            expect,
        });
    }
    batch.change(Change::Trim {
        topic: topics[0].clone(),
        first_seq: 5,
    });
    batch
}

fn commit(log: &Log, batch: &Batch) {
    let answer = log.append(batch);
    log.commit_now();
    answer.wait().expect("a commit");
}
