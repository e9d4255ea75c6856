//! Shadow groups: fed again, at the original pace or another, and leaving nothing behind.

use crate::support::*;
use prombus::error::{GroupError, SubscribeError};
use prombus::{
    Bus, FieldFilter, Filter, Pace, PublishOptions, ShadowGroup, ShadowOptions, StartAt,
    SubscribeOptions, Subscription,
};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// Three events, the second 10 s after the first and the third 5 s later, and a group that has settled them.
async fn traffic(bus: &Bus, options: SubscribeOptions) -> Subscription {
    for ts in [START_MS, START_MS + 10_000, START_MS + 15_000] {
        let options = PublishOptions {
            ts: Some(ts),
            ..plain()
        };
        let published = bus.publish("t", &ts, &options).await;
        published.expect("published");
    }
    let subscription = bus.subscribe("t", "g", options).await;
    subscription.expect("subscribed")
}

async fn shadow(bus: &Bus, options: &ShadowOptions) -> ShadowGroup {
    let made = bus.shadow_group("t", "g", options).await;
    made.expect("a shadow")
}

async fn join(bus: &Bus, shadow: &ShadowGroup) -> Subscription {
    let options = SubscribeOptions::default();
    let subscription = bus.subscribe("t", &shadow.group, options).await;
    subscription.expect("subscribed")
}

async fn nothing(subscription: &Subscription) {
    let waited = timeout(Duration::from_secs(60), subscription.next()).await;
    assert!(waited.is_err(), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn events_come_with_the_time_between_them_that_there_was() {
    for (pace, expected_ms) in [
        (Pace::Original, [0, 10_000, 15_000]),
        (Pace::Times(5.0), [0, 2_000, 3_000]),
        (Pace::Times(0.5), [0, 20_000, 30_000]),
        (Pace::Max, [0, 0, 0]),
    ] {
        let bus = bus();
        let _original = traffic(&bus, earliest()).await;
        let made = shadow(
            &bus,
            &ShadowOptions {
                pace,
                ..ShadowOptions::default()
            },
        )
        .await;
        let began = Instant::now();
        let members = [join(&bus, &made).await, join(&bus, &made).await];
        for (seq, due_ms) in (1..).zip(expected_ms) {
            let delivery = tokio::select! {
                delivery = next(&members[0]) => delivery,
                delivery = next(&members[1]) => delivery,
            };
            assert_eq!(delivery.event.seq(), seq);
            assert!(delivery.context.shadow);
            let waited_ms = began.elapsed().as_millis() as u64;
            assert!(
                (due_ms..due_ms + 50).contains(&waited_ms),
                "{pace:?}: {waited_ms}"
            );
            delivery.ack();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn it_ends_where_it_is_told_and_follows_the_topic_otherwise() {
    let bus = bus();
    let original = traffic(&bus, earliest()).await;
    let part = ShadowOptions {
        from: StartAt::Seq(2),
        to: Some(2),
        pace: Pace::Max,
        ..ShadowOptions::default()
    };
    let made = shadow(&bus, &part).await;
    assert_eq!((made.from_seq, made.to_seq), (2, Some(2)));
    let member = join(&bus, &made).await;
    let delivery = next(&member).await;
    assert_eq!(delivery.event.seq(), 2);
    delivery.ack();
    nothing(&member).await;
    let open = ShadowOptions {
        from: StartAt::Latest,
        ..part
    };
    let made = shadow(&bus, &ShadowOptions { to: None, ..open }).await;
    let follower = join(&bus, &made).await;
    bus.publish("t", &1, &plain()).await.expect("published");
    assert_eq!(next(&follower).await.event.seq(), 4);
    let seen = next(&original).await;
    assert!(!seen.context.shadow, "the original is served as before");
    assert_eq!(seen.event.seq(), 1);
}

#[tokio::test(start_paused = true)]
async fn dead_letters_go_nowhere_and_settings_are_those_of_the_original() {
    let bus = bus();
    let filter = Filter::Fields(FieldFilter {
        tags: vec!["#wanted".to_owned()],
        ..FieldFilter::default()
    });
    let options = SubscribeOptions {
        max_attempts: Some(2),
        filter: Some(filter),
        ..earliest()
    };
    let _original = traffic(&bus, options).await;
    let tagged = PublishOptions {
        tags: &["#wanted".to_owned()],
        ..plain()
    };
    bus.publish("t", &1, &tagged).await.expect("published");
    let max = ShadowOptions {
        pace: Pace::Max,
        ..ShadowOptions::default()
    };
    let made = shadow(&bus, &max).await;
    let member = join(&bus, &made).await;
    for attempt in 1..=2 {
        let delivery = next(&member).await;
        let seen = (delivery.event.seq(), delivery.context.attempt);
        assert_eq!((seen, delivery.context.max_attempts), ((4, attempt), 2));
        delivery.nack("no");
    }
    nothing(&member).await;
    assert!(bus.topic("dlq.t").is_err(), "no dead letter was written");
}

#[tokio::test(start_paused = true)]
async fn it_is_gone_with_its_last_member_or_after_its_time() {
    let bus = bus();
    let _original = traffic(&bus, earliest()).await;
    let short = ShadowOptions {
        ttl_ms: 5_000,
        ..ShadowOptions::default()
    };
    let left = shadow(&bus, &short).await;
    drop(join(&bus, &left).await);
    sleep(Duration::from_secs(1)).await;
    let unused = shadow(&bus, &short).await;
    let used = shadow(&bus, &short).await;
    let member = join(&bus, &used).await;
    next(&member).await.ack();
    let ended = timeout(Duration::from_secs(60), member.next()).await;
    assert!(ended.expect("it ends").is_none());
    for gone in [left, unused, used] {
        let again = bus.subscribe("t", &gone.group, earliest()).await;
        let unknown = |error: &SubscribeError| {
            matches!(error, SubscribeError::Group(GroupError::UnknownGroup(_)))
        };
        assert!(again.is_err_and(|error| unknown(&error)), "{}", gone.group);
    }
    let groups = bus.groups("t").await.expect("groups");
    let names: Vec<&str> = groups.iter().map(|group| &*group.group).collect();
    assert_eq!(names, ["g"]);
}

#[tokio::test(start_paused = true)]
async fn what_makes_no_sense_is_refused() {
    let bus = bus();
    let _original = traffic(&bus, earliest()).await;
    let defaults = ShadowOptions::default();
    let unknown = bus.shadow_group("t", "other", &defaults).await;
    assert!(matches!(unknown, Err(GroupError::UnknownGroup(_))));
    let unknown = bus.shadow_group("other", "g", &defaults).await;
    assert!(matches!(unknown, Err(GroupError::UnknownGroup(_))));
    for options in [
        ShadowOptions {
            pace: Pace::Times(0.0),
            ..defaults.clone()
        },
        ShadowOptions {
            pace: Pace::Times(f64::NAN),
            ..defaults.clone()
        },
        ShadowOptions {
            ttl_ms: 0,
            ..defaults.clone()
        },
        ShadowOptions {
            from: StartAt::Seq(3),
            to: Some(2),
            ..defaults.clone()
        },
    ] {
        let refused = bus.shadow_group("t", "g", &options).await;
        assert!(
            matches!(refused, Err(GroupError::InvalidField(_))),
            "{options:?}"
        );
    }
    for _ in 0..64 {
        shadow(&bus, &defaults).await;
    }
    let refused = bus.shadow_group("t", "g", &defaults).await;
    assert!(
        matches!(refused, Err(GroupError::InvalidField(_))),
        "max_shadows"
    );
}
