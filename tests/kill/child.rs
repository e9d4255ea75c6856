//! The process that is killed: publishers and a consumer for each topic, who say what they were told.

use crate::{GROUP, TOPICS};
use prombus::{
    Bus, BusOptions, Durability, PublishOptions, StartAt, SubscribeOptions, TopicConfig,
};
use prombus_log::FileStore;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The process stops by itself if nobody kills it.
const MAX_EVENTS: u64 = 20_000;
const PUBLISHERS: u64 = 3;
/// How far the publishers of a topic may run ahead of its consumer. On a slow disk they would otherwise have reply enough
/// to be killed before the consumer reply anything.
const MAX_AHEAD: usize = 40;

pub(crate) fn run(folder: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(work(folder));
}

async fn work(folder: &Path) {
    let (store, _) = FileStore::open(folder).expect("the folder opens");
    let options = BusOptions {
        // Written down often, so that kills also hit the middle of that.
        ack_flush_ms: 5,
        ..BusOptions::default()
    };
    let bus = Bus::open(Arc::new(store), options).expect("a bus");
    let telemetry = TopicConfig {
        durability: Durability::Os,
        ..TopicConfig::default()
    };
    if bus.topic(TOPICS[1]).is_err() {
        bus.create_topic(TOPICS[1], &telemetry)
            .await
            .expect("a topic");
    }
    let mut tasks = Vec::new();
    for topic in TOPICS {
        let ahead = Arc::new(Semaphore::new(MAX_AHEAD));
        tasks.push(tokio::spawn(consume(bus.clone(), topic, ahead.clone())));
        for publisher in 0..PUBLISHERS {
            let publishing = publish(bus.clone(), topic, publisher, ahead.clone());
            tasks.push(tokio::spawn(publishing));
        }
    }
    for task in tasks {
        task.await.expect("a task");
    }
}

async fn publish(bus: Bus, topic: &'static str, publisher: u64, ahead: Arc<Semaphore>) {
    for number in 0..MAX_EVENTS {
        ahead.acquire().await.expect("never closed").forget();
        let payload = (publisher, number);
        let published = bus
            .publish(topic, &payload, &PublishOptions::default())
            .await;
        let published = published.expect("an answer");
        report(&format!(
            "published {topic} {} {}",
            published.seq, published.id
        ));
    }
}

async fn consume(bus: Bus, topic: &'static str, ahead: Arc<Semaphore>) {
    let options = SubscribeOptions {
        from: StartAt::Earliest,
        max_in_flight: 16,
        max_attempts: Some(1000),
        ..SubscribeOptions::default()
    };
    let subscription = bus
        .subscribe(topic, GROUP, options)
        .await
        .expect("a member");
    while let Some(delivery) = subscription.next().await {
        let seq = delivery.event.seq();
        report(&format!("delivered {topic} {seq}"));
        // Some fail the first time, so that there is something above the cursor.
        if seq % 7 == 0 && delivery.context.attempt == 1 {
            delivery.nack("once more");
        } else {
            delivery.ack_confirmed().await.expect("settled");
            report(&format!("acknowledged {topic} {seq}"));
            ahead.add_permits(1);
        }
    }
}

/// One line, whole, at once.
fn report(line: &str) {
    let mut output = std::io::stdout().lock();
    let written = writeln!(output, "{line}").and_then(|()| output.flush());
    // When nobody listens any more, the end is near.
    drop(written);
}
