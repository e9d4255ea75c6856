//! Handlers that succeed, fail, panic, break constraints and end transactions.

use super::*;
use crate::{BusSource, Runner};
use prombus::{Bus, BusOptions, PublishOptions};
use prombus_store::memory::MemoryStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const TOPIC: &str = "payments";
const TABLES: &str = "CREATE TABLE ledger (seq INTEGER PRIMARY KEY, account TEXT, amount INTEGER);
    CREATE TABLE balances (account TEXT PRIMARY KEY, amount INTEGER NOT NULL);
    CREATE TABLE parents (id INTEGER PRIMARY KEY);
    CREATE TABLE children (parent INTEGER REFERENCES parents DEFERRABLE INITIALLY DEFERRED);";

fn event(seq: u64) -> Event {
    let text = format!(
        r#"{{"id":"id-{seq}","ts":1,"topic":"{TOPIC}","seq":{seq},"key":"k{}","payload":{seq}}}"#,
        seq % 2
    );
    Event::from_json(text).expect("a record")
}

fn tables() -> Connection {
    let connection = Connection::open_in_memory().expect("a database");
    connection.execute_batch(TABLES).expect("tables");
    connection
}

/// Two tables in one atomic batch.
fn book(transaction: &Transaction<'_>, event: &Event) -> rusqlite::Result<()> {
    let (key, amount) = (event.key().unwrap_or_default(), event.seq() as i64);
    transaction.execute(
        "INSERT INTO ledger (seq, account, amount) VALUES (?1, ?2, ?1)",
        (amount, &key),
    )?;
    transaction.execute(
        "INSERT INTO balances (account, amount) VALUES (?1, ?2)
         ON CONFLICT (account) DO UPDATE SET amount = amount + excluded.amount",
        (&key, amount),
    )?;
    Ok(())
}

fn ledger(connection: &Connection) -> Vec<i64> {
    let mut query = connection
        .prepare("SELECT seq FROM ledger ORDER BY seq")
        .expect("a query");
    let rows = query.query_map([], |row| row.get(0)).expect("rows");
    rows.collect::<Result<_, _>>().expect("rows")
}

fn options() -> TransactionalOptions {
    TransactionalOptions::new("books")
}

#[test]
fn a_failing_event_is_retried_and_what_comes_before_it_is_kept() {
    let mut calls = 0;
    let handler = move |transaction: &Transaction<'_>, event: &Event| {
        book(transaction, event).map_err(|error| error.to_string())?;
        if event.seq() == 3 {
            calls += 1;
            if calls < 3 {
                return Err(format!("not yet, {calls}"));
            }
        }
        Ok(())
    };
    let mut books = Transactional::open(tables(), TOPIC, options(), handler).expect("a projector");
    let events: Vec<Event> = (1..=5).map(event).collect();
    let first = books.apply(&events).expect("a batch");
    assert_eq!((first.events, first.retry_after_ms), (2, Some(20)));
    assert_eq!(
        (books.position().seq, ledger(books.connection())),
        (2, vec![1, 2])
    );
    let second = books.apply(&events[2..]).expect("a batch");
    assert_eq!((second.events, second.retry_after_ms), (0, Some(40)));
    let third = books.apply(&events[2..]).expect("a batch");
    assert_eq!((third.events, third.retry_after_ms), (1, None));
    assert_eq!(books.apply(&events[3..]).expect("a batch").events, 2);
    assert_eq!(ledger(books.connection()), [1, 2, 3, 4, 5]);
    let balances: i64 = books
        .connection()
        .query_row("SELECT sum(amount) FROM balances", [], |row| row.get(0))
        .expect("a sum");
    assert_eq!(balances, 15, "nothing was booked twice");
}

#[test]
fn after_the_last_attempt_it_stops_with_the_handlers_words() {
    let handler = |transaction: &Transaction<'_>, event: &Event| {
        book(transaction, event).map_err(|error| error.to_string())?;
        assert!(event.seq() != 2, "number two");
        Ok::<(), String>(())
    };
    let options = TransactionalOptions {
        max_attempts: 2,
        ..options()
    };
    let mut books = Transactional::open(tables(), TOPIC, options, handler).expect("a projector");
    let events: Vec<Event> = (1..=3).map(event).collect();
    assert_eq!(books.apply(&events).expect("a batch").events, 1);
    match books.apply(&events[1..]) {
        Err(ProjectError::HandlerFailed(failed)) => {
            assert_eq!((failed.seq, failed.attempts), (2, 2));
            assert!(failed.why.contains("panicked: number two"), "{failed}");
        }
        other => panic!("it went on: {other:?}"),
    }
    assert_eq!(
        (books.position().seq, ledger(books.connection())),
        (1, vec![1])
    );
}

#[test]
fn what_cannot_be_committed_is_found_and_the_rest_is_kept() {
    let handler = |transaction: &Transaction<'_>, event: &Event| {
        book(transaction, event)?;
        let parent = event.seq() as i64;
        if event.seq() != 6 {
            transaction.execute("INSERT INTO parents VALUES (?1)", [parent])?;
        }
        // Without its parent this is found out only when the transaction commits.
        transaction.execute("INSERT INTO children VALUES (?1)", [parent])?;
        Ok::<(), rusqlite::Error>(())
    };
    let connection = tables();
    connection
        .pragma_update(None, "foreign_keys", true)
        .expect("a pragma");
    let options = TransactionalOptions {
        max_attempts: 3,
        ..options()
    };
    let mut books = Transactional::open(connection, TOPIC, options, handler).expect("a projector");
    let events: Vec<Event> = (1..=8).map(event).collect();
    let mut from = 0;
    let failed = (0..20).find_map(|_| match books.apply(&events[from..]) {
        Ok(applied) => {
            from += applied.events as usize;
            None
        }
        Err(error) => Some(error.to_string()),
    });
    let failed = failed.expect("it stops");
    assert!(
        failed.contains("seq 6") && failed.contains("FOREIGN KEY"),
        "{failed}"
    );
    assert_eq!(ledger(books.connection()), [1, 2, 3, 4, 5]);
}

#[test]
fn a_handler_that_ends_the_transaction_stops_the_projector() {
    let handler = |transaction: &Transaction<'_>, _: &Event| transaction.execute_batch("COMMIT");
    let mut books = Transactional::open(tables(), TOPIC, options(), handler).expect("a projector");
    let error = books.apply(&[event(1)]).expect_err("it is not its own");
    assert!(
        error.to_string().contains("ended the transaction"),
        "{error}"
    );
}

#[test]
fn a_position_of_something_else_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || crate::open(folder.path().join("a.db")).expect("a database");
    crate::Changelog::open(open(), TOPIC, &crate::ChangelogOptions::new("books")).expect("a table");
    let taken = Transactional::open(open(), TOPIC, options(), book);
    assert!(
        matches!(taken, Err(ProjectError::OtherDefinition(_))),
        "{taken:?}"
    );
}

async fn bus_with(count: u64) -> Bus {
    let store = Arc::new(MemoryStore::new(Arc::new(prombus::SystemClock)));
    let bus = Bus::open(store, BusOptions::default()).expect("a bus");
    publish(&bus, count).await;
    bus
}

async fn publish(bus: &Bus, count: u64) {
    for number in 0..count {
        let key = format!("k{}", number % 3);
        let options = PublishOptions {
            key: Some(&key),
            ..PublishOptions::default()
        };
        bus.publish(TOPIC, &number, &options)
            .await
            .expect("published");
    }
}

#[tokio::test(start_paused = true)]
async fn a_runner_goes_through_failures_in_order_and_follows_the_tail() {
    let bus = bus_with(10).await;
    let failures = Arc::new(AtomicU32::new(0));
    let counted = failures.clone();
    let handler = move |transaction: &Transaction<'_>, event: &Event| {
        if event.seq().is_multiple_of(4) && counted.fetch_add(1, Ordering::SeqCst) % 3 != 2 {
            return Err("try again".to_owned());
        }
        book(transaction, event).map_err(|error| error.to_string())
    };
    let books = Transactional::open(tables(), TOPIC, options(), handler).expect("a projector");
    let mut runner = Runner::new(books, BusSource::new(&bus, TOPIC));
    assert_eq!(runner.catch_up().await.expect("all").events, 10);
    assert_eq!(runner.position().await.seq, 10);
    let follower = tokio::spawn(async move {
        let stopped = runner.follow().await;
        (runner, stopped)
    });
    publish(&bus, 5).await;
    bus.delete_topic(TOPIC).await.expect("deleted");
    let (runner, stopped) = follower.await.expect("its end");
    let error = stopped.expect_err("the topic is gone");
    assert!(matches!(error, ProjectError::TopicReplaced(_)), "{error}");
    drop(runner);
    assert!(
        failures.load(Ordering::SeqCst) >= 6,
        "two failed, each twice"
    );
}

#[tokio::test]
async fn a_topic_that_was_made_again_is_told_from_the_old_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db");
    let bus = bus_with(5).await;
    let run = async |bus: &Bus| {
        let connection = crate::open(&path).expect("a database");
        let options = crate::ChangelogOptions::new("t");
        let table = crate::Changelog::open(connection, TOPIC, &options).expect("a table");
        Runner::new(table, BusSource::new(bus, TOPIC))
            .catch_up()
            .await
    };
    assert_eq!(run(&bus).await.expect("all").events, 5);
    assert_eq!(run(&bus).await.expect("nothing new").events, 0);
    bus.delete_topic(TOPIC).await.expect("deleted");
    assert!(
        run(&bus)
            .await
            .expect_err("it is gone")
            .to_string()
            .contains("deleted")
    );
    publish(&bus, 3).await;
    assert!(
        run(&bus)
            .await
            .expect_err("beyond its tail")
            .to_string()
            .contains("tail is at seq 3")
    );
    publish(&bus, 7).await;
    let error = run(&bus)
        .await
        .expect_err("another event stands there")
        .to_string();
    assert!(error.contains("stands there"), "{error}");
}

#[tokio::test]
async fn following_ends_with_the_bus() {
    let bus = bus_with(2).await;
    let table = crate::Changelog::open(tables(), TOPIC, &crate::ChangelogOptions::new("t"));
    let mut runner = Runner::new(table.expect("a table"), BusSource::new(&bus, TOPIC));
    runner.catch_up().await.expect("all");
    let follower = tokio::spawn(async move { runner.follow().await });
    bus.close().await.expect("closed");
    let stopped = follower.await.expect("its end").expect_err("it ended");
    assert!(matches!(stopped, ProjectError::Source(_)), "{stopped}");
}

#[tokio::test]
async fn a_follower_waits_for_a_topic_that_is_yet_to_be_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || crate::open(folder.path().join("a.db")).expect("a database");
    let bus = bus_with(0).await;
    let table = crate::Changelog::open(open(), TOPIC, &crate::ChangelogOptions::new("t"));
    let mut runner = Runner::new(table.expect("a table"), BusSource::new(&bus, TOPIC));
    let follower = tokio::spawn(async move { runner.follow().await });
    // The follower has looked, and waits.
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    publish(&bus, 3).await;
    let reader = open();
    let mut rows = 0;
    for _ in 0..1_000 {
        let count = reader.query_row("SELECT count(*) FROM t", [], |row| row.get(0));
        rows = count.expect("a count");
        if rows == 3 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(rows, 3);
    follower.abort();
}

#[tokio::test]
async fn the_smallest_batches_get_there_too() {
    let bus = bus_with(5).await;
    let options = crate::ChangelogOptions {
        batch: ReadLimit {
            events: 1,
            bytes: 1,
        },
        ..crate::ChangelogOptions::new("t")
    };
    let table = crate::Changelog::open(tables(), TOPIC, &options).expect("a table");
    let mut runner = Runner::new(table, BusSource::new(&bus, TOPIC));
    assert_eq!(runner.catch_up().await.expect("all").events, 5);
}

#[tokio::test]
async fn a_topic_that_lost_its_oldest_events_goes_on() {
    let bus = bus_with(5).await;
    let table = crate::Changelog::open(tables(), TOPIC, &crate::ChangelogOptions::new("t"));
    let mut runner = Runner::new(table.expect("a table"), BusSource::new(&bus, TOPIC));
    runner.catch_up().await.expect("all");
    bus.purge_topic(TOPIC).await.expect("purged");
    assert_eq!(runner.catch_up().await.expect("nothing").events, 0);
    publish(&bus, 4).await;
    assert_eq!(runner.catch_up().await.expect("the new ones").events, 4);
    assert_eq!(runner.position().await.seq, 9);
}
