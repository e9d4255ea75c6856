//! A process that publishes from several threads is killed with SIGKILL over and over, always on the same folder:
//! whatever it said was acknowledged is there, in its place, without gaps.

use crate::plan::{Plan, PlannedEvent};
use crate::reading::read_all;
use prombus_log::{Log, LogOptions, OsFiles};
use prombus_store::conformance::Random;
use prombus_store::{Change, Durability, EventOutcome, Expect, StoredEvent, TopicOptions};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const KILLS: u64 = 32;
/// How long a child lives at most after its first word.
const LIFE_MS: usize = 120;
/// Set for the child: the folder of its log.
const FOLDER: &str = "PROMBUS_KILL_FOLDER";
/// A child that nobody kills ends by itself.
const MOST_BATCHES: usize = 20_000;
/// The topic of which only the newest events are kept.
const SHORT_TOPIC: &str = "short";
const SHORT_EVENTS: u64 = 200;

/// What a child said was acknowledged: by topic and position, the id.
type Acknowledged = BTreeMap<(String, u64), String>;

#[test]
fn nothing_acknowledged_is_lost_by_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut random = Random::seeded(1);
    let mut acknowledged = Acknowledged::new();
    for round in 0..KILLS {
        let before = acknowledged.len();
        let life = Duration::from_millis(1 + random.index(LIFE_MS) as u64);
        kill_after(start_child(folder.path()), life, &mut acknowledged);
        assert!(acknowledged.len() > before, "the child said nothing");
        check(folder.path(), round, &acknowledged);
    }
}

/// Not a test of its own: it is what the test above starts, with the folder in the environment.
#[test]
fn kill_me() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        publish_until_killed(Path::new(&folder));
    }
}

fn start_child(folder: &Path) -> Child {
    let this = std::env::current_exe().expect("this program");
    let mut command = Command::new(this);
    command.args(["--exact", "kill::kill_me", "--nocapture"]);
    command.env(FOLDER, folder).stdout(Stdio::piped());
    command.spawn().expect("a child")
}

/// Kills the child some time after its first word and takes in all it said.
fn kill_after(mut child: Child, life: Duration, acknowledged: &mut Acknowledged) {
    let output = child.stdout.take().expect("its output");
    let killer = std::thread::current();
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        for line in BufReader::new(output).lines() {
            // The last line may be cut off in the middle of a letter.
            let Ok(line) = line else { break };
            if line.starts_with("ack ") {
                said.push(line);
            }
            if said.len() == 1 {
                killer.unpark();
            }
        }
        said
    });
    // The first park ends with the first word, the second with the child's time.
    std::thread::park_timeout(Duration::from_secs(20));
    std::thread::park_timeout(life);
    child.kill().expect("a kill");
    child.wait().expect("its end");
    for line in reader.join().expect("the reader") {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["ack", topic, seq, id, "."] = words.as_slice() {
            let place = (topic.to_string(), seq.parse().expect("a position"));
            let earlier = acknowledged.insert(place, id.to_string());
            assert_eq!(earlier, None, "a position was given twice: {line}");
        }
    }
}

fn check(folder: &Path, round: u64, acknowledged: &Acknowledged) {
    let (log, report) = open(folder, false);
    assert_eq!(report.damage, Vec::<String>::new());
    let mut random = Random::seeded(round);
    let mut held: BTreeMap<(String, u64), StoredEvent> = BTreeMap::new();
    for info in log.topics() {
        let events = read_all(&log, &info.name, &mut random);
        let seqs: Vec<u64> = events.iter().map(|event| event.seq()).collect();
        assert_eq!(seqs, (info.first_seq..=info.tail_seq).collect::<Vec<_>>());
        if &*info.name == SHORT_TOPIC {
            assert!(seqs.len() as u64 >= SHORT_EVENTS.min(info.tail_seq));
        } else {
            assert_eq!(info.first_seq, 1, "{}", info.name);
        }
        held.extend(
            events
                .into_iter()
                .map(|event| ((info.name.to_string(), event.seq()), event)),
        );
    }
    for (place, id) in acknowledged {
        match held.get(place) {
            Some(event) => assert_eq!(event.id(), *id, "{place:?}"),
            None => assert_eq!(place.0, SHORT_TOPIC, "{place:?} is gone"),
        }
    }
    check_batches(&log, &held);
    check_own_ids(&log, acknowledged, &held, &mut random);
    if round.is_multiple_of(3) {
        log.close().expect("a clean stop in between");
    }
}

/// The keyed record counts the atomic batches, each of which has an event in two topics.
fn check_batches(log: &Log, held: &BTreeMap<(String, u64), StoredEvent>) {
    let Some(counted) = log.get("batches") else {
        return;
    };
    let counted = String::from_utf8_lossy(&counted.value).into_owned();
    for topic in ["both.a", "both.b"] {
        let last = held.range((topic.to_owned(), 0)..=(topic.to_owned(), u64::MAX));
        let last = last.last().map(|(_, event)| event.payload().to_owned());
        assert_eq!(last.as_ref(), Some(&counted), "{topic}");
    }
}

/// An client id that was acknowledged is a duplicate from then on.
fn check_own_ids(
    log: &Log,
    acknowledged: &Acknowledged,
    held: &BTreeMap<(String, u64), StoredEvent>,
    random: &mut Random,
) {
    let own: Vec<_> = acknowledged
        .iter()
        .filter(|(_, id)| id.starts_with("own-"))
        .collect();
    for _ in 0..own.len().min(10) {
        let (place, id) = own[random.index(own.len())];
        let event = PlannedEvent::new(&place.0, held[place].payload()).with_id(id);
        let commit = log.append(&Plan::events([event]).batch());
        log.commit_now();
        let receipt = commit.wait().expect("a commit");
        let EventOutcome::Duplicate(placed) = receipt.events[0] else {
            panic!("{id} is stored twice: {receipt:?}");
        };
        assert_eq!(placed.seq, place.1);
    }
}

fn open(folder: &Path, threads: bool) -> (Log, prombus_log::OpenReport) {
    let options = LogOptions {
        segment_bytes: 40_000,
        tail_cache_bytes: 10_000,
        maintain_interval_ms: 5,
        os_sync_interval_ms: 20,
        log_id: Some(5),
        threads,
        ..LogOptions::default()
    };
    let files = OsFiles::open(folder).expect("a folder");
    Log::open(Arc::new(files), options).expect("it opens")
}

/// What the child does.
fn publish_until_killed(folder: &Path) {
    let (log, _) = open(folder, true);
    make_topics(&log);
    let run = log.tail_seq("fsync") + log.tail_seq("os");
    std::thread::scope(|scope| {
        for (name, topic) in [("a", "fsync"), ("b", "fsync"), ("c", "os"), ("d", "os")] {
            let log = &log;
            scope.spawn(move || publish(log, topic, &format!("own-{run}-{name}")));
        }
        scope.spawn(|| publish(&log, SHORT_TOPIC, &format!("short-{run}")));
        scope.spawn(|| publish_both(&log));
    });
}

fn make_topics(log: &Log) {
    for topic in ["fsync", "os", SHORT_TOPIC, "both.a", "both.b"] {
        let options = TopicOptions {
            durability: match topic {
                "os" | SHORT_TOPIC => Durability::Os,
                _ => Durability::Fsync,
            },
            max_events: (topic == SHORT_TOPIC).then_some(SHORT_EVENTS),
            ..TopicOptions::default()
        };
        let plan = Plan::topic(topic, options);
        log.append(&plan.batch()).wait().expect("a topic");
    }
}

/// Publishes small batches, every other event with an id of its own.
fn publish(log: &Log, topic: &str, name: &str) {
    for count in 0..MOST_BATCHES {
        let plain = PlannedEvent::new(topic, format!(r#""{name} {count}""#)).with_key("k");
        let own = plain.clone().with_id(format!("{name}-{count}"));
        let commit = log.append(&Plan::events([own, plain]).batch());
        say(topic, &commit.wait().expect("a commit"));
    }
}

/// Counts in a keyed record, with an event in two topics each time.
fn publish_both(log: &Log) {
    let counted = log.get("batches").map(|keyed| keyed.value);
    let counted = counted.map(|value| String::from_utf8_lossy(&value).parse::<usize>());
    let start = counted.map_or(0, |counted| counted.expect("a number"));
    for count in start + 1..start + MOST_BATCHES {
        let plan = Plan {
            atomic: true,
            changes: vec![Change::Put {
                key: "batches".into(),
                value: count.to_string().into_bytes().into(),
                expect: Expect::Any,
            }],
            events: ["both.a", "both.b"]
                .map(|topic| PlannedEvent::new(topic, count.to_string()))
                .into(),
        };
        let receipt = log.append(&plan.batch()).wait().expect("a commit");
        for (topic, outcome) in ["both.a", "both.b"].iter().zip(receipt.events) {
            let events = vec![outcome];
            let versions = Vec::new();
            say(topic, &prombus_store::Receipt { events, versions });
        }
    }
}

/// Tells the parent, in one write; the full stop shows that the line is whole.
fn say(topic: &str, receipt: &prombus_store::Receipt) {
    let mut text = String::new();
    for outcome in &receipt.events {
        let EventOutcome::Stored(placed) = outcome else {
            panic!("not stored: {outcome:?}");
        };
        text.push_str(&format!("ack {topic} {} {} .\n", placed.seq, placed.id));
    }
    let mut output = std::io::stdout().lock();
    let said = output.write_all(text.as_bytes());
    said.and_then(|()| output.flush()).expect("a parent");
}
