//! Three nodes on one log, with faults and restarts that a seed decides.

use crate::support::{TOPIC, event, make_topic, node, records};
use prombus_replicated::ReplicatedStore;
use prombus_replicated::simulated::{Fault, SimulatedLog};
use prombus_store::conformance::Random;
use prombus_store::{Batch, Change, CommitError, EventOutcome, Expect, Store};
use std::collections::BTreeMap;
use std::time::Duration;

/// What happens to the next append.
pub(crate) fn fault(random: &mut Random) -> Fault {
    match random.below(14) {
        0 => Fault::LostAnswer,
        1 => Fault::LostMessage,
        2 => Fault::Twice,
        3 => Fault::Late,
        4 => Fault::Slow,
        5 => Fault::Full,
        _ => Fault::None,
    }
}

pub(crate) fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    match number("PROMBUS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("PROMBUS_SEEDS").unwrap_or(100),
    }
}

#[tokio::test(start_paused = true)]
async fn copies_are_equal_and_nothing_acknowledged_is_lost_in_a_crash() {
    for seed in seeds() {
        run(seed).await;
    }
}

async fn run(seed: u64) {
    let mut random = Random::seeded(seed);
    let log = SimulatedLog::with_max_message_bytes(seed, 300 + random.below(600) as usize)
        .with_max_in_flight(1 + random.below(4) as usize);
    let mut nodes = Vec::new();
    for _ in 0..3 {
        nodes.push(node(&log).await);
    }
    make_topic(&nodes[0]).await;
    // Ids with the position that was acknowledged.
    let mut acknowledged: BTreeMap<String, u64> = BTreeMap::new();
    let mut counted = 0;
    for step in 0..40 {
        log.plan([fault(&mut random), fault(&mut random), fault(&mut random)]);
        log.set_delay(Duration::from_millis(random.below(4)));
        match random.below(10) {
            0 => {
                let at = random.below(3) as usize;
                nodes[at].abort();
                nodes[at] = node(&log).await;
            }
            1 => {
                log.set_away(true);
                tokio::time::sleep(Duration::from_millis(random.below(4000))).await;
                log.set_away(false);
            }
            2 => counted += u64::from(count_up(&nodes[random.below(3) as usize]).await),
            _ => publish(&mut random, step, &nodes, &mut acknowledged).await,
        }
    }
    check(seed, &nodes, &acknowledged, counted).await;
}

/// Publishes from all nodes at once; some ids are published by two of them.
async fn publish(
    random: &mut Random,
    step: u64,
    nodes: &[ReplicatedStore],
    acknowledged: &mut BTreeMap<String, u64>,
) {
    let mut under_way = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        for number in 0..random.below(3) {
            let of = if random.below(4) == 0 { 9 } else { at };
            let id = format!("{step}-{of}-{number}");
            let payload = format!(
                "\"{id}{}\"",
                "x".repeat(random.below(700) as usize * (of / 9))
            );
            let payload = if of == 9 {
                format!("\"{id}\"")
            } else {
                payload
            };
            under_way.push((id.clone(), node.commit(event(Some(&id), &payload))));
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

/// Adds one to a counter by compare-and-set, if nobody comes between.
pub(crate) async fn count_up(node: &ReplicatedStore) -> bool {
    let found = node.get("counter").await.expect("a read");
    let (expect, value) = match &found {
        None => (Expect::Absent, 0),
        Some(found) => (Expect::Version(found.version), found.value[0]),
    };
    let mut batch = Batch::atomic();
    batch.change(Change::Put {
        key: "counter".into(),
        value: [value + 1].into(),
        expect,
    });
    node.commit(batch).await.is_ok()
}

async fn check(
    seed: u64,
    nodes: &[ReplicatedStore],
    acknowledged: &BTreeMap<String, u64>,
    counted: u64,
) {
    for node in nodes {
        // One more commit brings to an end whatever was in doubt.
        for _ in 0..200 {
            match node.commit(Batch::new()).await {
                Ok(_) => break,
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }
    for node in nodes {
        node.barrier().await.expect("caught up");
    }
    let first = records(&nodes[0]).await;
    let topic = nodes[0].topic(TOPIC).expect("a topic");
    assert_eq!(first.len() as u64, topic.tail_seq, "seed {seed}: no gaps");
    for node in nodes {
        assert_eq!(records(node).await, first, "seed {seed}: equal copies");
        assert_eq!(
            node.replication().digest,
            nodes[0].replication().digest,
            "seed {seed}"
        );
        assert_eq!(node.status().failed, None, "seed {seed}");
    }
    for (id, seq) in acknowledged {
        let holders = first
            .iter()
            .filter(|record| record.contains(&format!("\"id\":\"{id}\"")));
        assert_eq!(holders.count(), 1, "seed {seed}: {id} is there once");
        let record = &first[*seq as usize - 1];
        assert!(
            record.contains(id.as_str()),
            "seed {seed}: {id} is at {seq}"
        );
    }
    let counter = nodes[1].get("counter").await.expect("a read");
    let counter = counter.map_or(0, |counter| u64::from(counter.value[0]));
    assert!(counter >= counted, "seed {seed}: {counter} of {counted}");
}
