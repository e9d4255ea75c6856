//! What rows about state do with a bus: publishing events of many keys, and reading a topic to its end.

use crate::Outcome;
use crate::log_work::BATCH_EVENTS;
use prombus::{Bus, PublishOptions, StoredEvent};

/// Spreads numbers over keys in no order, as they come in life, and the same in every run.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The key of an event; each of so many keys has about as many events.
pub(crate) fn key_of(number: u64, keys: u64) -> String {
    let spread = (u128::from(number.wrapping_mul(SPREAD)) * u128::from(keys)) >> 64;
    format!("order-{spread:08}")
}

/// Publishes events, each with one of so many keys.
pub(crate) async fn publish_keyed(bus: &Bus, topic: &str, events: u64, keys: u64) -> Outcome<()> {
    for start in (0..events).step_by(BATCH_EVENTS as usize) {
        let mut batch = bus.batch();
        for number in start..events.min(start + BATCH_EVENTS) {
            let key = key_of(number, keys);
            let payload = format!(
                r#"{{"number":{number},"total":{},"street":"Main Street 5","city":"Springfield","open":true}}"#,
                number % 99_991
            );
            let options = PublishOptions {
                key: Some(&key),
                ..PublishOptions::default()
            };
            batch.add(topic, &payload, &options);
        }
        for published in bus.publish_batch(batch).await {
            published?;
        }
    }
    Ok(())
}

/// All events of a topic.
pub(crate) async fn read_all(bus: &Bus, topic: &str) -> Outcome<Vec<StoredEvent>> {
    let mut events = Vec::new();
    let mut follow = bus.follow(topic, 1)?;
    while let Some(page) = follow.read_on().await? {
        events.extend(page.events);
    }
    Ok(events)
}
