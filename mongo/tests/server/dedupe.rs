//! Marks: they run out by the caller's clock, share a transaction where there is one, and keep a handler from running
//! again.

use crate::lab::{Lab, clock, eventually};
use mongodb::bson::Document;
use prombus::{Dedupe, DedupeStore, Delivery, StartAt, SubscribeOptions};
use prombus_mongo::{MongoDedupe, dedupe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn marks_run_out_and_share_a_transaction() {
    let lab = Lab::start().await;
    let clock = clock(1_000);
    let marks = MongoDedupe::open(&lab.database, clock.clone()).await;
    let marks = marks.expect("marks");
    assert!(!marks.seen("t::g", "a").await.expect("a look"));
    marks.mark("t::g", "a", 500).await.expect("a mark");
    assert!(marks.seen("t::g", "a").await.expect("a look"));
    assert!(!marks.seen("t::h", "a").await.expect("a look"));
    clock.set(1_500);
    assert!(
        !marks.seen("t::g", "a").await.expect("a look"),
        "it ran out"
    );
    marks.mark("t::g", "a", 500).await.expect("renewed");
    clock.set(1_900);
    assert!(marks.seen("t::g", "a").await.expect("a look"));
    // The server removes them by this index.
    let indexes = lab.database.collection::<Document>("prombus_dedupe");
    let indexes = indexes.list_index_names().await.expect("indexes");
    assert!(indexes.contains(&"by_expiry".to_owned()), "{indexes:?}");

    for (id, commits) in [("rolled back", false), ("committed", true)] {
        let mut session = lab.database.client().start_session().await.expect("one");
        session.start_transaction().await.expect("a transaction");
        let seen = dedupe::seen(&lab.database, Some(&mut session), "s", id, 2_000).await;
        assert!(!seen.expect("a look"));
        let marked = dedupe::mark(&lab.database, Some(&mut session), "s", id, 9_000, 2_000);
        marked.await.expect("a mark");
        let ended = if commits {
            session.commit_transaction().await
        } else {
            session.abort_transaction().await
        };
        ended.expect("it ends");
        let seen = dedupe::seen(&lab.database, None, "s", id, 2_000).await;
        assert_eq!(seen.expect("a look"), commits, "{id}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_marked_event_is_not_handled_again() {
    let lab = Lab::start().await;
    let marks = MongoDedupe::open(&lab.database, Arc::new(prombus::SystemClock)).await;
    let marks = marks.expect("marks");
    lab.publish("t", &[("a", "1"), ("b", "2"), ("c", "3")])
        .await;
    let runs = Arc::new(AtomicU64::new(0));
    for expected in [3, 3] {
        let options = SubscribeOptions {
            from: StartAt::Earliest,
            ..SubscribeOptions::default()
        };
        let counted = runs.clone();
        let handler = move |_: Delivery| {
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Ok::<(), String>(()))
        };
        let dedupe = Dedupe::new(marks.clone());
        let consumer = lab
            .bus
            .subscribe_exactly_once("t", "g", options, dedupe, handler);
        let consumer = consumer.await.expect("a consumer");
        eventually("everything is settled", async || {
            let lag = lab.bus.lag("t", "g").await.expect("a lag");
            lag.lag == 0
        })
        .await;
        assert_eq!(runs.load(Ordering::Relaxed), expected);
        consumer.stop().await;
        // The group goes back to the beginning; the marks stay.
        lab.bus.remove_group("t", "g").await.expect("removed");
    }
}
