//! Marks that are seen until they run out, alone and inside a transaction.

use super::*;
use prombus::{
    Bus, BusOptions, DEFAULT_DEDUPE_TTL_MS, Dedupe, PublishOptions, StartAt, SubscribeOptions,
};
use prombus_store::ManualClock;
use prombus_store::memory::MemoryStore;
use std::sync::atomic::{AtomicU32, Ordering};

fn count(connection: &Connection) -> i64 {
    let all = "SELECT count(*) FROM prombus_dedupe";
    connection
        .query_row(all, [], |row| row.get(0))
        .expect("a count")
}

#[tokio::test]
async fn marks_are_seen_until_they_run_out() {
    let clock = Arc::new(ManualClock::at(1_000));
    let connection = Connection::open_in_memory().expect("a database");
    let marks = SqliteDedupe::new(connection, clock.clone()).expect("a table");
    assert_eq!(marks.seen("mail", "a").await, Ok(false));
    marks
        .mark("mail", "a", DEFAULT_DEDUPE_TTL_MS)
        .await
        .expect("a mark");
    assert_eq!(marks.seen("mail", "a").await, Ok(true));
    assert_eq!(marks.seen("mail", "b").await, Ok(false));
    assert_eq!(marks.seen("post", "a").await, Ok(false), "scopes are apart");
    clock.advance(DEFAULT_DEDUPE_TTL_MS - 1);
    assert_eq!(marks.seen("mail", "a").await, Ok(true));
    clock.advance(1);
    assert_eq!(marks.seen("mail", "a").await, Ok(false));
    marks.mark("mail", "a", 10).await.expect("it is renewed");
    assert_eq!(marks.seen("mail", "a").await, Ok(true));
}

#[test]
fn marks_that_ran_out_go_with_new_ones() {
    let connection = Connection::open_in_memory().expect("a database");
    init(&connection).expect("a table");
    for number in 0..100 {
        mark(&connection, "s", &format!("old-{number}"), 10, 0).expect("a mark");
    }
    assert_eq!(count(&connection), 100);
    for number in 0..30 {
        mark(&connection, "s", &format!("new-{number}"), 10, 10).expect("a mark");
    }
    assert_eq!(count(&connection), 30, "only what has not run out is kept");
    assert_eq!(purge(&connection, 20, 7).expect("a purge"), 7);
    assert_eq!(count(&connection), 23);
}

#[test]
fn a_mark_inside_a_transaction_goes_with_it() {
    let mut connection = Connection::open_in_memory().expect("a database");
    init(&connection).expect("a table");
    let transaction = connection.transaction().expect("a transaction");
    mark(&transaction, "s", "a", 10, 0).expect("a mark");
    assert!(seen(&transaction, "s", "a", 0).expect("an answer"));
    drop(transaction);
    assert!(!seen(&connection, "s", "a", 0).expect("an answer"));
    let transaction = connection.transaction().expect("a transaction");
    mark(&transaction, "s", "a", 10, 0).expect("a mark");
    transaction.commit().expect("it commits");
    assert!(seen(&connection, "s", "a", 0).expect("an answer"));
}

#[tokio::test]
async fn handlers_on_a_bus_are_not_called_again_for_what_is_marked_here() {
    let store = Arc::new(MemoryStore::new(Arc::new(prombus::SystemClock)));
    let bus = Bus::open(store, BusOptions::default()).expect("a bus");
    for number in 0..5 {
        let published = bus.publish("mails", &number, &PublishOptions::default());
        published.await.expect("published");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let connection = crate::open(folder.path().join("a.db")).expect("a database");
    let marks = SqliteDedupe::new(connection, Arc::new(prombus::SystemClock)).expect("a table");
    let calls = Arc::new(AtomicU32::new(0));
    let run = async |handled: u32| {
        let counted = calls.clone();
        let options = SubscribeOptions {
            from: StartAt::Earliest,
            ..SubscribeOptions::default()
        };
        let handler = move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Ok::<(), String>(()) }
        };
        let dedupe = Dedupe::new(marks.clone());
        let consumer = bus.subscribe_exactly_once("mails", "mailer", options, dedupe, handler);
        let consumer = consumer.await.expect("a consumer");
        for _ in 0..1_000 {
            let counts = consumer.counts();
            if counts.handled + counts.skipped == 5 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert_eq!(consumer.counts().handled, u64::from(handled));
        consumer.stop().await;
        assert_eq!(calls.load(Ordering::SeqCst), 5);
    };
    run(5).await;
    bus.remove_group("mails", "mailer")
        .await
        .expect("forgotten");
    run(0).await;
}
