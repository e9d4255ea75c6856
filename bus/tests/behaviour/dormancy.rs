//! Owners of a pattern's topics: only busy ones run, and nothing is missed, repeated or starved for it.

use crate::support::*;
use prombus::{Bus, BusOptions, SubscribeOptions, Subscription};
use std::collections::BTreeMap;
use std::time::Duration;

/// A bus whose subscriptions are served from few topics at a time, and whose owners end soon.
fn small_bus(pattern_topics: usize) -> Bus {
    let (store, options) = store();
    let options = BusOptions {
        pattern_topics,
        dormant_after_ms: 1_000,
        ..options
    };
    Bus::open(store, options).expect("good options")
}

async fn fill(bus: &Bus, topics: usize, events: u64) {
    for topic in 0..topics {
        publish(bus, &format!("many.t{topic}"), events).await;
    }
}

fn with_room(max_in_flight: usize) -> SubscribeOptions {
    SubscribeOptions {
        max_in_flight,
        ..earliest()
    }
}

/// Takes and acknowledges all that comes, and returns how often each event came and how many owners ran at most.
async fn drain(bus: &Bus, subscription: &Subscription) -> (BTreeMap<(String, u64), u32>, usize) {
    let (mut came, mut most) = (BTreeMap::new(), 0);
    while let Ok(Some(delivery)) =
        tokio::time::timeout(Duration::from_secs(5), subscription.next()).await
    {
        most = most.max(bus.running_groups());
        let event = (delivery.event.topic().to_owned(), delivery.event.seq());
        *came.entry(event).or_default() += 1;
        delivery.ack();
    }
    (came, most)
}

#[tokio::test(start_paused = true)]
async fn owners_with_nothing_to_do_end_and_come_back() {
    let bus = small_bus(1_000);
    fill(&bus, 50, 1).await;
    let subscription = bus.subscribe("many.*", "g", earliest()).await;
    let subscription = subscription.expect("subscribed");
    let (came, most) = drain(&bus, &subscription).await;
    assert_eq!((came.len(), most), (50, 50));
    assert_eq!(bus.running_groups(), 0, "all is settled and written");
    sleep(600_000).await;
    publish_one(&bus, "many.t7", 2).await;
    publish_one(&bus, "many.new", 1).await;
    let (came, most) = drain(&bus, &subscription).await;
    let expected = BTreeMap::from([(("many.new".into(), 1), 1), (("many.t7".into(), 2), 1)]);
    assert_eq!((came, most), (expected, 2));
    let info = bus.group("many.t7", "g").await.expect("it exists");
    assert_eq!((info.cursor, info.lag, info.counts.acked), (2, 0, 2));
    assert_eq!(subscription.ended(), None);
}

#[tokio::test(start_paused = true)]
async fn a_pattern_over_many_topics_runs_few_owners_at_a_time() {
    let bus = small_bus(8);
    fill(&bus, 300, 3).await;
    let subscription = bus.subscribe("many.*", "g", with_room(4)).await;
    let subscription = subscription.expect("subscribed");
    sleep(10_000).await;
    let idle = bus.running_groups();
    assert!((1..=13).contains(&idle), "nobody takes anything: {idle}");
    let (came, most) = drain(&bus, &subscription).await;
    assert_eq!(came.len(), 900);
    assert!(came.values().all(|times| *times == 1), "{came:?}");
    assert!(most <= 16, "{most}");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_paused_starts_no_more_owners() {
    let bus = small_bus(8);
    let subscription = bus.subscribe("many.*", "g", with_room(4)).await;
    let subscription = subscription.expect("subscribed");
    subscription.pause();
    fill(&bus, 100, 1).await;
    sleep(10_000).await;
    assert_eq!(bus.running_groups(), 8);
    subscription.resume();
    let (came, _) = drain(&bus, &subscription).await;
    assert_eq!(came.len(), 100);
}

#[tokio::test(start_paused = true)]
async fn busy_topics_do_not_starve_the_others() {
    let bus = small_bus(2);
    for topic in ["many.a", "many.b", "many.c"] {
        publish(&bus, topic, 200).await;
    }
    publish(&bus, "many.d", 1).await;
    let subscription = bus.subscribe("many.*", "g", with_room(1)).await;
    let subscription = subscription.expect("subscribed");
    let mut before = 0;
    loop {
        let delivery = next(&subscription).await;
        // An owner makes way once its record is written, which takes a moment.
        sleep(10).await;
        let is_last = delivery.event.topic() == "many.d";
        delivery.ack();
        if is_last {
            break;
        }
        before += 1;
        assert!(before < 50, "many.d waits for ever");
    }
    let (came, _) = drain(&bus, &subscription).await;
    assert_eq!(came.len() + before, 600);
}

#[tokio::test(start_paused = true)]
async fn members_of_one_group_share_topics_that_sleep() {
    let bus = small_bus(4);
    let one = bus.subscribe("many.*", "g", with_room(2)).await;
    let two = bus.subscribe("many.*", "g", with_room(2)).await;
    let (one, two) = (one.expect("subscribed"), two.expect("subscribed"));
    for round in 0..3 {
        fill(&bus, 40, 1).await;
        let (mine, theirs) = tokio::join!(drain(&bus, &one), drain(&bus, &two));
        assert_eq!(mine.0.len() + theirs.0.len(), 40, "round {round}");
        sleep(20_000).await;
        assert_eq!(bus.running_groups(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_settled_stays_so_for_those_who_come_late() {
    let bus = small_bus(1_000);
    publish(&bus, "many.a", 2).await;
    let options = || SubscribeOptions {
        ack_timeout_ms: Some(1_000),
        max_in_flight: 1,
        ..earliest()
    };
    let slow = bus.subscribe("many.*", "g", options()).await;
    let slow = slow.expect("subscribed");
    let held = next(&slow).await;
    slow.pause();
    let quick = bus.subscribe("many.*", "g", options()).await;
    let quick = quick.expect("subscribed");
    assert_eq!(take(&quick, 2).await, [2, 1], "the lease ran out");
    sleep(5_000).await;
    assert_eq!(bus.running_groups(), 0);
    let id = held.event.id().into_owned();
    let late = slow.control().ack_ids("many.a", &[&id, "nobody"]).await;
    assert_eq!(late[0], Ok(()));
    assert_eq!(
        late[1].clone().map_err(|error| error.kind()),
        Err("UnknownId")
    );
    let extended = held.extend_confirmed(1_000).await;
    assert_eq!(extended.map_err(|error| error.kind()), Err("UnknownId"));
    assert_eq!(held.ack_confirmed().await, Ok(()));
    let other = slow.control().ack_ids("many.none", &[&id]).await;
    assert_eq!(
        other[0].clone().map_err(|error| error.kind()),
        Err("UnknownId")
    );
    let foreign = slow.control().ack_ids("other", &[&id]).await;
    assert_eq!(
        foreign[0].clone().map_err(|error| error.kind()),
        Err("Gone")
    );
    sleep(5_000).await;
    assert_eq!(bus.running_groups(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_ephemeral_group_goes_on_where_it_was() {
    let bus = small_bus(1_000);
    fill(&bus, 5, 2).await;
    let subscription = bus.subscribe_ephemeral("many.*", earliest()).await;
    let subscription = subscription.expect("subscribed");
    assert_eq!(drain(&bus, &subscription).await.0.len(), 10);
    assert_eq!(bus.running_groups(), 0);
    for topic in 0..5 {
        publish_one(&bus, &format!("many.t{topic}"), 3).await;
    }
    let (came, _) = drain(&bus, &subscription).await;
    let seqs: Vec<u64> = came.keys().map(|(_, seq)| *seq).collect();
    assert_eq!(seqs, [3; 5]);
    bus.delete_topic("many.t0").await.expect("deleted");
    publish(&bus, "many.t0", 2).await;
    let (came, _) = drain(&bus, &subscription).await;
    assert_eq!(came.len(), 2, "another incarnation is read from its start");
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_fails_or_is_paused_is_not_forgotten() {
    let bus = small_bus(1_000);
    publish(&bus, "many.a", 1).await;
    publish(&bus, "many.b", 1).await;
    let subscription = bus.subscribe("many.*", "g", earliest()).await;
    let subscription = subscription.expect("subscribed");
    for _ in 0..2 {
        let delivery = next(&subscription).await;
        match delivery.event.topic() {
            "many.a" => delivery.nack_after("later", 30_000),
            _ => delivery.ack(),
        }
    }
    bus.pause_group("many.b", "g").await.expect("it exists");
    publish(&bus, "many.b", 1).await;
    let again = next(&subscription).await;
    assert_eq!((again.event.topic(), again.context.attempt), ("many.a", 2));
    again.ack();
    nothing(&subscription, 30_000).await;
    bus.resume_group("many.b", "g").await.expect("it exists");
    assert_eq!(next(&subscription).await.event.seq(), 2);
}
