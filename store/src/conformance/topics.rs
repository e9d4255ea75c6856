//! Obligation 6: topics are made, changed, deleted and made again.

use super::Harness;
use super::case::{ALL, Case, START_MS, all_time, at_most, keyed, payloads, plain, seqs, with_id};
use crate::{
    Durability, EventOutcome, Find, ReadError, ReadFrom, TopicInfo, TopicOptions, UnknownTopic,
};
use std::sync::Arc;

/// Whatever is asked of a topic that is not there, the answer is that.
pub async fn unknown_topics_are_errors<H: Harness>(harness: &H) {
    let (case, _) = Case::with_topic(harness).await;
    let (store, topic): (_, Arc<str>) = (&case.store, "nowhere".into());
    let unknown = || {
        let topic = topic.clone();
        ReadError::UnknownTopic(UnknownTopic { topic })
    };
    assert_eq!(
        store.read(&topic, ReadFrom::Seq(1), ALL).await.err(),
        Some(unknown())
    );
    let by_time = store.read(&topic, ReadFrom::Time(all_time()), ALL).await;
    assert_eq!(by_time.err(), Some(unknown()));
    for what in [Find::Id("x"), Find::Ts(0)] {
        assert_eq!(store.find(&topic, what).await, Err(unknown()));
    }
    assert_eq!(store.latest_event(&topic, "k").await.err(), Some(unknown()));
    assert_eq!(
        store.read(&topic, ReadFrom::Key(None), ALL).await.err(),
        Some(unknown())
    );
    assert_eq!(store.topic(&topic), None);
    assert_eq!(store.watch(&topic).current(), 0);
    let outcome = case.publish(&topic, &plain("1")).await;
    assert_eq!(outcome, EventOutcome::UnknownTopic);
    assert_eq!(store.topic(&topic), None, "publishing makes no topic");
}

/// A new topic has its options, no events, and its first position ahead.
pub async fn a_new_topic_is_empty<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    assert_eq!(case.store.topics(), []);
    let topic = case.put_topic("a.b-c_D.0", options()).await;
    let info = case.info(&topic);
    let expected = TopicInfo {
        name: topic.clone(),
        options: options(),
        incarnation: info.incarnation,
        first_seq: 1,
        tail_seq: 0,
        events: 0,
        bytes: info.bytes,
    };
    assert_eq!(info, expected);
    let page = case
        .store
        .read(&topic, ReadFrom::Seq(1), ALL)
        .await
        .expect("a page");
    assert!(page.events.is_empty());
    assert_eq!((page.next_seq, page.first_seq, page.tail_seq), (1, 1, 0));
    assert_eq!(case.find_ts(&topic, 0).await, None);
    assert_eq!(case.latest_seq(&topic, "k").await, None);
}

/// Options are replaced; events, positions and ids stay.
pub async fn putting_an_existing_topic_changes_only_its_options<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let placed = case
        .store_all(&topic, &[plain("1"), with_id("x", "2"), plain("3")])
        .await;
    case.trim(&topic, 2).await;
    let before = case.info(&topic);
    case.put_topic("t", options()).await;
    let expected = TopicInfo {
        options: options(),
        ..before
    };
    assert_eq!(case.info(&topic), expected);
    assert_eq!(payloads(&case.all(&topic).await), ["2", "3"]);
    let again = case.publish(&topic, &with_id("x", "2")).await;
    assert_eq!(again, EventOutcome::Duplicate(placed[1]));
    let next = case.store(&topic, &plain("4")).await;
    assert_eq!(next.seq, 4);
    assert!(next.id.as_str() > placed[2].id.as_str(), "ids go on rising");
}

/// After deletion there is no such topic; deleting what is not there is fine.
pub async fn deleting_removes_everything<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let other = case.put_topic("t2", TopicOptions::default()).await;
    case.store(&topic, &plain("1")).await;
    case.store(&other, &plain("2")).await;
    case.delete_topic(&topic).await;
    case.delete_topic(&topic).await;
    let case = case.reopen().await;
    assert_eq!(case.store.topic(&topic), None);
    assert!(
        case.store
            .read(&topic, ReadFrom::Seq(1), ALL)
            .await
            .is_err()
    );
    assert_eq!(case.store.topics().len(), 1);
    assert_eq!(payloads(&case.all(&other).await), ["2"]);
}

/// A topic made again under an old name has nothing to do with the old one.
pub async fn a_topic_made_again_starts_anew<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let drafts = [keyed("k", "1"), keyed("l", "2"), with_id("x", "3")];
    let old = case.store_all(&topic, &drafts).await;
    case.delete_topic(&topic).await;
    case.put_topic("t", options()).await;
    let case = case.reopen().await;
    let info = case.info(&topic);
    assert_eq!((info.first_seq, info.tail_seq, info.events), (1, 0, 0));
    assert_eq!(info.options, options());
    assert_eq!(case.all(&topic).await.len(), 0);
    assert_eq!(case.pages_by_time(&topic, all_time(), ALL).await.len(), 0);
    assert_eq!(case.latest_seq(&topic, "k").await, None);
    assert_eq!(case.find_ts(&topic, 0).await, None);

    let new = case.store(&topic, &keyed("k", "\"new\"")).await;
    assert_eq!((new.seq, new.ts), (1, START_MS));
    for placed in &old {
        assert_ne!(placed.id, new.id, "no id comes twice");
        assert_eq!(case.find_id(&topic, placed.id.as_str()).await, None);
    }
    let case = case.reopen().await;
    assert_eq!(payloads(&case.all(&topic).await), ["\"new\""]);
    let keys = case
        .store
        .read(&topic, ReadFrom::Key(None), at_most(9))
        .await
        .expect("keys");
    assert_eq!(seqs(&keys.events), [1]);
}

/// The list of topics is in the order of names.
pub async fn topics_are_listed_by_name<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    let names = ["b", "a.b", "a-b", "a", "A", "_", "0", "ab", "a.b.c"];
    for name in names {
        case.put_topic(name, TopicOptions::default()).await;
    }
    let mut expected = names.to_vec();
    expected.sort_unstable();
    let topics = case.store.topics();
    let listed: Vec<&str> = topics.iter().map(|info| info.name.as_ref()).collect();
    assert_eq!(listed, expected);
    for info in &topics {
        assert_eq!(case.info(&info.name), *info, "both ways tell the same");
    }
}

/// Options, positions and emptiness are the same after a restart.
pub async fn topics_survive_reopening<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    let empty = case.put_topic("empty", options()).await;
    let full = case.put_topic("full", TopicOptions::default()).await;
    case.store_all(&full, &[plain("1"), plain("2"), plain("3")])
        .await;
    case.trim(&full, 3).await;
    case.put_topic("full", options()).await;
    let mut case = case;
    for _ in 0..3 {
        case = case.reopen().await;
        assert_eq!(case.store.topics().len(), 2);
        assert_eq!(case.info(&empty).options, options());
        let info = case.info(&full);
        assert_eq!(info.options, options());
        assert_eq!((info.first_seq, info.tail_seq, info.events), (3, 3, 1));
    }
    assert_eq!(case.store(&empty, &plain("1")).await.seq, 1);
    assert_eq!(case.store(&full, &plain("4")).await.seq, 4);
}

/// Options that differ from the default in everything and forget nothing yet.
fn options() -> TopicOptions {
    TopicOptions {
        durability: Durability::Os,
        retention_ms: Some(u64::MAX / 4),
        max_bytes: Some(1 << 40),
        max_events: Some(1 << 40),
        compaction: true,
        attributes: r#"{"partitions":3,"note":"ü \"q\""}"#.into(),
    }
}
