//! Ephemeral subscriptions: they leave nothing behind.

use crate::support::*;
use prombus::SubscribeOptions;

#[tokio::test(start_paused = true)]
async fn it_starts_at_the_latest_and_leaves_nothing_behind() {
    let bus = bus();
    publish(&bus, "t", 3).await;
    let subscription = bus
        .subscribe_ephemeral("t", SubscribeOptions::default())
        .await
        .expect("subscribed");
    let other = bus
        .subscribe_ephemeral("t", earliest())
        .await
        .expect("subscribed");
    assert_ne!(subscription.group(), other.group());
    publish_one(&bus, "t", 4).await;
    assert_eq!(take(&subscription, 1).await, [4]);
    assert_eq!(take(&other, 4).await, [1, 2, 3, 4]);
    assert_eq!(bus.groups("t").await.expect("they can be read").len(), 2);
    let group = subscription.group().to_owned();
    assert_eq!(
        bus.group("t", &group).await.expect("it is served").cursor,
        4
    );
    drop((subscription, other));
    sleep(1_000).await;
    assert!(bus.groups("t").await.expect("they can be read").is_empty());
    assert!(
        bus.store()
            .list("group/")
            .await
            .expect("it can be read")
            .is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn its_failures_make_no_dead_letters() {
    let bus = bus();
    publish(&bus, "t", 1).await;
    let options = SubscribeOptions {
        max_attempts: Some(2),
        ..earliest()
    };
    let subscription = bus
        .subscribe_ephemeral("t", options)
        .await
        .expect("subscribed");
    next(&subscription).await.nack("bad");
    let again = next(&subscription).await;
    assert_eq!(again.context.attempt, 2);
    again.nack("bad");
    nothing(&subscription, 60_000).await;
    assert!(bus.store().topic("dlq.t").is_none());
    let info = bus
        .group("t", subscription.group())
        .await
        .expect("it is served");
    assert_eq!((info.cursor, info.counts.given_up), (1, 1));
}
