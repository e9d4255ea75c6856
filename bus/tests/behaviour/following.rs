//! Following a topic in order, without a group.

use super::support::{Kind, bus, plain, publish, publish_one, sleep};
use prombus::error::FollowError;
use prombus::{Bus, Follow};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn every_event_comes_once_and_in_order() {
    let bus = bus();
    publish(&bus, "t", 3).await;
    let mut follow = bus.follow("t", 1).expect("it is there");
    assert!(!follow.is_caught_up());
    assert_eq!(next(&mut follow).await, [1, 2, 3]);
    assert!(follow.is_caught_up());
    let later = {
        let bus = bus.clone();
        tokio::spawn(async move {
            sleep(1_000).await;
            publish(&bus, "t", 2).await;
        })
    };
    let mut seqs = next(&mut follow).await;
    while seqs.len() < 2 {
        seqs.extend(next(&mut follow).await);
    }
    assert_eq!(seqs, [4, 5]);
    later.await.expect("published");
    assert_eq!(follow.next_seq(), 6);
    let mut behind = bus.follow("t", 5).expect("a position");
    assert_eq!(next(&mut behind).await, [5]);
    assert!(behind.read_on().await.expect("a read").is_none());
}

#[tokio::test(start_paused = true)]
async fn waiting_that_is_given_up_loses_nothing() {
    let bus = bus();
    publish(&bus, "t", 1).await;
    let mut follow = bus.follow("t", 2).expect("one behind the tail");
    let waiting = tokio::time::timeout(Duration::from_secs(5), follow.next_page());
    assert!(waiting.await.is_err(), "there is nothing yet");
    publish_one(&bus, "t", 2).await;
    assert_eq!(next(&mut follow).await, [2]);
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_is_passed_over() {
    let bus = bus();
    publish(&bus, "t", 3).await;
    let mut follow = bus.follow("t", 1).expect("it is there");
    bus.purge_topic("t").await.expect("purged");
    publish_one(&bus, "t", 4).await;
    assert_eq!(next(&mut follow).await, [4]);
}

#[tokio::test(start_paused = true)]
async fn closing_the_bus_ends_it() {
    let bus = bus();
    publish(&bus, "t", 1).await;
    let mut follow = bus.follow("t", 2).expect("it is there");
    let waiting = tokio::spawn(async move { follow.next_page().await });
    sleep(10).await;
    bus.close().await.expect("closed");
    let ended = waiting.await.expect("no panic").expect("no error");
    assert!(ended.is_none());
}

#[tokio::test(start_paused = true)]
async fn topics_that_are_not_there_or_not_the_same_are_errors() {
    let bus = bus();
    assert_eq!(refused(&bus, "t", 1), "UnknownTopic");
    assert_eq!(refused(&bus, "no topic", 1), "InvalidTopic");
    publish(&bus, "t", 3).await;
    assert_eq!(refused(&bus, "t", 0), "InvalidField");
    assert_eq!(refused(&bus, "t", 5), "InvalidField");
    let mut follow = bus.follow("t", 4).expect("it is there");
    bus.delete_topic("t").await.expect("deleted");
    let gone = follow.next_page().await.expect_err("gone");
    assert!(matches!(gone, FollowError::UnknownTopic(_)), "{gone}");
    bus.publish("t", &1, &plain()).await.expect("made again");
    let another = follow.next_page().await.expect_err("another");
    assert!(
        matches!(another, FollowError::TopicReplaced(_)),
        "{another}"
    );
}

fn refused(bus: &Bus, topic: &str, from_seq: u64) -> &'static str {
    bus.follow(topic, from_seq).expect_err("refused").kind()
}

async fn next(follow: &mut Follow) -> Vec<u64> {
    let page = tokio::time::timeout(Duration::from_secs(60), follow.next_page()).await;
    let page = page.expect("in time").expect("a page").expect("open");
    page.events.iter().map(|event| event.seq()).collect()
}
