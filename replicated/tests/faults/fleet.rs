//! Nodes with disks on one log that is trimmed: killed, without power, cut off, replaced by new ones, with snapshots that
//! come to nothing; all decided by a seed.

use crate::nodes::{count_up, fault, seeds};
use crate::support::{TOPIC, event, make_topic, records};
use prombus_replicated::simulated::{SimulatedDisk, SimulatedLog};
use prombus_replicated::{OpenError, Options, ReplicatedStore, SharedLog};
use prombus_store::conformance::Random;
use prombus_store::{Batch, CommitError, EventOutcome, Store, SystemClock};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

const LOG_ID: u64 = 7;
const NODES: usize = 3;
/// Long enough for absent nodes to be given up and for the log to be trimmed.
const LONG: Duration = Duration::from_secs(40);

/// A node that can be killed and started again.
struct Node {
    disk: SimulatedDisk,
    segment_bytes: u64,
    snapshot_bytes: u64,
    connection: watch::Sender<bool>,
    store: Option<ReplicatedStore>,
}

impl Node {
    async fn new(log: &SimulatedLog, random: &mut Random) -> Self {
        let mut node = Self {
            disk: SimulatedDisk::default(),
            segment_bytes: [700, 5_000, 1 << 20][random.below(3) as usize],
            snapshot_bytes: 1_000 + random.below(8_000),
            connection: watch::channel(true).0,
            store: None,
        };
        // It may be killed while it loads a snapshot.
        let soon = Duration::from_millis(random.below(12));
        if tokio::time::timeout(soon, node.start(log)).await.is_err() {
            node.disk.kill();
            node.start(log).await;
        }
        node
    }

    fn store(&self) -> &ReplicatedStore {
        self.store.as_ref().expect("it runs")
    }

    fn is_connected(&self) -> bool {
        *self.connection.borrow()
    }

    async fn start(&mut self, log: &SimulatedLog) {
        let (handle, connection) = log.cuttable();
        self.connection = connection;
        // Where the log is away for a moment, whoever starts nodes tries again.
        for _ in 0..100 {
            let copy = Arc::new(self.disk.open(LOG_ID, self.segment_bytes).expect("a copy"));
            let options = Options {
                absent_after: Duration::from_secs(5),
                maintenance_interval: Duration::from_secs(3),
                snapshot_bytes: self.snapshot_bytes,
                ..Options::default()
            };
            let log = Arc::new(handle.clone());
            match ReplicatedStore::open(log, copy, Arc::new(SystemClock), options).await {
                Ok(store) => {
                    self.store = Some(store);
                    return;
                }
                Err(OpenError::Unavailable(_)) => tokio::time::sleep(Duration::from_secs(1)).await,
                Err(error) => panic!("it does not open: {error}"),
            }
        }
        panic!("the log stays away");
    }

    /// Ends it at once; its disk keeps what was written, or what was synced and some of the rest.
    fn stop(&mut self, power_cut: Option<u64>) {
        match power_cut {
            Some(seed) => self.disk.cut_power(seed),
            None => self.disk.kill(),
        }
        self.store().abort();
        self.store = None;
    }
}

/// What came of a run.
#[derive(Debug, Default)]
struct Outcome {
    trimmed: u64,
    snapshots: u64,
    /// Nodes that started from a snapshot.
    loaded: u64,
}

#[tokio::test(start_paused = true)]
async fn nodes_with_disks_stay_equal_while_the_log_is_trimmed() {
    let mut all = Outcome::default();
    for seed in seeds() {
        let outcome = run(seed).await;
        all.trimmed += u64::from(outcome.trimmed > 0);
        all.snapshots += outcome.snapshots;
        all.loaded += outcome.loaded;
    }
    if seeds().count() > 20 {
        let most = seeds().count() as u64 / 2;
        assert!(
            all.trimmed > most && all.snapshots > most && all.loaded > most,
            "{all:?}"
        );
    }
}

async fn run(seed: u64) -> Outcome {
    let mut random = Random::seeded(seed);
    let log = SimulatedLog::with_max_message_bytes(LOG_ID, 300 + random.below(600) as usize)
        .with_max_in_flight(1 + random.below(4) as usize);
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        nodes.push(Node::new(&log, &mut random).await);
    }
    make_topic(nodes[0].store()).await;
    let mut outcome = Outcome::default();
    let mut acknowledged: BTreeMap<String, u64> = BTreeMap::new();
    let mut counted = 0;
    for step in 0..40 {
        log.plan([fault(&mut random), fault(&mut random)]);
        log.set_delay(Duration::from_millis(random.below(4)));
        let at = random.below(NODES as u64) as usize;
        match random.below(14) {
            0 | 1 => {
                let power_cut = (random.below(2) == 0).then(|| random.below(u64::MAX));
                nodes[at].stop(power_cut);
                nodes[at].start(&log).await;
            }
            2 => {
                // Its machine is lost, and another takes its place.
                nodes[at].stop(None);
                nodes[at] = Node::new(&log, &mut random).await;
                let replication = nodes[at].store().replication();
                outcome.loaded += u64::from(replication.first > 1);
            }
            3 => nodes[at].connection.send(false).expect("it listens"),
            4 => nodes
                .iter()
                .for_each(|node| node.connection.send(true).expect("it listens")),
            5 => {
                log.set_away(true);
                tokio::time::sleep(Duration::from_millis(random.below(4000))).await;
                log.set_away(false);
            }
            6 => log.set_chunks_left(Some(random.below(4) as u32)),
            7 => log.set_chunks_left(None),
            8 => tokio::time::sleep(LONG).await,
            9 if nodes[at].is_connected() => {
                counted += u64::from(count_up(nodes[at].store()).await);
            }
            _ => publish(&mut random, step, &nodes, &mut acknowledged).await,
        }
        compare(seed, &nodes).await;
    }
    log.set_chunks_left(None);
    nodes
        .iter()
        .for_each(|node| node.connection.send(true).expect("it listens"));
    tokio::time::sleep(LONG).await;
    check(seed, &nodes, &acknowledged, counted).await;
    outcome.trimmed = log.bounds().await.expect("bounds").first - 1;
    let snapshots = log.snapshots().expect("snapshots").list().await;
    outcome.snapshots = snapshots.expect("a list").len() as u64;
    outcome
}

/// Publishes from all nodes that reach the log at once; some ids are published by two of them.
async fn publish(
    random: &mut Random,
    step: u64,
    nodes: &[Node],
    acknowledged: &mut BTreeMap<String, u64>,
) {
    let mut under_way = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        for number in 0..random.below(4) {
            let of = if random.below(4) == 0 { 9 } else { at };
            let id = format!("{step}-{of}-{number}");
            let length = if of == 9 { 0 } else { random.below(1200) };
            let payload = format!("\"{id}{}\"", "x".repeat(length as usize));
            under_way.push((id.clone(), node.store().commit(event(Some(&id), &payload))));
        }
    }
    for (id, commit) in under_way {
        match commit.await {
            Ok(receipt) => match receipt.events[0] {
                EventOutcome::Stored(placed) | EventOutcome::Duplicate(placed) => {
                    let before = acknowledged.insert(id, placed.seq);
                    assert!(before.is_none_or(|seq| seq == placed.seq));
                }
                ref other => panic!("{other:?}"),
            },
            Err(CommitError::Unavailable { .. } | CommitError::Unknown { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Copies that are equally far are equal.
async fn compare(seed: u64, nodes: &[Node]) {
    let mut known: BTreeMap<u64, (u64, Vec<String>)> = BTreeMap::new();
    for node in nodes {
        let before = node.store().replication();
        let records = records(node.store()).await;
        // It may have applied something while it was read.
        if node.store().replication().applied != before.applied {
            continue;
        }
        let found = (before.digest, records);
        match known.get(&before.applied) {
            Some(other) => assert_eq!(*other, found, "seed {seed}: equal copies"),
            None => drop(known.insert(before.applied, found)),
        }
    }
}

async fn check(seed: u64, nodes: &[Node], acknowledged: &BTreeMap<String, u64>, counted: u64) {
    for node in nodes {
        // One more commit brings to an end whatever was in doubt.
        for _ in 0..200 {
            match node.store().commit(Batch::new()).await {
                Ok(_) => break,
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
        assert_eq!(node.store().status().failed, None, "seed {seed}");
    }
    for node in nodes {
        node.store().barrier().await.expect("caught up");
    }
    let first = records(nodes[0].store()).await;
    let topic = nodes[0].store().topic(TOPIC).expect("a topic");
    assert_eq!(first.len() as u64, topic.tail_seq, "seed {seed}: no gaps");
    for node in nodes {
        assert_eq!(records(node.store()).await, first, "seed {seed}");
        let (one, other) = (node.store().replication(), nodes[0].store().replication());
        assert_eq!(one.digest, other.digest, "seed {seed}");
    }
    for (id, seq) in acknowledged {
        let named = format!("\"id\":\"{id}\"");
        let holders = first.iter().filter(|record| record.contains(&named));
        assert_eq!(holders.count(), 1, "seed {seed}: {id} is there once");
        let record = &first[*seq as usize - 1];
        assert!(record.contains(&named), "seed {seed}: {id} is at {seq}");
    }
    let counter = nodes[1].store().get("counter").await.expect("a read");
    let counter = counter.map_or(0, |counter| u64::from(counter.value[0]));
    assert!(counter >= counted, "seed {seed}: {counter} of {counted}");
}
