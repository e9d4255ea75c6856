//! Acknowledging and publishing in one step, when the connection breaks around it.

use crate::broker::{Broker, Fault};
use crate::{connect, options, within};
use prombus_client::{
    AckPublishError, Client, ClientOptions, Delivery, PublishBatch, PublishOptions,
    SubscribeOptions, Subscription,
};

async fn subscribe(client: &Client) -> Subscription {
    let subscribing = client.subscribe("t", "g", SubscribeOptions::default());
    within(subscribing).await.unwrap()
}

async fn take(subscription: &Subscription) -> Delivery {
    within(subscription.next()).await.unwrap()
}

fn result(client: &Client, payload: &str) -> PublishBatch {
    let mut batch = client.batch();
    batch.add("out", payload, &PublishOptions::default());
    batch
}

#[tokio::test]
async fn steps_go_out_in_their_order_and_are_answered_each() {
    let broker = Broker::start().await;
    broker.store(300);
    let client = connect(&broker, options()).await;
    let subscription = subscribe(&client).await;
    let mut answers = Vec::new();
    for _ in 0..300 {
        let delivery = take(&subscription).await;
        // Far more than one message may have.
        let payload = format!("\"{}{}\"", "x".repeat(1_000), delivery.event.seq());
        answers.push(delivery.ack_and_publish(result(&client, &payload)));
    }
    for (at, answer) in answers.into_iter().enumerate() {
        let published = within(answer).await.unwrap();
        assert_eq!((published.len(), published[0].seq), (1, at as u64 + 1));
    }
    within(client.close()).await.unwrap();
    let state = broker.state();
    assert_eq!(state.outputs.len(), 300);
    assert!(state.group.settled.values().all(|&count| count == 1));
    assert!(state.seen.iter().all(|word| !word.starts_with("ACK")));
}

#[tokio::test]
async fn a_break_before_the_answer_leaves_the_outcome_open_and_nothing_is_doubled() {
    for (fault, has_happened) in [
        (Fault::BeforeFrame(2), false),
        (Fault::BeforeReplies(3), true),
        (Fault::Garbage(3), true),
    ] {
        let broker = Broker::start().await;
        broker.store(1);
        broker.state().faults.push_back(fault);
        let client = connect(&broker, options()).await;
        let subscription = subscribe(&client).await;
        let first = take(&subscription).await;
        let answer = within(first.ack_and_publish(result(&client, "1"))).await;
        assert_eq!(answer, Err(AckPublishError::UnknownOutcome), "{fault:?}");
        if !has_happened {
            let again = take(&subscription).await;
            assert_eq!(again.context.attempt, 2);
            within(again.ack_and_publish(result(&client, "2")))
                .await
                .unwrap();
        }
        within(client.close()).await.unwrap();
        let state = broker.state();
        assert_eq!(state.outputs.len(), 1, "{fault:?}");
        assert_eq!(state.group.settled.len(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_step_on_a_delivery_of_a_lost_connection_is_not_sent() {
    let broker = Broker::start().await;
    broker.store(1);
    broker.state().faults.push_back(Fault::AfterReplies(3));
    let client = connect(&broker, options()).await;
    let subscription = subscribe(&client).await;
    let lost = take(&subscription).await;
    // The third frame ends the connection, and the event comes again on the next one.
    lost.extend(60_000);
    let again = take(&subscription).await;
    assert_eq!(again.context.attempt, 2);
    let answer = within(lost.ack_and_publish(result(&client, "1"))).await;
    assert_eq!(answer, Err(AckPublishError::ConnectionLost));
    within(again.ack_and_publish(result(&client, "2")))
        .await
        .unwrap();
    assert_eq!(broker.state().outputs[0].payload, "2");
}

#[tokio::test]
async fn what_the_server_refuses_is_told() {
    let broker = Broker::start().await;
    broker.store(1);
    let client = connect(&broker, options()).await;
    let subscription = subscribe(&client).await;
    let delivery = take(&subscription).await;
    let id = delivery.event.id().to_owned();
    broker.state().settle(&id);
    let refused = within(delivery.ack_and_publish(result(&client, "1"))).await;
    assert_eq!(refused.unwrap_err().code(), "lease_lost");
    assert!(broker.state().outputs.is_empty());
}

#[tokio::test]
async fn events_have_ids_of_the_clients_making_unless_it_is_told_not_to() {
    for idempotent in [true, false] {
        let broker = Broker::start().await;
        broker.store(1);
        let options = ClientOptions {
            idempotent,
            ..options()
        };
        let client = connect(&broker, options).await;
        let subscription = subscribe(&client).await;
        let mut batch = result(&client, "1");
        let own = PublishOptions {
            id: Some("own"),
            ..PublishOptions::default()
        };
        batch.add("out", "2", &own);
        let delivery = take(&subscription).await;
        let published = within(delivery.ack_and_publish(batch)).await.unwrap();
        assert_eq!(published[1].id.as_str(), "own");
        let is_made_here = !published[0].id.starts_with("made-");
        assert_eq!(is_made_here, idempotent);
    }
}

#[tokio::test]
async fn a_client_that_ends_answers_its_steps() {
    let broker = Broker::start().await;
    broker.store(1);
    broker.state().faults.push_back(Fault::Silence(3));
    let quick = ClientOptions {
        close_timeout: std::time::Duration::from_millis(50),
        ..options()
    };
    let client = connect(&broker, quick).await;
    let subscription = subscribe(&client).await;
    let delivery = take(&subscription).await;
    let step = delivery.ack_and_publish(result(&client, "1"));
    within(client.close()).await.unwrap();
    let answer = within(step).await;
    assert!(
        matches!(
            answer,
            Err(AckPublishError::Ended(_) | AckPublishError::UnknownOutcome)
        ),
        "{answer:?}"
    );
}
