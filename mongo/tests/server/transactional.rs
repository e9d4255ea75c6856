//! A handler inside a transaction: its writes and the position, or neither.

use crate::lab::{LIMIT, Lab};
use mongodb::bson::{Document, doc};
use mongodb::{ClientSession, Database};
use prombus::Backoff;
use prombus_connect::ProjectionError;
use prombus_mongo::error::ProjectError;
use prombus_mongo::{
    BusSource, Event, Handler, HandlerError, Runner, Transactional, TransactionalOptions, mongodb,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const TOPIC: &str = "payments";

/// Books payments, and fails at some of them.
struct Books {
    database: Database,
    /// How often it still fails at a payment of 13; how is told by the parity.
    failures: Arc<AtomicU32>,
}

impl Handler for Books {
    async fn handle(
        &mut self,
        session: &mut ClientSession,
        event: &Event,
    ) -> Result<(), HandlerError> {
        let amount: i64 = event.value().unwrap_or(0);
        let account = event.key().unwrap_or_default().into_owned();
        let bookings = self.database.collection::<Document>("bookings");
        let booking = doc! { "_id": &*event.id(), "account": &account, "amount": amount };
        bookings.insert_one(booking).session(&mut *session).await?;
        // It has written already.
        let left = self.failures.load(Ordering::Relaxed);
        if amount == 13 && left > 0 {
            self.failures.store(left - 1, Ordering::Relaxed);
            assert!(left.is_multiple_of(2), "13 is unlucky");
            return Err("13 is unlucky".into());
        }
        let balances = self.database.collection::<Document>("balances");
        let change = doc! { "$inc": { "amount": amount } };
        let update = balances.update_one(doc! { "_id": account }, change);
        update.upsert(true).session(session).await?;
        Ok(())
    }
}

async fn lab() -> Lab {
    let lab = Lab::start().await;
    for name in ["bookings", "balances"] {
        let made = lab.database.create_collection(name).await;
        made.expect("a collection");
    }
    lab
}

async fn open(lab: &Lab, failures: u32) -> Transactional<Books> {
    let options = TransactionalOptions {
        backoff: Backoff {
            first_ms: 1,
            longest_ms: 2,
        },
        ..TransactionalOptions::new("books")
    };
    let handler = Books {
        database: lab.database.clone(),
        failures: Arc::new(failures.into()),
    };
    let opened = Transactional::open(&lab.database, TOPIC, options, handler).await;
    opened.expect("a projector")
}

async fn balance(lab: &Lab, account: &str) -> i64 {
    let balances = lab.documents("balances").await;
    let found = balances
        .iter()
        .find(|one| one.get_str("_id").ok() == Some(account));
    found.map_or(0, |one| one.get_i64("amount").expect("a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_handler_leaves_nothing_and_is_tried_again() {
    let lab = lab().await;
    let events = [("a", "1"), ("b", "2"), ("a", "13"), ("b", "5")];
    lab.publish(TOPIC, &events).await;
    // An error, a panic, an error, and then it works.
    let mut runner = Runner::new(open(&lab, 3).await, BusSource::new(&lab.bus, TOPIC));
    let applied = tokio::time::timeout(LIMIT, runner.catch_up()).await;
    assert_eq!(applied.expect("in time").expect("applied").events, 4);
    assert_eq!(lab.documents("bookings").await.len(), 4);
    assert_eq!(
        (balance(&lab, "a").await, balance(&lab, "b").await),
        (14, 7)
    );
    // Another start goes on behind it.
    lab.publish(TOPIC, &[("a", "1")]).await;
    let mut runner = Runner::new(open(&lab, 0).await, BusSource::new(&lab.bus, TOPIC));
    assert_eq!(runner.catch_up().await.expect("applied").events, 1);
    assert_eq!(balance(&lab, "a").await, 15);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_the_last_attempt_it_stops_before_the_event() {
    let lab = lab().await;
    lab.publish(TOPIC, &[("a", "1"), ("a", "13")]).await;
    let mut runner = Runner::new(open(&lab, 1_000).await, BusSource::new(&lab.bus, TOPIC));
    let error = runner.catch_up().await.expect_err("it gives up");
    assert!(matches!(error, ProjectError::HandlerFailed(_)), "{error}");
    assert_eq!(runner.position().await.seq, 1);
    assert_eq!(
        lab.documents("bookings").await.len(),
        1,
        "nothing of the failed one"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_of_the_same_projector_book_each_payment_once() {
    let lab = lab().await;
    for number in 1..=30 {
        let amount = (100 + number).to_string();
        lab.publish(TOPIC, &[("a", amount.as_str())]).await;
    }
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let mut runner = Runner::new(open(&lab, 0).await, BusSource::new(&lab.bus, TOPIC));
        running.spawn(async move {
            for _ in 0..1_000 {
                match runner.catch_up().await {
                    Ok(_) => return,
                    // Both wrote the same document; one of them goes on from where the other is.
                    Err(error) => assert!(error.is_transient(), "{error}"),
                }
            }
            panic!("it does not end");
        });
    }
    running.join_all().await;
    assert_eq!(lab.documents("bookings").await.len(), 30);
    assert_eq!(balance(&lab, "a").await, 30 * 100 + 30 * 31 / 2);
}
