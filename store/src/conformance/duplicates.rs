//! Obligation 4: an id that a topic holds is stored once.

use super::Harness;
use super::case::{Case, START_MS, plain, seqs, stored, with_id};
use crate::{Batch, Draft, EventOutcome, EventRef, GeneratedId, TopicOptions};
use std::collections::HashSet;

/// The second one is a duplicate, or a conflict where its payload is another; neither is stored.
pub async fn a_client_id_is_stored_once<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    case.store(&topic, &plain("0")).await;
    let first = case.store(&topic, &with_id("order-1", "1")).await;
    assert_eq!((first.id.as_str(), first.seq), ("order-1", 2));
    case.clock.advance(1000);
    for _ in 0..2 {
        let again = case.publish(&topic, &with_id("order-1", "1")).await;
        assert_eq!(again, EventOutcome::Duplicate(first));
        let other = case.publish(&topic, &with_id("order-1", "2")).await;
        assert_eq!(other, EventOutcome::IdConflict(first));
    }
    assert_eq!(case.info(&topic).tail_seq, 2);
    assert_eq!(case.store(&topic, &with_id("order-2", "1")).await.seq, 3);
    assert_eq!(seqs(&case.all(&topic).await), [1, 2, 3]);
}

/// A retry may differ in everything else; a payload that is encoded otherwise is another.
pub async fn only_the_payload_makes_a_conflict<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let first = case.store(&topic, &with_id("x", r#"{"a":1}"#)).await;
    let retry = Draft {
        ts: Some(5),
        sid: Some("after the restart"),
        key: Some("k"),
        headers: &[("try".into(), "2".into())],
        ..with_id("x", r#"{"a":1}"#)
    };
    assert_eq!(
        case.publish(&topic, &retry).await,
        EventOutcome::Duplicate(first)
    );
    for other in [r#"{"a":1.0}"#, r#"{"A":1}"#, "null"] {
        let outcome = case.publish(&topic, &with_id("x", other)).await;
        assert_eq!(outcome, EventOutcome::IdConflict(first), "{other}");
    }
    assert_eq!(
        case.latest_seq(&topic, "k").await,
        None,
        "the retry left no trace"
    );
}

/// Another topic may have an event with the same id.
pub async fn an_id_belongs_to_its_topic<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let other = case.put_topic("other", TopicOptions::default()).await;
    case.store(&topic, &with_id("x", "1")).await;
    case.store(&other, &plain("0")).await;
    assert_eq!(case.store(&other, &with_id("x", "2")).await.seq, 2);
    let made = case.store(&topic, &plain("3")).await;
    assert_eq!(
        case.store(&other, &with_id(made.id.as_str(), "4"))
            .await
            .seq,
        3
    );
    assert_eq!(case.find_id(&topic, "x").await, Some(1));
    assert_eq!(case.find_id(&other, "x").await, Some(2));
    assert_eq!(case.find_id(&other, made.id.as_str()).await, Some(3));
}

/// The caller that publishes what it has read, id included, changes nothing.
pub async fn a_generated_id_that_is_handed_back_is_a_duplicate<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let firsts = case.store_all(&topic, &[plain("1"), plain("2")]).await;
    let case = case.reopen().await;
    for (first, payload) in firsts.iter().zip(["1", "2"]) {
        let id = first.id.as_str();
        let again = case.publish(&topic, &with_id(id, payload)).await;
        assert_eq!(again, EventOutcome::Duplicate(*first));
        let other = case.publish(&topic, &with_id(id, "3")).await;
        assert_eq!(other, EventOutcome::IdConflict(*first));
    }
    assert_eq!(case.info(&topic).tail_seq, 2);
}

/// The first of a batch wins over the later ones.
pub async fn duplicates_within_one_batch<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let other = case.put_topic("other", TopicOptions::default()).await;
    let mut batch = Batch::new();
    batch.publish(&topic, &with_id("x", "1"));
    batch.publish(&topic, &plain("0"));
    batch.publish(&topic, &with_id("x", "1"));
    batch.publish(&other, &with_id("x", "1"));
    batch.publish(&topic, &with_id("x", "2"));
    batch.publish(&topic, &with_id("y", "1"));
    let outcomes = case.commit(batch).await.events;
    let first = stored(&outcomes[0]);
    assert_eq!((first.seq, stored(&outcomes[1]).seq), (1, 2));
    assert_eq!(outcomes[2], EventOutcome::Duplicate(first));
    assert_eq!(stored(&outcomes[3]).seq, 1);
    assert_eq!(outcomes[4], EventOutcome::IdConflict(first));
    assert_eq!(stored(&outcomes[5]).seq, 3);
    assert_eq!(seqs(&case.all(&topic).await), [1, 2, 3]);
}

/// A retry after a restart is still a retry.
pub async fn ids_are_known_after_reopening<H: Harness>(harness: &H) {
    let (mut case, topic) = Case::with_topic(harness).await;
    let mut firsts: Vec<EventRef> = Vec::new();
    for round in 0..3 {
        firsts.push(
            case.store(&topic, &with_id(&format!("id-{round}"), "1"))
                .await,
        );
        case = case.reopen().await;
        for first in &firsts {
            let again = case.publish(&topic, &with_id(first.id.as_str(), "1")).await;
            assert_eq!(again, EventOutcome::Duplicate(*first));
            let other = case.publish(&topic, &with_id(first.id.as_str(), "2")).await;
            assert_eq!(other, EventOutcome::IdConflict(*first));
        }
    }
    assert_eq!(case.info(&topic).tail_seq, 3);
}

/// What the topic no longer holds can be published again, whoever made the id.
pub async fn trimmed_ids_are_free_again<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let made = case.store(&topic, &plain("1")).await;
    case.store(&topic, &with_id("own", "1")).await;
    case.store(&topic, &with_id("kept", "1")).await;
    case.trim(&topic, 3).await;
    let mut case = case.reopen().await;
    for (id, seq) in [(made.id.as_str(), 4), ("own", 5)] {
        assert_eq!(case.find_id(&topic, id).await, None);
        let second = case.store(&topic, &with_id(id, "2")).await;
        assert_eq!((second.seq, second.id.as_str()), (seq, id));
        case = case.reopen().await;
        let again = case.publish(&topic, &with_id(id, "2")).await;
        assert_eq!(again, EventOutcome::Duplicate(second));
        assert_eq!(case.find_id(&topic, id).await, Some(seq));
    }
    let kept = case.publish(&topic, &with_id("kept", "1")).await;
    assert!(matches!(kept, EventOutcome::Duplicate(placed) if placed.seq == 3));
}

/// A topic that is made again has no memory.
pub async fn ids_of_a_deleted_topic_are_free_again<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let made = case.store(&topic, &plain("1")).await;
    case.store(&topic, &with_id("own", "1")).await;
    case.delete_topic(&topic).await;
    case.put_topic("t", TopicOptions::default()).await;
    case.store(&topic, &plain("1")).await;
    assert_eq!(case.find_id(&topic, "own").await, None);
    assert_eq!(case.find_id(&topic, made.id.as_str()).await, None);
    assert_eq!(case.store(&topic, &with_id("own", "2")).await.seq, 2);
    let old = with_id(made.id.as_str(), "2");
    assert_eq!(case.store(&topic, &old).await.seq, 3);
}

/// A UUID from elsewhere is an id like any other, whatever a store reads into its own.
pub async fn ids_that_look_generated_elsewhere_are_ordinary<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let made = case.store(&topic, &plain("0")).await.id.to_string();
    let foreign = [
        made.to_uppercase(),
        made.replace('-', ""),
        "0190a5b1-0000-7000-8000-000000000001".to_owned(),
        "ffffffff-ffff-7fff-bfff-ffffffffffff".to_owned(),
        "6ba7b810-9dad-41d1-80b4-00c04fd430c8".to_owned(),
    ];
    for (id, seq) in foreign.iter().zip(2..) {
        let placed = case.store(&topic, &with_id(id, "1")).await;
        assert_eq!(placed.seq, seq, "{id}");
    }
    let case = case.reopen().await;
    for (id, seq) in foreign.iter().zip(2..) {
        assert_eq!(case.find_id(&topic, id).await, Some(seq));
        let again = case.publish(&topic, &with_id(id, "1")).await;
        assert!(matches!(again, EventOutcome::Duplicate(placed) if placed.seq == seq));
    }
}

/// A publisher that guesses which id the store would make next does not bring two events under one id.
pub async fn no_id_is_ever_given_twice<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let first = case.store(&topic, &plain("0")).await;
    let known = GeneratedId::parse(first.id.as_str());
    // Ids of positions further on than these events will get.
    for later in 10..20 {
        if let Some(known) = known {
            let seq = known.seq + later;
            let guess = GeneratedId { seq, ..known }.to_id();
            case.publish(&topic, &with_id(guess.as_str(), "\"guessed\""))
                .await;
        }
    }
    let case = case.reopen().await;
    for _ in 0..20 {
        case.store(&topic, &plain("0")).await;
    }
    assert_eq!(
        case.store(&topic, &plain("0")).await.ts,
        START_MS,
        "the clock stood still"
    );
    let events = case.all(&topic).await;
    let ids: HashSet<String> = events.iter().map(|event| event.id().into_owned()).collect();
    assert_eq!(ids.len(), events.len(), "all ids differ");
    for event in &events {
        assert_eq!(case.find_id(&topic, &event.id()).await, Some(event.seq()));
    }
}

/// Idempotence does not wear out with the number of ids.
pub async fn thousands_of_client_ids<H: Harness>(harness: &H) {
    const IDS: usize = 5000;
    let (case, topic) = Case::with_topic(harness).await;
    let ids: Vec<String> = (0..IDS).map(|n| format!("order-{}", n * 7919)).collect();
    let drafts: Vec<Draft<'_>> = ids.iter().map(|id| with_id(id, "1")).collect();
    let placed = case.store_all(&topic, &drafts).await;
    let case = case.reopen().await;
    let mut batch = Batch::new();
    drafts
        .iter()
        .rev()
        .for_each(|draft| batch.publish(&topic, draft));
    let outcomes = case.commit(batch).await.events;
    let expected = placed
        .iter()
        .rev()
        .map(|first| EventOutcome::Duplicate(*first));
    assert!(
        outcomes.into_iter().eq(expected),
        "every retry meets its first"
    );
    assert_eq!(case.info(&topic).tail_seq, IDS as u64);
}
