//! What a topic forgets from its oldest end: by trimming, age, number and size.

use super::Harness;
use super::case::{ALL, Case, START_MS, all_time, keyed, plain, seqs, with_id, with_ts};
use crate::{Change, CommitError, Draft, ReadFrom, TopicOptions, UnknownTopic};

/// Everything before a position is gone for every way of reading, also after a restart.
pub async fn trimming_forgets_what_lies_before<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let drafts: Vec<Draft<'_>> = ["a", "b", "a", "c", "d"].map(|key| keyed(key, "1")).into();
    let placed = case.store_all(&topic, &drafts).await;
    case.trim(&topic, 4).await;
    let mut case = case;
    for _ in 0..2 {
        assert_eq!(seqs(&case.all(&topic).await), [4, 5]);
        assert_eq!(
            seqs(&case.pages_by_time(&topic, all_time(), ALL).await),
            [4, 5]
        );
        let info = case.info(&topic);
        assert_eq!((info.first_seq, info.tail_seq, info.events), (4, 5, 2));
        assert_eq!(case.find_ts(&topic, 0).await, Some(4));
        assert_eq!(case.find_id(&topic, placed[2].id.as_str()).await, None);
        assert_eq!(case.find_id(&topic, placed[3].id.as_str()).await, Some(4));
        assert_eq!(case.latest_seq(&topic, "a").await, None);
        assert_eq!(case.latest_seq(&topic, "c").await, Some(4));
        let page = case
            .store
            .read(&topic, ReadFrom::Seq(1), ALL)
            .await
            .expect("a page");
        assert_eq!((page.first_seq, page.tail_seq, page.next_seq), (4, 5, 6));
        case.maintain().await;
        case = case.reopen().await;
    }
}

/// Trimming never brings anything back and never goes behind the tail.
pub async fn trimming_knows_its_bounds<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    case.trim(&topic, 5).await;
    assert_eq!(case.info(&topic).first_seq, 1, "nothing to forget yet");
    case.store_all(&topic, &vec![plain("1"); 6]).await;
    for (first_seq, expected) in [(0, 1), (3, 3), (1, 3), (3, 3), (6, 6), (100, 7), (2, 7)] {
        case.trim(&topic, first_seq).await;
        assert_eq!(
            case.info(&topic).first_seq,
            expected,
            "trimmed to {first_seq}"
        );
        let kept: Vec<u64> = (expected..=6).collect();
        assert_eq!(seqs(&case.all(&topic).await), kept);
        assert_eq!(case.info(&topic).events, kept.len() as u64);
    }
    let case = case.reopen().await;
    assert_eq!(
        (case.info(&topic).first_seq, case.info(&topic).tail_seq),
        (7, 6)
    );
    assert_eq!(case.store(&topic, &plain("1")).await.seq, 7);
    assert_eq!(seqs(&case.all(&topic).await), [7]);
}

/// There is nothing to trim where there is no topic.
pub async fn trimming_an_unknown_topic_is_refused<H: Harness>(harness: &H) {
    let (case, _) = Case::with_topic(harness).await;
    let trim = Change::Trim {
        topic: "nowhere".into(),
        first_seq: 1,
    };
    let unknown = UnknownTopic {
        topic: "nowhere".into(),
    };
    let error = CommitError::UnknownTopic(unknown);
    assert_eq!(case.change(trim).await, Err(error));
}

/// Events older than the retention go, and their ids are free again.
pub async fn old_events_are_forgotten<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let keep_second = TopicOptions {
        retention_ms: Some(1000),
        ..TopicOptions::default()
    };
    case.store(&topic, &with_id("x", "1")).await;
    case.store(&topic, &plain("2")).await;
    case.clock.advance(1500);
    case.store(&topic, &keyed("k", "3")).await;
    case.maintain().await;
    assert_eq!(
        seqs(&case.all(&topic).await),
        [1, 2, 3],
        "without retention"
    );

    case.put_topic("t", keep_second).await;
    case.maintain().await;
    let case = case.reopen().await;
    assert_eq!(seqs(&case.all(&topic).await), [3]);
    assert_eq!(
        (case.info(&topic).first_seq, case.info(&topic).events),
        (3, 1)
    );
    assert_eq!(case.find_id(&topic, "x").await, None);
    assert_eq!(case.store(&topic, &with_id("x", "\"other\"")).await.seq, 4);
    case.clock.advance(1001);
    case.maintain().await;
    assert_eq!(seqs(&case.all(&topic).await), []);
    assert_eq!(case.latest_seq(&topic, "k").await, None);
}

/// Ages count from when an event was stored, whatever ts its publisher gave: one with an old ts is not forgotten early,
/// one with a ts in the future does not keep those behind it.
pub async fn young_events_are_kept<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    let options = TopicOptions {
        retention_ms: Some(1000),
        ..TopicOptions::default()
    };
    let topic = case.put_topic("t", options).await;
    let times = [10, START_MS - 2000, START_MS, 20, START_MS * 2, 30];
    case.store_all(&topic, &times.map(with_ts)).await;
    case.clock.advance(900);
    case.maintain().await;
    let case = case.reopen().await;
    let kept = seqs(&case.all(&topic).await);
    assert_eq!(kept, [1, 2, 3, 4, 5, 6], "none is old");
    case.store(&topic, &with_ts(40)).await;
    case.clock.advance(200);
    case.maintain().await;
    let case = case.reopen().await;
    let kept = seqs(&case.all(&topic).await);
    assert_eq!(kept, [7], "those of the first moment are old");
    case.clock.set(1);
    case.maintain().await;
    assert_eq!(
        seqs(&case.all(&topic).await),
        kept,
        "a clock that went back forgets nothing"
    );
}

/// The oldest go while there are more events than wanted.
pub async fn too_many_events_are_forgotten<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    let options = TopicOptions {
        max_events: Some(10),
        ..TopicOptions::default()
    };
    let topic = case.put_topic("t", options).await;
    let mut case = case;
    let mut tail_seq = 0;
    for count in [4, 6, 1, 25, 3] {
        case.store_all(&topic, &vec![plain("1"); count]).await;
        tail_seq += count as u64;
        case.maintain().await;
        case = case.reopen().await;
        let first_seq = (tail_seq + 1).saturating_sub(10).max(1);
        let kept: Vec<u64> = (first_seq..=tail_seq).collect();
        assert_eq!(seqs(&case.all(&topic).await), kept);
        let info = case.info(&topic);
        assert_eq!((info.first_seq, info.tail_seq), (first_seq, tail_seq));
        assert_eq!(info.events, kept.len() as u64);
    }
}

/// The oldest go while the events take more bytes than wanted, and no more of them than that.
pub async fn too_many_bytes_are_forgotten<H: Harness>(harness: &H) {
    const MAX_BYTES: usize = 100_000;
    let case = Case::new(harness).await;
    let options = TopicOptions {
        max_bytes: Some(MAX_BYTES as u64),
        ..TopicOptions::default()
    };
    let topic = case.put_topic("t", options).await;
    let payload = format!("\"{}\"", "x".repeat(1000));
    case.store_all(&topic, &vec![plain(&payload); 50]).await;
    case.maintain().await;
    assert_eq!(case.info(&topic).events, 50, "they fit");
    assert!(case.info(&topic).bytes >= 50_000, "bytes are counted");

    case.store_all(&topic, &vec![plain(&payload); 300]).await;
    case.maintain().await;
    let case = case.reopen().await;
    let kept = case.all(&topic).await;
    let bytes: usize = kept.iter().map(|event| event.json().len()).sum();
    assert!(bytes <= MAX_BYTES, "{bytes} bytes are kept");
    assert!(bytes >= MAX_BYTES / 2, "only {bytes} bytes are kept");
    let first_seq = 350 - kept.len() as u64 + 1;
    assert_eq!(
        seqs(&kept),
        (first_seq..=350).collect::<Vec<_>>(),
        "the newest"
    );
    assert_eq!(case.info(&topic).first_seq, first_seq);
}

/// A topic that has forgotten all its events has not forgotten how far it came.
pub async fn positions_go_on_after_everything_was_forgotten<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    let options = TopicOptions {
        retention_ms: Some(1000),
        ..TopicOptions::default()
    };
    let topic = case.put_topic("t", options).await;
    let before = case.store_all(&topic, &vec![plain("1"); 5]).await;
    case.clock.advance(5000);
    case.maintain().await;
    let case = case.reopen().await;
    let info = case.info(&topic);
    assert_eq!((info.first_seq, info.tail_seq, info.events), (6, 5, 0));
    let page = case
        .store
        .read(&topic, ReadFrom::Seq(1), ALL)
        .await
        .expect("a page");
    assert!(page.events.is_empty());
    assert_eq!((page.next_seq, page.first_seq, page.tail_seq), (6, 6, 5));
    case.clock.set(START_MS);
    let after = case.store(&topic, &plain("1")).await;
    assert_eq!(after.seq, 6);
    assert!(
        after.id.as_str() > before[4].id.as_str(),
        "ids go on rising"
    );
    assert!(after.ts >= before[4].ts, "times do not fall");
}

/// One topic's limits are not another's, though their events are stored together.
pub async fn topics_do_not_share_retention<H: Harness>(harness: &H) {
    let (case, kept) = Case::with_topic(harness).await;
    let options = TopicOptions {
        max_events: Some(1),
        ..TopicOptions::default()
    };
    let limited = case.put_topic("limited", options).await;
    for _ in 0..20 {
        case.store(&kept, &plain("1")).await;
        case.store(&limited, &plain("1")).await;
    }
    case.maintain().await;
    let case = case.reopen().await;
    assert_eq!(seqs(&case.all(&kept).await), (1..=20).collect::<Vec<_>>());
    assert_eq!(seqs(&case.all(&limited).await), [20]);
}
