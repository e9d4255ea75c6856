//! The end of a run: members stay and acknowledge, nothing else happens, and within bounded virtual time everything has
//! to be delivered, settled and given back.

use crate::operations::{Operation, groups_of, resume};
use crate::spec::{POISON, SPECS, TOPICS, WINDOW};
use crate::world::World;
use fastrand::Rng;
use prombus::{ReadFrom, ReadLimit, StoredEvent};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// Virtual seconds within which operations have to answer.
const OPERATIONS_SECS: u64 = 120;
/// Virtual seconds within which keys behind a poisoned one have to flow.
const FLOW_SECS: u64 = 20;
/// Virtual seconds within which everything has to be delivered and settled.
const SETTLE_SECS: u64 = 120;
/// How many events of the poisoned key are published: more than the window holds.
const POISONED_EVENTS: usize = 3 * WINDOW;

/// Checks that everything comes to its end.
pub(crate) async fn check(world: &Arc<World>, mut under_way: JoinSet<()>, random: &mut Rng) {
    let all = async { while under_way.join_next().await.is_some() {} };
    let waited = tokio::time::timeout(Duration::from_secs(OPERATIONS_SECS), all);
    if waited.await.is_err() {
        world.violated("an operation does not answer");
    }
    world.calm_down();
    world.note("calm");
    for group in TOPICS.into_iter().flat_map(groups_of) {
        resume(world, &group).await;
    }
    // Members that are away come back, and what they held runs out or waits its turn.
    tokio::time::sleep(Duration::from_secs(10)).await;
    check_poison(world).await;
    for topic in TOPICS {
        for _ in 0..3 {
            let publish = Operation::publish(topic, random);
            publish.run(world.clone()).await;
        }
    }
    let mut open = vec![String::new()];
    for _ in 0..SETTLE_SECS / 5 {
        open = find_open(world).await;
        if open.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    for what in open {
        world.violated(&what);
    }
}

/// While events of one key fail, all other keys have to flow.
async fn check_poison(world: &Arc<World>) {
    world.poison(true);
    for at in 0..POISONED_EVENTS + 4 {
        let publish = Operation::Publish {
            topic: "a.x",
            key: Some(if at < POISONED_EVENTS { POISON } else { "k1" }),
            wanted: true,
            bytes: 1,
        };
        publish.run(world.clone()).await;
    }
    tokio::time::sleep(Duration::from_secs(FLOW_SECS)).await;
    let keyed = &SPECS[1];
    for event in stored(world, "a.x").await {
        let is_poison = event.key().as_deref() == Some(POISON);
        let is_due = !is_poison && world.model().is_required(keyed, &event);
        if is_due && !world.model().was_delivered(keyed.group, &event.id()) {
            let seq = event.seq();
            world.violated(&format!("a.x {seq} waits though its key is free"));
            break;
        }
    }
    world.poison(false);
}

/// What is not delivered, not settled or not given back.
async fn find_open(world: &World) -> Vec<String> {
    let mut open = Vec::new();
    for topic in TOPICS {
        let events = stored(world, topic).await;
        for spec in SPECS.iter().filter(|spec| spec.follows(topic)) {
            let model = world.model();
            let missed = events.iter().find(|event| {
                model.is_required(spec, event) && !model.was_delivered(spec.group, &event.id())
            });
            if let Some(missed) = missed {
                open.push(format!("{} never got {topic} {}", spec.group, missed.seq()));
            }
        }
        for info in world.bus.groups(topic).await.unwrap_or_default() {
            if info.lag > 0 {
                open.push(format!("{} of {topic} has a lag: {info:?}", info.group));
            }
            let is_full = |member: &prombus::MemberInfo| member.room < member.max_in_flight;
            if info.members.iter().any(is_full) {
                open.push(format!("{} of {topic} lost credit: {info:?}", info.group));
            }
        }
    }
    open
}

async fn stored(world: &World, topic: &str) -> Vec<StoredEvent> {
    let limit = ReadLimit {
        events: 10_000,
        bytes: usize::MAX,
    };
    let page = world
        .bus
        .store()
        .read(&topic.into(), ReadFrom::Seq(1), limit)
        .await;
    page.map(|page| page.events).unwrap_or_default()
}
