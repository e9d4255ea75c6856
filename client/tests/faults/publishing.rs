//! Publishing: order, batches, room, errors, and what becomes of publishes when the connection breaks.

use crate::broker::{Broker, Fault};
use crate::{connect, options, within};
use prombus_client::{Client, ClientOptions, PublishError, PublishOptions};
use serde::Serialize;
use std::sync::LazyLock;
use std::time::Duration;

static PLAIN: LazyLock<PublishOptions<'static>> = LazyLock::new(PublishOptions::default);

#[tokio::test]
async fn publishes_are_answered_in_order_and_share_messages() {
    let broker = Broker::start().await;
    let client = connect(&broker, options()).await;
    let answers: Vec<_> = (0..1_000)
        .map(|number| client.publish("t", &number, &PLAIN))
        .collect();
    for (at, answer) in answers.into_iter().enumerate() {
        let published = within(answer).await.unwrap();
        assert_eq!(published.seq, at as u64 + 1);
        assert!(!published.duplicate);
    }
    let expected: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
    assert_eq!(broker.state().payloads(), expected);
    let messages = broker.state().messages;
    assert!(messages < 100, "{messages} messages for 1000 publishes");
}

#[tokio::test]
async fn a_batch_gives_each_event_its_result() {
    let broker = Broker::start().await;
    let client = connect(&broker, options()).await;
    let own = PublishOptions {
        id: Some("own"),
        key: Some("k"),
        ..*PLAIN
    };
    let mut batch = client.batch();
    batch
        .add("t", "{\"a\": 1}", &own)
        .add("t", "{broken", &PLAIN)
        .add_value("t", "text", &PLAIN)
        .add("t", "{\"a\": 1}", &own);
    assert_eq!(batch.len(), 4);
    let results = within(client.publish_batch(batch)).await;
    assert_eq!(results[0].as_ref().unwrap().id.as_str(), "own");
    assert_eq!(results[1].as_ref().unwrap_err().code(), "bad_json");
    assert_eq!(results[2].as_ref().unwrap().seq, 2);
    // The publisher's own id really was there before.
    assert!(results[3].as_ref().unwrap().duplicate);
    assert_eq!(broker.state().payloads(), ["{\"a\": 1}", "\"text\""]);
}

#[tokio::test]
async fn what_is_no_json_is_refused_before_it_can_spoil_others() {
    let broker = Broker::start().await;
    let client = connect(&broker, options()).await;
    for text in ["", "]", "1,2", "{}}", "\"\n\"", "1]} garbage"] {
        let error = within(client.publish_text("t", text, &PLAIN))
            .await
            .unwrap_err();
        assert_eq!(error.code(), "bad_json", "{text:?}");
    }
    struct Unspeakable;
    impl Serialize for Unspeakable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("it cannot be reply"))
        }
    }
    let error = within(client.publish("t", &Unspeakable, &PLAIN))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("cannot be reply"), "{error}");
    within(client.publish_text("t", " [1,\n2] ", &PLAIN))
        .await
        .unwrap();
    assert_eq!(broker.state().log.len(), 1);
}

#[tokio::test]
async fn beyond_the_limit_a_publish_waits_for_room() {
    let broker = Broker::start().await;
    let few = ClientOptions {
        max_in_flight: 4,
        ..options()
    };
    let client = connect(&broker, few).await;
    let answers: Vec<_> = (0..50)
        .map(|number| client.publish("t", &number, &PLAIN))
        .collect();
    // On one thread nothing was sent yet, so only four found room.
    for answer in answers {
        within(answer).await.unwrap();
    }
    assert_eq!(broker.state().log.len(), 50);
    for number in 50..100 {
        within(client.room()).await.unwrap();
        // Whether anybody wants the answer makes no difference to one that found room.
        drop(client.publish("t", &number, &PLAIN));
    }
    within(client.close()).await.unwrap();
    let expected: Vec<String> = (50..100).map(|number| number.to_string()).collect();
    assert_eq!(broker.state().payloads()[50..], expected);
}

#[tokio::test]
async fn a_large_publish_takes_as_much_room_as_its_bytes() {
    let broker = Broker::start().await;
    let narrow = ClientOptions {
        max_in_flight: 10,
        max_in_flight_bytes: 10_000,
        ..options()
    };
    let client = connect(&broker, narrow).await;
    let large = "x".repeat(100_000);
    let answers: Vec<_> = (0..3)
        .map(|_| client.publish("t", &large, &PLAIN))
        .collect();
    for answer in answers {
        within(answer).await.unwrap();
    }
    assert_eq!(broker.state().log.len(), 3);
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_without_storing_twice() {
    let broker = Broker::start().await;
    broker.state().faults.push_back(Fault::BeforeReplies(2));
    let client = connect(&broker, options()).await;
    let published = within(client.publish("t", "once", &PLAIN)).await.unwrap();
    assert_eq!(broker.state().payloads(), ["\"once\""]);
    // It was stored by this very publish.
    assert!(!published.duplicate);
    assert_eq!(broker.state().connections, 2);
}

#[tokio::test]
async fn without_ids_a_lost_answer_is_an_unknown_outcome() {
    let broker = Broker::start().await;
    broker.state().faults.push_back(Fault::BeforeReplies(2));
    let plain = ClientOptions {
        idempotent: false,
        ..options()
    };
    let client = connect(&broker, plain).await;
    let error = within(client.publish("t", "maybe", &PLAIN))
        .await
        .unwrap_err();
    assert_eq!(error, PublishError::UnknownOutcome);
    assert_eq!(error.code(), "unknown_outcome");
    // The client is there for the next one, and does not send the first again.
    let published = within(client.publish("t", "next", &PLAIN)).await.unwrap();
    assert!(published.id.starts_with("made-"));
    assert_eq!(broker.state().payloads(), ["\"maybe\"", "\"next\""]);
}

#[tokio::test]
async fn a_server_that_goes_down_gets_the_events_after_its_restart() {
    let broker = Broker::start().await;
    broker.state().faults.push_back(Fault::ShuttingDown(3));
    let client = connect(&broker, options()).await;
    let answers: Vec<_> = (0..10)
        .map(|number| client.publish("t", &number, &PLAIN))
        .collect();
    for answer in answers {
        within(answer).await.unwrap();
    }
    let expected: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    assert_eq!(broker.state().payloads(), expected);
}

#[tokio::test]
async fn a_silent_server_is_left() {
    let broker = Broker::start().await;
    broker.state().faults.push_back(Fault::Silence(2));
    let impatient = ClientOptions {
        keep_alive: Duration::from_millis(50),
        ..options()
    };
    let client = connect(&broker, impatient).await;
    within(client.publish("t", "patient", &PLAIN))
        .await
        .unwrap();
    assert_eq!(broker.state().connections, 2);
    assert_eq!(broker.state().log.len(), 1);
}

#[tokio::test]
async fn closing_waits_for_answers_and_says_so_to_who_comes_late() {
    let broker = Broker::start().await;
    let client = connect(&broker, options()).await;
    let answers: Vec<_> = (0..100)
        .map(|number| client.publish("t", &number, &PLAIN))
        .collect();
    within(client.close()).await.unwrap();
    for answer in answers {
        within(answer).await.unwrap();
    }
    let error = within(client.publish("t", "late", &PLAIN))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "closed");
    assert_eq!(within(client.room()).await.unwrap_err().code(), "closed");
    within(client.close()).await.unwrap();
    assert_eq!(broker.state().log.len(), 100);
}

#[tokio::test]
async fn dropping_the_client_sends_what_it_has_and_stops() {
    let broker = Broker::start().await;
    let client = connect(&broker, options()).await;
    let answer = client.publish("t", "last", &PLAIN);
    drop(client);
    within(answer).await.unwrap();
    broker.until(|state| state.log.len() == 1).await;
}

#[tokio::test]
async fn giving_up_ends_everything_with_the_reason() {
    let broker = Broker::start().await;
    broker.state().faults.extend([Fault::BeforeFrame(1)]);
    broker.state().faults.extend([Fault::AtOnce; 10]);
    let mut quitter = options();
    quitter.reconnect.max_attempts = Some(3);
    let client = connect(&broker, quitter).await;
    let error = within(client.publish("t", 1_u8.to_string().as_str(), &PLAIN))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "gave_up");
    assert_eq!(client.ended().unwrap().code(), "gave_up");
    assert_eq!(within(client.close()).await.unwrap_err().code(), "gave_up");
}

#[tokio::test]
async fn nobody_there_is_said_at_once() {
    let error = within(Client::connect(
        "ws://127.0.0.1:1",
        ClientOptions::default(),
    ))
    .await
    .unwrap_err();
    assert_eq!(error.code(), "unreachable");
    assert!(
        error.to_string().contains("check that the server runs"),
        "{error}"
    );
    let error = within(Client::connect("ftp://nonsense", ClientOptions::default()))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "bad_url");
}
