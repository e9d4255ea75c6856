//! Watchers of a tail or of topics are notified, and only of what can be read.

use super::Harness;
use super::case::{ALL, Case, plain, soon};
use crate::{Batch, ReadFrom, Store, TopicOptions};
use std::sync::Arc;

/// By the time a watcher hears of a tail, everything up to it can be read.
pub async fn what_a_watcher_is_told_is_visible<H: Harness>(harness: &H) {
    const EVENTS: u64 = 60;
    let (case, topic) = Case::with_topic(harness).await;
    let publisher = tokio::spawn(publish(case.store.clone(), topic.clone(), EVENTS));
    let mut watch = case.store.watch(&topic);
    let mut seen = 0;
    // Each turn sees the tail move on, so there are no more turns than events.
    for _ in 0..=EVENTS {
        let tail_seq = watch.current();
        assert!(tail_seq >= seen, "a tail does not go back");
        seen = tail_seq;
        let page = case
            .store
            .read(&topic, ReadFrom::Seq(1), ALL)
            .await
            .expect("a page");
        assert!(page.tail_seq >= tail_seq && page.events.len() as u64 >= tail_seq);
        assert!(case.info(&topic).tail_seq >= tail_seq);
        if tail_seq == EVENTS {
            break;
        }
        assert!(
            soon("the next event", watch.moved()).await,
            "the store is there"
        );
    }
    assert_eq!(seen, EVENTS);
    publisher.await.expect("all were published");
}

/// A new watcher knows the tail at once and hears of what comes after.
pub async fn a_watcher_starts_at_the_tail<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    case.store_all(&topic, &vec![plain("1"); 7]).await;
    let case = case.reopen().await;
    let mut one = case.store.watch(&topic);
    let mut other = case.store.watch(&topic);
    assert_eq!((one.current(), other.current()), (7, 7));
    case.store(&topic, &plain("1")).await;
    for watch in [&mut one, &mut other] {
        assert!(soon("the eighth event", watch.moved()).await);
        assert_eq!(watch.current(), 8);
    }
    drop(one);
    case.store(&topic, &plain("1")).await;
    assert!(soon("the ninth event", other.moved()).await);
    assert_eq!(other.current(), 9);
    assert_eq!(case.store.watch(&topic).current(), 9);
}

/// A topic has no tail before it exists; its first event moves it.
pub async fn a_topic_can_be_watched_before_it_exists<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    let topic: Arc<str> = "later".into();
    let mut watch = case.store.watch(&topic);
    assert_eq!(watch.current(), 0);
    case.put_topic("later", TopicOptions::default()).await;
    assert_eq!(watch.current(), 0);
    case.store(&topic, &plain("1")).await;
    assert!(soon("the first event", watch.moved()).await);
    assert_eq!(watch.current(), 1);
}

/// Deletion takes the tail back to 0; a topic made again moves it as before.
pub async fn a_deleted_topic_has_no_tail<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let mut watch = case.store.watch(&topic);
    case.store(&topic, &plain("1")).await;
    assert!(soon("the first event", watch.moved()).await);
    case.delete_topic(&topic).await;
    assert!(soon("the deletion", watch.moved()).await);
    assert_eq!(watch.current(), 0);
    case.put_topic("t", TopicOptions::default()).await;
    case.store(&topic, &plain("1")).await;
    assert!(soon("the first event of the new topic", watch.moved()).await);
    assert_eq!(watch.current(), 1);
}

/// Creating, changing and deleting a topic notifies watchers, after it can be seen.
pub async fn changes_of_topics_are_told<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    let mut watch = case.store.watch_topics();
    let topic = case.put_topic("t", TopicOptions::default()).await;
    assert!(soon("the new topic", watch.changed()).await);
    assert!(case.store.topic(&topic).is_some());
    let changed = TopicOptions {
        max_events: Some(5),
        ..TopicOptions::default()
    };
    case.put_topic("t", changed.clone()).await;
    assert!(soon("the change", watch.changed()).await);
    assert_eq!(case.info(&topic).options, changed);
    case.delete_topic(&topic).await;
    assert!(soon("the deletion", watch.changed()).await);
    assert_eq!(case.store.topic(&topic), None);
}

async fn publish(store: Arc<dyn Store>, topic: Arc<str>, count: u64) {
    for _ in 0..count {
        let mut batch = Batch::new();
        batch.publish(&topic, &plain("1"));
        store.commit(batch).await.expect("a commit");
        tokio::task::yield_now().await;
    }
}
