//! Whether what a log shows is what the model allows.

use super::model::{Event, Topic, Unit, World};
use crate::reading::{Seen, SeenTopic};
use prombus_store::{GeneratedId, StoredEvent};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Finds after which of the units the world looks as seen, at least after `at_least` of them; returns it so.
pub(super) fn after_crash(
    base: &World,
    units: &[Unit],
    at_least: usize,
    seen: &Seen,
    gone_before_ms: u64,
) -> World {
    let mut world = base.clone();
    let mut why_not = Vec::new();
    for count in 0..=units.len() {
        if count > 0 {
            world.apply(&units[count - 1]);
        }
        if count < at_least {
            continue;
        }
        match compare(&world, seen, gone_before_ms) {
            Ok(()) => return settled(world, seen),
            Err(why) => why_not.push(format!("after {count} units: {why}")),
        }
    }
    panic!(
        "of {} units at least {at_least} were acknowledged, and the log shows none of the states since:\n{}",
        units.len(),
        why_not.join("\n")
    );
}

/// Compares everything; tombstones from before `gone_before_ms` may be gone.
pub(super) fn compare(world: &World, seen: &Seen, gone_before_ms: u64) -> Result<(), String> {
    let names: Vec<_> = world.topics.keys().collect();
    let seen_names: Vec<_> = seen.topics.keys().collect();
    if names != seen_names {
        return Err(format!("topics {seen_names:?} instead of {names:?}"));
    }
    let keyed: BTreeMap<_, _> = seen
        .keyed
        .iter()
        .map(|(key, keyed)| (key.clone(), (keyed.version, keyed.value.clone())))
        .collect();
    if keyed != world.keyed {
        let expected = &world.keyed;
        return Err(format!("keyed records {keyed:?} instead of {expected:?}"));
    }
    for (topic, seen) in world.topics.values().zip(seen.topics.values()) {
        let compared = compare_topic(topic, seen, gone_before_ms);
        compared.map_err(|why| format!("topic {}: {why}", seen.info.name))?;
    }
    Ok(())
}

/// The world with the first positions that retention turns out to have chosen.
pub(super) fn settled(mut world: World, seen: &Seen) -> World {
    for (name, seen) in &seen.topics {
        if let Some(topic) = world.topic_mut(name) {
            topic.first_seq = seen.info.first_seq;
            topic.may_first_seq = seen.info.first_seq;
        }
    }
    world
}

fn compare_topic(topic: &Topic, seen: &SeenTopic, gone_before_ms: u64) -> Result<(), String> {
    let info = &seen.info;
    if info.options != topic.options {
        return Err(format!("options {:?}", info.options));
    }
    if info.tail_seq + 1 != topic.next_seq {
        let expected = topic.next_seq - 1;
        return Err(format!("tail {} instead of {expected}", info.tail_seq));
    }
    let allowed = topic.first_seq..=topic.may_first_seq;
    if !allowed.contains(&info.first_seq) {
        return Err(format!("first {} outside {allowed:?}", info.first_seq));
    }
    if !topic.was_compacted && info.events != seen.events.len() as u64 {
        return Err(format!("{} events are counted", info.events));
    }
    let seen_events: BTreeMap<u64, &StoredEvent> = seen
        .events
        .iter()
        .map(|event| (event.seq(), event))
        .collect();
    for event in topic.events.range(info.first_seq..).map(|(_, event)| event) {
        match seen_events.get(&event.seq) {
            Some(stored) => compare_event(event, stored)?,
            None if may_be_gone(topic, event, &seen_events, gone_before_ms) => {}
            None => return Err(format!("{event:?} is missing")),
        }
    }
    if let Some(stray) = seen
        .events
        .iter()
        .find(|event| event.seq() >= topic.next_seq)
    {
        return Err(format!("{stray:?} was never published"));
    }
    check_order(topic);
    Ok(())
}

fn compare_event(event: &Rc<Event>, stored: &StoredEvent) -> Result<(), String> {
    let planned = &event.planned;
    if stored.payload() != planned.payload {
        return Err(format!("{stored:?} instead of {event:?}"));
    }
    event.learn(&stored.id(), stored.ts());
    assert_eq!(stored.json(), event.json());
    assert_eq!(stored.key().as_deref(), planned.key.as_deref());
    assert_eq!(stored.is_tombstone(), planned.tombstone);
    assert_eq!(stored.has_client_id(), planned.id.is_some());
    Ok(())
}

/// Whether compaction may have taken an event: a newer one of its key is there, or it is an old tombstone of which
/// nothing older is left.
fn may_be_gone(
    topic: &Topic,
    event: &Event,
    seen: &BTreeMap<u64, &StoredEvent>,
    gone_before_ms: u64,
) -> bool {
    let key = event.planned.key.as_deref();
    if !topic.was_compacted || key.is_none() {
        return false;
    }
    if topic.latest_of(key) > Some(event.seq) {
        return true;
    }
    // When an event with a ts of its own was stored is not told.
    let ts = match event.planned.ts {
        Some(_) => 0,
        None => event.learned.get().map_or(u64::MAX, |learned| learned.ts),
    };
    let mut older = seen.range(..event.seq).map(|(_, event)| event);
    let is_last_trace = !older.any(|event| event.key().as_deref() == key);
    event.planned.tombstone && ts < gone_before_ms && is_last_trace
}

/// Ids made by the log rise, and its own ts never falls.
fn check_order(topic: &Topic) {
    let (mut last_id, mut last_ms, mut last_ts) = (String::new(), 0, 0);
    for event in topic.events.values() {
        let Some(learned) = event.learned.get() else {
            continue;
        };
        if event.planned.ts.is_none() {
            assert!(learned.ts >= last_ts, "time went back at {event:?}");
            last_ts = learned.ts;
        }
        if event.planned.id.is_none() {
            let made = GeneratedId::parse(&learned.id).expect("a made id");
            assert!(learned.id > last_id && made.ms >= last_ms, "{event:?}");
            (last_id, last_ms) = (learned.id.clone(), made.ms);
        }
    }
}
