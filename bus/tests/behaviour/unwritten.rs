//! A group whose record the store does not take: acknowledgements say so, as do the bus and a stop.

use crate::support::{Kind, earliest, next, publish, sleep, store};
use prombus::Bus;

#[tokio::test(start_paused = true)]
async fn acknowledgements_fail_until_the_record_is_written() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options).expect("the options are good");
    publish(&bus, "t", 3).await;
    let subscription = bus.subscribe("t", "g", earliest()).await.expect("a group");
    let (first, second) = (next(&subscription).await, next(&subscription).await);
    store.refuse_writes(true);
    first.ack_confirmed().await.expect("nothing failed so far");
    sleep(5_000).await;
    let unwritten = bus.unwritten_groups();
    assert_eq!(unwritten.groups, 1);
    assert!(unwritten.failures > 0);
    let cause = unwritten.latest.expect("a cause");
    assert!(cause.contains("group g of topic t"), "{cause}");
    let error = second.ack_confirmed().await.expect_err("it is not stored");
    assert_eq!(error.kind(), "NotWritten");
    let told = bus.explain("t", "g").await.expect("an explanation");
    assert!(told.sentence.contains("not written"), "{}", told.sentence);

    store.refuse_writes(false);
    sleep(31_000).await;
    assert_eq!(bus.unwritten_groups().groups, 0);
    let third = next(&subscription).await;
    third.ack_confirmed().await.expect("it is stored again");
    bus.close().await.expect("a clean stop");
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_could_not_write_a_group_says_so() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options).expect("the options are good");
    publish(&bus, "t", 1).await;
    let subscription = bus.subscribe("t", "g", earliest()).await.expect("a group");
    let delivery = next(&subscription).await;
    store.refuse_writes(true);
    delivery
        .ack_confirmed()
        .await
        .expect("nothing failed so far");
    let error = bus.close().await.expect_err("the group is not written");
    assert!(error.to_string().contains("group g of topic t"), "{error}");
}
