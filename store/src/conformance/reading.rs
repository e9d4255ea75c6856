//! Obligation 5, by position: everything once, in order, in pages of any size.

use super::Harness;
use super::case::{ALL, Case, at_most, plain, seqs};
use crate::{ReadFrom, ReadLimit, StoredEvent, TopicOptions};
use std::sync::Arc;

/// Whatever the limits and wherever one starts, pages put together are the topic.
pub async fn pages_cover_everything_once<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let other = case.put_topic("other", TopicOptions::default()).await;
    fill(&case, &topic, &other, 120).await;
    let mut case = case;
    for _ in 0..2 {
        let all = case.all(&topic).await;
        assert_eq!(seqs(&all), (1..=120).collect::<Vec<_>>());
        for from_seq in [0, 1, 2, 60, 119, 120, 121] {
            let expected: Vec<&str> = all[(from_seq.max(1) as usize - 1).min(120)..]
                .iter()
                .map(StoredEvent::json)
                .collect();
            for limit in [
                at_most(1),
                at_most(7),
                at_most(120),
                bytes(1),
                bytes(2000),
                ALL,
            ] {
                let read = case.pages(&topic, from_seq, limit).await;
                let read: Vec<&str> = read.iter().map(StoredEvent::json).collect();
                assert_eq!(read, expected, "from {from_seq} with {limit:?}");
            }
        }
        case = case.reopen().await;
    }
}

/// An event that is larger than the limit is still read.
pub async fn a_page_has_at_least_one_event<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let large = format!("\"{}\"", "x".repeat(500_000));
    case.store_all(&topic, &[plain("1"), plain(&large), plain("3")])
        .await;
    let case = case.reopen().await;
    for seq in 1..=3 {
        let page = case
            .store
            .read(&topic, ReadFrom::Seq(seq), bytes(1))
            .await
            .expect("a page");
        assert_eq!(seqs(&page.events), [seq]);
        assert_eq!(page.next_seq, seq + 1);
    }
    assert_eq!(case.all(&topic).await[1].payload(), large);
}

/// A page takes about as many bytes as asked for: not many more, and not far fewer while there are events.
pub async fn a_page_ends_near_its_byte_limit<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let payload = format!("\"{}\"", "x".repeat(1000));
    case.store_all(&topic, &vec![plain(&payload); 100]).await;
    for limit in [3000, 10_000, 50_000] {
        let page = case
            .store
            .read(&topic, ReadFrom::Seq(1), bytes(limit))
            .await
            .expect("a page");
        let taken: usize = page.events.iter().map(StoredEvent::stored_bytes).sum();
        let one = page.events[0].stored_bytes();
        assert!(taken <= limit + one, "{taken} bytes for {limit}");
        assert!(taken >= limit / 2, "{taken} bytes for {limit}");
    }
}

/// At the tail there is nothing yet, and reading goes on where it stands.
pub async fn reading_at_and_behind_the_tail<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    case.store_all(&topic, &[plain("1"), plain("2")]).await;
    let page = case
        .store
        .read(&topic, ReadFrom::Seq(3), ALL)
        .await
        .expect("a page");
    assert!(page.events.is_empty());
    assert_eq!((page.next_seq, page.first_seq, page.tail_seq), (3, 1, 2));
    for from_seq in [4, 1000, u64::MAX] {
        let page = case
            .store
            .read(&topic, ReadFrom::Seq(from_seq), ALL)
            .await
            .expect("a page");
        assert!(page.events.is_empty(), "from {from_seq}");
        assert_eq!(page.tail_seq, 2);
    }
    case.store(&topic, &plain("3")).await;
    let page = case
        .store
        .read(&topic, ReadFrom::Seq(3), ALL)
        .await
        .expect("a page");
    assert_eq!(seqs(&page.events), [3]);
    assert_eq!((page.next_seq, page.tail_seq), (4, 3));
}

/// Reading from a position that is gone goes on at the oldest one that is kept.
pub async fn reading_over_what_is_gone<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    case.store_all(&topic, &vec![plain("1"); 30]).await;
    case.trim(&topic, 21).await;
    for from_seq in [0, 1, 20, 21] {
        let page = case
            .store
            .read(&topic, ReadFrom::Seq(from_seq), at_most(4))
            .await
            .expect("a page");
        assert_eq!(seqs(&page.events), [21, 22, 23, 24]);
        assert_eq!((page.next_seq, page.first_seq), (25, 21));
    }
    case.trim(&topic, 31).await;
    let page = case
        .store
        .read(&topic, ReadFrom::Seq(5), ALL)
        .await
        .expect("a page");
    assert!(page.events.is_empty());
    assert_eq!((page.next_seq, page.first_seq, page.tail_seq), (31, 31, 30));
}

/// Publishes events of many sizes to `topic`, mixed with as many to `other`.
async fn fill<H: Harness>(case: &Case<'_, H>, topic: &Arc<str>, other: &Arc<str>, count: usize) {
    for number in 0..count {
        let payload = format!("\"{number}{}\"", "-".repeat(number * 13 % 400));
        case.store(topic, &plain(&payload)).await;
        case.store(other, &plain(&payload)).await;
    }
}

fn bytes(bytes: usize) -> ReadLimit {
    ReadLimit { bytes, ..ALL }
}
