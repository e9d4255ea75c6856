//! Wrong inputs to everything but publishing, each refused with its own error.

use crate::support::*;
use prombus::error::{GroupError, OpenError, SubscribeError};
use prombus::{
    Backoff, Bus, BusOptions, Limits, StartAt, SubscribeExtras, SubscribeOptions, TopicConfig,
};

#[tokio::test(start_paused = true)]
async fn subscribe_options_that_make_no_sense() {
    let bus = bus();
    let good = SubscribeOptions::default;
    let cases = [
        SubscribeOptions {
            batch_size: 0,
            ..good()
        },
        SubscribeOptions {
            max_in_flight: 0,
            ..good()
        },
        SubscribeOptions {
            max_in_flight: usize::MAX,
            ..good()
        },
        SubscribeOptions {
            concurrency: 0,
            ..good()
        },
        SubscribeOptions {
            ack_timeout_ms: Some(0),
            ..good()
        },
        SubscribeOptions {
            ack_timeout_ms: Some(u64::MAX),
            ..good()
        },
        SubscribeOptions {
            max_attempts: Some(0),
            ..good()
        },
        SubscribeOptions {
            from: StartAt::Seq(0),
            ..good()
        },
        SubscribeOptions {
            extras: SubscribeExtras::member(""),
            ..good()
        },
        SubscribeOptions {
            topics: vec!["t".into(); 1_025],
            ..good()
        },
    ];
    for options in cases {
        let error = bus
            .subscribe("t", "g", options)
            .await
            .expect_err("it makes no sense");
        assert!(matches!(error, SubscribeError::InvalidField(_)), "{error}");
        assert_eq!(error.kind(), "InvalidField");
    }
}

#[tokio::test(start_paused = true)]
async fn names_that_are_none() {
    let bus = bus();
    for topic in ["", "a b", "a..b"] {
        let error = bus
            .subscribe(topic, "g", earliest())
            .await
            .expect_err("no topic");
        assert_eq!(error.kind(), "InvalidTopic");
    }
    let error = bus
        .subscribe("a**", "g", earliest())
        .await
        .expect_err("no pattern");
    assert!(
        matches!(error, SubscribeError::InvalidPattern(_)),
        "{error}"
    );
    for group in ["", "a b", &"x".repeat(129)] {
        let error = bus
            .subscribe("t", group, earliest())
            .await
            .expect_err("no group");
        assert_eq!(error.kind(), "InvalidGroup");
        assert!(bus.group("t", group).await.is_err());
    }
    assert_eq!(
        bus.group("a b", "g").await.map_err(|error| error.kind()),
        Err("InvalidTopic")
    );
}

#[tokio::test(start_paused = true)]
async fn places_that_are_none() {
    let bus = bus();
    publish(&bus, "t", 1).await;
    for topic in ["t", "not yet"].map(|topic| topic.replace(' ', "-")) {
        let options = SubscribeOptions {
            from: StartAt::AfterId("x".into()),
            ..Default::default()
        };
        let error = bus
            .subscribe(&topic, "g", options)
            .await
            .expect_err("no such id");
        assert_eq!(error.kind(), "UnknownId", "{error}");
        assert!(matches!(
            bus.group(&topic, "g").await,
            Err(GroupError::UnknownGroup(_))
        ));
    }
    drop(
        bus.subscribe("t", "g", earliest())
            .await
            .expect("subscribed"),
    );
    let error = bus
        .seek("t", "g", StartAt::AfterId("x".into()))
        .await
        .expect_err("no such id");
    assert_eq!(error.kind(), "UnknownId");
    assert!(bus.seek("t", "g", StartAt::Seq(0)).await.is_err());
    for error in [
        bus.seek("t", "nobody", StartAt::Latest)
            .await
            .expect_err("no such group"),
        bus.remove_group("t", "nobody")
            .await
            .expect_err("no such group"),
        bus.explain("t", "nobody").await.expect_err("no such group"),
        bus.lag("t", "nobody")
            .await
            .map(drop)
            .expect_err("no such group"),
    ] {
        assert!(matches!(error, GroupError::UnknownGroup(_)), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn topics_that_do_not_exist_where_publishing_makes_none() {
    let (store, options) = store();
    let options = BusOptions {
        auto_create_topics: false,
        ..options
    };
    let bus = Bus::open(store, options).expect("the options are good");
    let error = bus.publish("t", &1, &plain()).await.expect_err("unknown");
    assert_eq!(error.kind(), "UnknownTopic");
    assert_eq!(
        bus.subscribe("t", "g", earliest())
            .await
            .expect_err("unknown")
            .kind(),
        "UnknownTopic"
    );
    assert_eq!(
        bus.groups("t").await.expect_err("unknown").kind(),
        "UnknownTopic"
    );
    assert_eq!(bus.topic("t").expect_err("unknown").kind(), "UnknownTopic");
    assert!(
        bus.subscribe("**", "g", earliest()).await.is_ok(),
        "a pattern may match nothing yet"
    );
    bus.create_topic("t", &TopicConfig::default())
        .await
        .expect("made");
    assert!(bus.publish("t", &1, &plain()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn bus_options_that_make_no_sense() {
    let (store, good) = store();
    let cases = [
        BusOptions {
            group_window: 0,
            ..good.clone()
        },
        BusOptions {
            ack_flush_ms: 60_001,
            ..good.clone()
        },
        BusOptions {
            backoff: Backoff {
                first_ms: 0,
                longest_ms: 1,
            },
            ..good.clone()
        },
        BusOptions {
            backoff: Backoff {
                first_ms: 2,
                longest_ms: 1,
            },
            ..good.clone()
        },
        BusOptions {
            topic_defaults: vec![(
                "a".into(),
                TopicConfig {
                    partitions: Some(0),
                    ..Default::default()
                },
            )],
            ..good.clone()
        },
    ];
    let limits = [
        |limits: &mut Limits| limits.max_payload_bytes = 0,
        |limits: &mut Limits| limits.max_payload_bytes = (32 << 20) + 1,
        |limits: &mut Limits| limits.max_sid_bytes = 1025,
        |limits: &mut Limits| limits.max_header_bytes = 1 << 20,
        |limits: &mut Limits| limits.max_tags = usize::MAX,
        |limits: &mut Limits| limits.max_causes = 8193,
        |limits: &mut Limits| limits.max_key_bytes = 513,
    ];
    let limits = limits.map(|change: fn(&mut Limits)| {
        let mut options = good.clone();
        change(&mut options.limits);
        options
    });
    for options in cases.into_iter().chain(limits) {
        let error = Bus::open(store.clone(), options).expect_err("it makes no sense");
        assert!(matches!(error, OpenError::InvalidField(_)), "{error}");
    }
    let topic_defaults = vec![("a..b".into(), TopicConfig::default())];
    let error = Bus::open(
        store,
        BusOptions {
            topic_defaults,
            ..good
        },
    )
    .expect_err("no pattern");
    assert!(matches!(error, OpenError::InvalidPattern(_)), "{error}");
}

#[test]
fn a_bus_needs_a_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let (store, options) = runtime.block_on(async { store() });
    assert_eq!(
        Bus::open(store, options).expect_err("no runtime"),
        OpenError::NoRuntime
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_read_or_written() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options).expect("the options are good");
    publish(&bus, "t", 2).await;
    store.refuse_writes(true);
    let error = bus
        .subscribe("t", "g", earliest())
        .await
        .expect_err("the group cannot be made");
    assert_eq!(error.kind(), "StoreFailed");
    store.refuse_writes(false);
    let subscription = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    take(&subscription, 2).await;
    store.refuse_reads(true);
    publish_one(&bus, "t", 3).await;
    nothing(&subscription, 5_000).await;
    let error = bus
        .subscribe("t", "other", earliest())
        .await
        .expect_err("it cannot be read");
    assert!(
        matches!(error, SubscribeError::Group(GroupError::ReadFailed { .. })),
        "{error}"
    );
    store.refuse_reads(false);
    assert_eq!(take(&subscription, 1).await, [3], "it goes on by itself");
}
