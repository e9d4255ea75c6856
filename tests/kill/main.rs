//! A real process that publishes and consumes is killed again and again, with SIGKILL and without warning. What it was
//! told is true afterwards: every acknowledged event is there, positions have no gaps, nothing counts as settled that
//! was not delivered, and in the end everything is.
#![cfg(test)]

mod child;
mod history;

use history::History;
use prombus::{Bus, BusOptions, ReadFrom, StartAt, SubscribeOptions};
use prombus_log::FileStore;
use prombus_store::ReadLimit;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// How often the process is killed.
const KILLS: u64 = 30;
const GROUP: &str = "workers";
const TOPICS: [&str; 2] = ["orders.made", "beats.seen"];
/// Tells the test binary that it is the process to be killed, and where its data is.
const FOLDER_VARIABLE: &str = "PROMBUS_KILL_FOLDER";

/// The process that is killed. Run as a test of its own it does nothing.
#[test]
fn child_process() {
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE) {
        child::run(Path::new(&folder));
    }
}

#[tokio::test]
async fn nothing_acknowledged_is_lost_over_many_kills() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut history = History::default();
    for kill in 0..KILLS {
        run_and_kill(folder.path(), kill, &mut history);
        let bus = open(folder.path());
        check_events(&bus, &history).await;
        check_cursors(&bus, &mut history).await;
        bus.close().await.expect("a clean stop");
    }
    assert!(history.published.len() > 100, "the processes did something");
    assert!(history.acknowledged.len() > 100, "and so did the consumers");
    finish(folder.path(), &mut history).await;
}

/// Starts the process, listens to what it says, and kills it in the middle.
fn run_and_kill(folder: &Path, kill: u64, history: &mut History) {
    let this = std::env::current_exe().expect("the test binary");
    let mut process = Command::new(this)
        .args(["--exact", "child_process", "--nocapture"])
        .env(FOLDER_VARIABLE, folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let output = process.stdout.take().expect("its output");
    // Each run says at least this many things, the later ones more, so that kills come at all stages.
    let enough = 20 + (kill * 37) % 400;
    let mut recorded = 0;
    for line in BufReader::new(output).lines() {
        let Ok(line) = line else { break };
        recorded += u64::from(history.record(&line));
        if recorded == enough {
            process.kill().expect("SIGKILL");
        }
    }
    process.wait().expect("its end");
    assert!(
        recorded >= enough,
        "it was killed, it did not stop by itself"
    );
}

fn open(folder: &Path) -> Bus {
    let (store, report) = FileStore::open(folder).expect("the folder opens after a kill");
    assert_eq!(report.damage, Vec::<String>::new());
    Bus::open(Arc::new(store), BusOptions::default()).expect("a bus")
}

/// Everything that was acknowledged is there, and positions have no gaps.
async fn check_events(bus: &Bus, history: &History) {
    for topic in TOPICS {
        let mut stored = Vec::new();
        let mut from_seq = 1;
        let limit = ReadLimit {
            events: 1000,
            bytes: 1 << 20,
        };
        loop {
            let Ok(page) = bus
                .store()
                .read(&topic.into(), ReadFrom::Seq(from_seq), limit)
                .await
            else {
                break;
            };
            stored.extend(
                page.events
                    .iter()
                    .map(|event| (event.seq(), event.id().into_owned())),
            );
            from_seq = page.next_seq;
            if page.events.is_empty() {
                break;
            }
        }
        let seqs: Vec<u64> = stored.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(
            seqs,
            (1..=stored.len() as u64).collect::<Vec<_>>(),
            "{topic}"
        );
        assert!(stored.is_sorted_by(|a, b| a.1 < b.1), "{topic}: ids rise");
        for (seq, id) in history.published_to(topic) {
            assert_eq!(stored[seq as usize - 1].1, id, "{topic} seq {seq}");
        }
    }
}

/// Nothing counts as settled that was not delivered, and the cursor never goes back.
async fn check_cursors(bus: &Bus, history: &mut History) {
    for topic in TOPICS {
        let Ok(cursor) = bus.cursor(topic, GROUP).await else {
            continue;
        };
        for seq in 1..=cursor.last_seq {
            assert!(
                history.delivered.contains(&(topic.to_owned(), seq)),
                "{topic}: {seq} is settled and was never delivered"
            );
        }
        history.move_cursor(topic, cursor.last_seq);
    }
}

/// Consumes what is left; then every event was delivered and is settled.
async fn finish(folder: &Path, history: &mut History) {
    let bus = open(folder);
    for topic in TOPICS {
        let options = SubscribeOptions {
            from: StartAt::Earliest,
            ..SubscribeOptions::default()
        };
        let subscription = bus
            .subscribe(topic, GROUP, options)
            .await
            .expect("a member");
        let tail = bus.topic(topic).expect("the topic").tail_seq;
        while bus.cursor(topic, GROUP).await.expect("a cursor").last_seq < tail {
            let next = tokio::time::timeout(Duration::from_secs(60), subscription.next()).await;
            let delivery = next.expect("the rest comes").expect("a delivery");
            let seq = delivery.event.seq();
            assert!(
                seq > history.cursor(topic),
                "{topic}: {seq} was settled before"
            );
            history.delivered.insert((topic.to_owned(), seq));
            delivery.ack_confirmed().await.expect("settled");
        }
        for seq in 1..=tail {
            assert!(
                history.delivered.contains(&(topic.to_owned(), seq)),
                "{topic}: {seq}"
            );
        }
    }
    bus.close().await.expect("a clean stop");
}
