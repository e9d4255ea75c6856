//! Obligation 3: what happens together, and what happens on its own.

use super::Harness;
use super::case::{Case, payloads, plain, stored, with_id};
use crate::{
    Batch, Change, CommitError, EventOutcome, Expect, IfExists, TopicOptions, UnknownTopic,
    VersionMismatch,
};
use std::sync::Arc;

/// Nothing of a batch happens if one of its expectations fails, atomic or not.
pub async fn a_failed_expectation_refuses_everything<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    case.store(&topic, &plain("0")).await;
    case.change(put("taken", b"old", Expect::Any))
        .await
        .expect("a record");
    for mut batch in [Batch::new(), Batch::atomic()] {
        batch.change(Change::PutTopic {
            topic: "new".into(),
            options: TopicOptions::default(),
            if_exists: IfExists::Replace,
        });
        batch.change(put("free", b"new", Expect::Absent));
        batch.change(Change::Trim {
            topic: topic.clone(),
            first_seq: 2,
        });
        batch.change(put("taken", b"new", Expect::Absent));
        batch.change(put("behind", b"new", Expect::Any));
        batch.publish(&topic, &plain("1"));
        let error = case
            .store
            .commit(batch)
            .await
            .expect_err("an expectation failed");
        let taken = case
            .store
            .get("taken")
            .await
            .expect("an answer")
            .expect("a record");
        assert_eq!(taken.value.as_ref(), b"old");
        let mismatch = VersionMismatch {
            key: "taken".into(),
            found: Some(taken.version),
        };
        assert_eq!(error, CommitError::VersionMismatch(mismatch));
        assert_eq!(case.store.topic("new"), None);
        assert_eq!(case.store.list("").await.expect("a list").len(), 1);
        assert_eq!(payloads(&case.all(&topic).await), ["0"]);
        assert_eq!(
            (case.info(&topic).first_seq, case.info(&topic).tail_seq),
            (1, 1)
        );
    }
}

/// An atomic batch with a conflicting id leaves everything as it was, also where the conflict is within it.
pub async fn an_id_conflict_refuses_an_atomic_batch<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let own = case.store(&topic, &with_id("own", "1")).await;
    let made = case.store(&topic, &plain("1")).await;
    for (id, seq) in [
        (own.id.as_str(), Some(1)),
        (made.id.as_str(), Some(2)),
        ("new", None),
    ] {
        let mut batch = Batch::atomic();
        batch.change(put("k", b"v", Expect::Any));
        batch.publish(&topic, &plain("\"before\""));
        if seq.is_none() {
            batch.publish(&topic, &with_id(id, "1"));
        }
        batch.publish(&topic, &with_id(id, "2"));
        batch.publish(&topic, &plain("\"behind\""));
        match case.store.commit(batch).await {
            Err(CommitError::IdConflict(conflict)) => {
                assert_eq!((conflict.topic.as_ref(), conflict.id.as_str()), ("t", id));
                assert!(seq.is_none_or(|seq| conflict.seq == seq));
            }
            other => panic!("{id}: {other:?}"),
        }
        assert_eq!(case.store.get("k").await, Ok(None));
        assert_eq!(case.info(&topic).tail_seq, 2);
        assert_eq!(case.find_id(&topic, "new").await, None);
    }
    assert_eq!(case.store(&topic, &with_id("new", "2")).await.seq, 3);
}

/// An atomic batch with an event for nowhere leaves everything as it was.
pub async fn an_unknown_topic_refuses_an_atomic_batch<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let nowhere: Arc<str> = "nowhere".into();
    let mut batch = Batch::atomic();
    batch.change(put("k", b"v", Expect::Any));
    batch.publish(&topic, &plain("1"));
    batch.publish(&nowhere, &plain("2"));
    let unknown = UnknownTopic { topic: nowhere };
    let error = CommitError::UnknownTopic(unknown);
    assert_eq!(case.store.commit(batch).await, Err(error));
    assert_eq!(case.store.get("k").await, Ok(None));
    assert_eq!(case.info(&topic).tail_seq, 0);

    let mut batch = Batch::atomic();
    batch.change(Change::DeleteTopic {
        topic: topic.clone(),
    });
    batch.publish(&topic, &plain("1"));
    let outcome = case.store.commit(batch).await;
    assert!(
        matches!(outcome, Err(CommitError::UnknownTopic(_))),
        "{outcome:?}"
    );
    assert!(case.store.topic(&topic).is_some(), "nor was it deleted");
}

/// A retry of an atomic batch goes through: what is there already counts as stored.
pub async fn duplicates_count_as_stored_in_an_atomic_batch<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let mut firsts = Vec::new();
    for round in 0..2 {
        let mut batch = Batch::atomic();
        batch.change(put("k", &[round], Expect::Any));
        batch.publish(&topic, &with_id("x", "1"));
        batch.publish(&topic, &with_id("y", "2"));
        batch.publish(&topic, &with_id("x", "1"));
        let outcomes = case.commit(batch).await.events;
        if round == 0 {
            firsts = outcomes[..2].iter().map(stored).collect();
            assert_eq!(outcomes[2], EventOutcome::Duplicate(firsts[0]));
        } else {
            let again = [firsts[0], firsts[1], firsts[0]].map(EventOutcome::Duplicate);
            assert_eq!(outcomes, again);
        }
    }
    let record = case
        .store
        .get("k")
        .await
        .expect("an answer")
        .expect("a record");
    assert_eq!(record.value.as_ref(), [1], "the changes happened again");
    assert_eq!(case.info(&topic).tail_seq, 2);
}

/// In a plain batch one event's trouble is not the others'.
pub async fn events_of_a_plain_batch_are_independent<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let first = case.store(&topic, &with_id("x", "1")).await;
    let mut batch = Batch::new();
    batch.publish(&topic, &plain("\"a\""));
    batch.publish(&topic, &with_id("x", "2"));
    batch.publish(&"nowhere".into(), &plain("3"));
    batch.publish(&topic, &with_id("x", "1"));
    batch.publish(&topic, &plain("\"b\""));
    let outcomes = case.commit(batch).await.events;
    assert_eq!(outcomes.len(), 5);
    assert_eq!(stored(&outcomes[0]).seq, 2);
    assert_eq!(outcomes[1], EventOutcome::IdConflict(first));
    assert_eq!(outcomes[2], EventOutcome::UnknownTopic);
    assert_eq!(outcomes[3], EventOutcome::Duplicate(first));
    assert_eq!(stored(&outcomes[4]).seq, 3);
    assert_eq!(payloads(&case.all(&topic).await), ["1", "\"a\"", "\"b\""]);
    assert_eq!(case.store.topics().len(), 1, "publishing makes no topics");
}

/// A batch can make the topic it publishes to, trim it, or make it anew.
pub async fn changes_come_before_events<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    let topic: Arc<str> = "t".into();
    let put_topic = || Change::PutTopic {
        topic: "t".into(),
        options: TopicOptions::default(),
        if_exists: IfExists::Replace,
    };
    let mut batch = Batch::atomic();
    batch.publish(&topic, &with_id("x", "1"));
    batch.publish(&topic, &plain("2"));
    batch.change(put_topic());
    let outcomes = case.commit(batch).await.events;
    assert_eq!((stored(&outcomes[0]).seq, stored(&outcomes[1]).seq), (1, 2));

    for mut batch in [Batch::new(), Batch::atomic()] {
        let tail_seq = case.info(&topic).tail_seq;
        batch.change(Change::Trim {
            topic: topic.clone(),
            first_seq: tail_seq + 100,
        });
        batch.publish(&topic, &with_id("x", "\"free again\""));
        let placed = stored(&case.commit(batch).await.events[0]);
        assert_eq!(placed.seq, tail_seq + 1);
        assert_eq!(payloads(&case.all(&topic).await), ["\"free again\""]);
        assert_eq!(case.info(&topic).first_seq, tail_seq + 1);
    }
    for mut batch in [Batch::new(), Batch::atomic()] {
        batch.change(Change::DeleteTopic {
            topic: topic.clone(),
        });
        batch.change(put_topic());
        batch.publish(&topic, &with_id("x", "\"anew\""));
        assert_eq!(stored(&case.commit(batch).await.events[0]).seq, 1);
        assert_eq!(payloads(&case.all(&topic).await), ["\"anew\""]);
    }
}

/// Events of several topics and keyed records of one batch are all there after a restart.
pub async fn atomic_batches_over_events_and_records_survive<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let letters = case.put_topic("dlq.t", TopicOptions::default()).await;
    let mut version = None;
    for round in 0..20u8 {
        let mut batch = Batch::atomic();
        let expect = version.map_or(Expect::Absent, Expect::Version);
        batch.change(put("cursor", &[round], expect));
        batch.publish(&topic, &plain(&format!("{round}")));
        batch.publish(&letters, &plain(&format!("{round}")));
        version = case.commit(batch).await.versions.first().copied();
    }
    let case = case.reopen().await;
    let cursor = case
        .store
        .get("cursor")
        .await
        .expect("an answer")
        .expect("a record");
    assert_eq!(
        (cursor.value.as_ref(), Some(cursor.version)),
        ([19].as_slice(), version)
    );
    let expected: Vec<String> = (0..20).map(|round| round.to_string()).collect();
    assert_eq!(payloads(&case.all(&topic).await), expected);
    assert_eq!(payloads(&case.all(&letters).await), expected);
}

/// Nothing to do is done.
pub async fn an_empty_batch_is_fine<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    for batch in [Batch::new(), Batch::atomic()] {
        let receipt = case.commit(batch).await;
        assert!(receipt.events.is_empty() && receipt.versions.is_empty());
    }
    assert_eq!(case.info(&topic).tail_seq, 0);
}

fn put(key: &str, value: &[u8], expect: Expect) -> Change {
    Change::Put {
        key: key.into(),
        value: value.into(),
        expect,
    }
}
