//! The end of a store, and what it says of itself.

use super::Harness;
use super::case::{Case, payloads, plain};
use crate::{Batch, Change, CommitError, Expect};

/// After closing, every commit is refused as `Closed`.
pub async fn a_closed_store_takes_no_commits<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    case.store(&topic, &plain("1")).await;
    case.store.close().await.expect("a clean end");
    let mut events = Batch::new();
    events.publish(&topic, &plain("2"));
    let mut changes = Batch::atomic();
    changes.change(Change::Put {
        key: "k".into(),
        value: [1].into(),
        expect: Expect::Any,
    });
    for batch in [events, changes] {
        assert_eq!(case.store.commit(batch).await, Err(CommitError::Closed));
    }
}

/// Commits that were called before a restart are in, though no one waited for their answers.
pub async fn closing_finishes_what_was_begun<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let mut answers = Vec::new();
    for number in 0..30 {
        let mut batch = Batch::new();
        batch.publish(&topic, &plain(&format!("{number}")));
        answers.push(case.store.commit(batch));
    }
    drop(answers);
    let case = case.reopen().await;
    let expected: Vec<String> = (0..30).map(|number| number.to_string()).collect();
    assert_eq!(payloads(&case.all(&topic).await), expected);
}

/// A store that is well names itself and its durability, counts its bytes and reports no trouble.
pub async fn a_sound_store_says_so<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    case.store_all(&topic, &[plain("1"), plain("2")]).await;
    case.maintain().await;
    let case = case.reopen().await;
    let status = case.store.status();
    assert!(!status.url.is_empty() && !status.durability.is_empty());
    assert_eq!((status.failed, status.damage), (None, Vec::new()));
    assert!(status.bytes > 0, "it takes some room");
    assert!(case.info(&topic).bytes > 0, "and so does the topic");
}
