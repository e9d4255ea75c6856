//! Handlers of the client whose effects are not repeated, with marks in SQLite.

use super::*;
use prombus_client::{Dedupe, EffectCounts, SubscribeError};
use prombus_sqlite::SqliteDedupe;
use std::sync::Mutex;

/// Which events a handler was called for.
type Effects = Arc<Mutex<Vec<u64>>>;

async fn subscribe(client: &Client, path: &Path, effects: &Effects) -> prombus_client::ExactlyOnce {
    let connection = prombus_sqlite::open(path).unwrap();
    let marks = SqliteDedupe::new(connection, Arc::new(SystemClock)).unwrap();
    let effects = effects.clone();
    let handler = move |delivery: Delivery| {
        let effects = effects.clone();
        async move {
            let number: u64 = delivery.value().unwrap();
            if number == 3 && delivery.context.attempt == 1 {
                return Err("not the first time");
            }
            effects.lock().unwrap().push(number);
            Ok(())
        }
    };
    let once = client.subscribe_exactly_once("t", "g", earliest(), Dedupe::new(marks), handler);
    within(once).await.unwrap()
}

async fn until(once: &prombus_client::ExactlyOnce, expected: EffectCounts) {
    within(async {
        while once.counts() != expected {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_effect_is_not_repeated_when_the_cursor_is_set_back() {
    on_both(|server| async move {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("marks.db");
        let client = server.client().await;
        for number in 0..10 {
            within(client.publish("t", &number, &PLAIN)).await.unwrap();
        }
        let effects = Effects::default();
        let once = subscribe(&client, &path, &effects).await;
        let handled = EffectCounts {
            handled: 10,
            ..EffectCounts::default()
        };
        until(&once, handled).await;
        within(once.stop()).await;
        within(client.seek("t", "g", StartAt::Earliest))
            .await
            .unwrap();
        within(client.publish("t", &10, &PLAIN)).await.unwrap();
        let again = subscribe(&client, &path, &effects).await;
        let skipped = EffectCounts {
            handled: 1,
            skipped: 10,
            unmarked: 0,
        };
        until(&again, skipped).await;
        within(again.stop()).await;
        let mut all = effects.lock().unwrap().clone();
        all.sort_unstable();
        assert_eq!(all, (0..11).collect::<Vec<_>>());
        assert_eq!(within(client.lag("t", "g")).await.unwrap().lag, 0);
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_may_not_be_asked_to_acknowledge_by_itself() {
    let server = Running::in_memory().await;
    let client = server.client().await;
    let connection = prombus_sqlite::rusqlite::Connection::open_in_memory().unwrap();
    let marks = SqliteDedupe::new(connection, Arc::new(SystemClock)).unwrap();
    let options = SubscribeOptions {
        manual_ack: true,
        ..earliest()
    };
    let handler = |_: Delivery| async { Ok::<(), String>(()) };
    let once = client.subscribe_exactly_once("t", "g", options, Dedupe::new(marks), handler);
    let error = within(once).await.unwrap_err();
    assert!(matches!(error, SubscribeError::InvalidField(_)), "{error}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cut_connections_repeat_no_effect() {
    const EVENTS: u64 = 100;
    for seed in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("marks.db");
        let server = Running::in_memory().await;
        let proxy = cutting_proxy(server.address, seed, 8).await;
        let client = within(Client::connect(&format!("ws://{proxy}"), options()))
            .await
            .unwrap();
        let effects = Effects::default();
        let once = subscribe(&client, &path, &effects).await;
        let answers: Vec<_> = (0..EVENTS)
            .map(|number| client.publish("t", &number, &PLAIN))
            .collect();
        for answer in answers {
            within(answer).await.unwrap();
        }
        within(async {
            while once.counts().handled < EVENTS {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
        within(once.stop()).await;
        let mut all = effects.lock().unwrap().clone();
        all.sort_unstable();
        assert_eq!(all, (0..EVENTS).collect::<Vec<_>>(), "seed {seed}");
        within(client.close()).await.unwrap();
        server.stop().await;
    }
}
