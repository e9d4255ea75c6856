//! Acknowledging and publishing in one step through the remote client.

use super::*;
use prombus::{ReadFrom, ReadLimit};
use prombus_client::{AckPublishError, PublishBatch};

/// A batch with one event.
fn result(client: &Client, topic: &str, value: u64) -> PublishBatch {
    let mut batch = client.batch();
    batch.add_value(topic, &value, &PLAIN);
    batch
}

/// The payloads of a topic as numbers, in their order.
async fn stored(bus: &Bus, topic: &str) -> Vec<u64> {
    let limit = ReadLimit {
        events: 10_000,
        bytes: usize::MAX,
    };
    let page = within(bus.store().read(&topic.into(), ReadFrom::Seq(1), limit)).await;
    let events = page.unwrap().events;
    let payloads = events.iter().map(|event| event.payload());
    payloads.map(|payload| payload.parse().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_is_as_in_process() {
    on_both(|server| async move {
        const EVENTS: u64 = 300;
        let client = server.client().await;
        for answer in (0..EVENTS)
            .map(|number| client.publish("in", &number, &PLAIN))
            .collect::<Vec<_>>()
        {
            within(answer).await.unwrap();
        }
        let subscription = within(client.subscribe("in", "g", earliest()))
            .await
            .unwrap();
        let mut answers = Vec::new();
        for _ in 0..EVENTS - 10 {
            let delivery = within(subscription.next()).await.unwrap();
            let batch = result(&client, "out", delivery.value().unwrap());
            answers.push(delivery.ack_and_publish(batch));
        }
        for (at, answer) in answers.into_iter().enumerate() {
            let published = within(answer).await.unwrap();
            assert_eq!((published.len(), published[0].seq), (1, at as u64 + 1));
        }
        // The last ten at once, with one result.
        let mut rest = Vec::new();
        while rest.len() < 10 {
            rest.extend(within(subscription.next_batch(10)).await);
        }
        let sum = Delivery::ack_all_and_publish(rest, result(&client, "out", 1_000));
        assert_eq!(within(sum).await.unwrap().len(), 1);
        let bus = server.gateway.bus();
        let mut expected: Vec<u64> = (0..EVENTS - 10).collect();
        expected.push(1_000);
        assert_eq!(stored(bus, "out").await, expected);
        let group = within(bus.group("in", "g")).await.unwrap();
        assert_eq!((group.cursor, group.in_flight), (EVENTS, 0));
        within(client.close()).await.unwrap();
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_happens_not_at_all() {
    let server = Running::in_memory().await;
    let client = server.client().await;
    for number in 0..3 {
        within(client.publish("in", &number, &PLAIN)).await.unwrap();
    }
    let taken = PublishOptions {
        id: Some("taken"),
        ..*PLAIN
    };
    within(client.publish("out", &7, &taken)).await.unwrap();
    let subscription = within(client.subscribe("in", "g", earliest()))
        .await
        .unwrap();
    let take = async || within(subscription.next()).await.unwrap();

    let mut conflicting = result(&client, "out", 1);
    conflicting.add("out", "8", &taken);
    let refused = within(take().await.ack_and_publish(conflicting)).await;
    let error = refused.unwrap_err();
    assert_eq!(error.code(), "id_conflict");
    assert!(error.to_string().starts_with("publish 1: "), "{error}");

    let mut broken = result(&client, "out", 1);
    broken.add("out", "{", &PLAIN);
    let refused = within(take().await.ack_and_publish(broken)).await;
    assert!(
        matches!(refused, Err(AckPublishError::NotPublished { at: 1, .. })),
        "{refused:?}"
    );
    let none = within(Delivery::ack_all_and_publish([], client.batch())).await;
    assert_eq!(none, Err(AckPublishError::NotOneGroup));

    let third = take().await;
    let id = third.event.id().to_owned();
    within(third.ack_confirmed()).await.unwrap();
    let bus = server.gateway.bus();
    assert_eq!(stored(bus, "out").await, [7]);
    let group = within(bus.group("in", "g")).await.unwrap();
    assert_eq!((group.in_flight, group.counts.acked), (2, 1), "{id}");
    within(client.close()).await.unwrap();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_make_no_step_twice() {
    const EVENTS: u64 = 200;
    let mut unknown = 0;
    for seed in 100..120 {
        let server = Running::in_memory().await;
        let bus = server.gateway.bus();
        let mut batch = bus.batch();
        for number in 0..EVENTS {
            batch.add_value("in", &number, &prombus::PublishOptions::default());
        }
        within(bus.publish_batch(batch)).await;
        let proxy = cutting_proxy(server.address, seed, 12).await;
        let client = within(Client::connect(&format!("ws://{proxy}"), options()))
            .await
            .unwrap();
        let narrow = SubscribeOptions {
            max_in_flight: 10,
            max_attempts: Some(1_000),
            ..earliest()
        };
        let subscription = within(client.subscribe("in", "g", narrow)).await.unwrap();
        while within(bus.group("in", "g")).await.unwrap().lag > 0 {
            let waiting = Duration::from_millis(20);
            let taken = tokio::time::timeout(waiting, subscription.next_batch(5)).await;
            let steps: Vec<_> = taken
                .unwrap_or_default()
                .into_iter()
                .map(|delivery| {
                    let batch = result(&client, "out", delivery.value().unwrap());
                    delivery.ack_and_publish(batch)
                })
                .collect();
            for step in steps {
                match within(step).await {
                    Ok(_) | Err(AckPublishError::ConnectionLost) => {}
                    Err(AckPublishError::UnknownOutcome) => unknown += 1,
                    Err(AckPublishError::Refused(error)) if error.code == "lease_lost" => {}
                    Err(error) => panic!("seed {seed}: {error}"),
                }
            }
        }
        let mut outputs = stored(bus, "out").await;
        outputs.sort_unstable();
        let inputs: Vec<u64> = (0..EVENTS).collect();
        assert_eq!(outputs, inputs, "seed {seed}");
        within(client.close()).await.unwrap();
        server.stop().await;
    }
    assert!(unknown > 0, "the cuts hit no step");
}
