//! Filters: what does not match is settled unseen.

use crate::support::*;
use prombus::{FieldFilter, Filter, Pattern, PublishOptions, SubscribeOptions};
use std::collections::BTreeMap;

fn filtered(filter: Filter) -> SubscribeOptions {
    SubscribeOptions {
        filter: Some(filter),
        ..earliest()
    }
}

#[tokio::test(start_paused = true)]
async fn a_function_decides() {
    let bus = bus();
    publish(&bus, "t", 1_000).await;
    let even = Filter::function(|event| event.seq() % 100 == 0);
    let subscription = bus
        .subscribe("t", "g", filtered(even))
        .await
        .expect("subscribed");
    assert_eq!(
        take(&subscription, 10).await,
        (1..=10).map(|n| n * 100).collect::<Vec<u64>>()
    );
    sleep(10).await;
    let info = bus.group("t", "g").await.expect("it exists");
    assert_eq!(
        (info.cursor, info.lag, info.counts.filtered),
        (1_000, 0, 990)
    );
}

#[tokio::test(start_paused = true)]
async fn a_function_that_panics_lets_the_event_through() {
    let bus = bus();
    publish(&bus, "t", 1).await;
    let broken = Filter::function(|_| panic!("on purpose"));
    let subscription = bus
        .subscribe("t", "g", filtered(broken))
        .await
        .expect("subscribed");
    assert_eq!(take(&subscription, 1).await, [1]);
}

#[tokio::test(start_paused = true)]
async fn fields_decide() {
    let bus = bus();
    let headers = [
        ("kind".to_owned(), "a".to_owned()),
        ("more".to_owned(), "b".to_owned()),
    ];
    let tags = ["#x".to_owned(), "#y".to_owned()];
    let events = [
        PublishOptions::default(),
        PublishOptions {
            key: Some("web.1"),
            headers: &headers,
            tags: &tags,
            ..plain()
        },
        PublishOptions {
            key: Some("web.1.2"),
            headers: &headers,
            tags: &tags,
            ..plain()
        },
        PublishOptions {
            key: Some("web.2"),
            headers: &headers[..1],
            tags: &tags[..1],
            ..plain()
        },
    ];
    for options in &events {
        bus.publish("t", &1, options).await.expect("stored");
    }
    let key = |text: &str| Some(Pattern::new(text).expect("a pattern"));
    let header = |value: &str| BTreeMap::from([("kind".to_owned(), value.to_owned())]);
    let cases: [(FieldFilter, &[u64]); 6] = [
        (FieldFilter::default(), &[1, 2, 3, 4]),
        (
            FieldFilter {
                key: key("web.*"),
                ..Default::default()
            },
            &[2, 4],
        ),
        (
            FieldFilter {
                key: key("**"),
                ..Default::default()
            },
            &[2, 3, 4],
        ),
        (
            FieldFilter {
                headers: header("a"),
                ..Default::default()
            },
            &[2, 3, 4],
        ),
        (
            FieldFilter {
                headers: header("b"),
                ..Default::default()
            },
            &[],
        ),
        (
            FieldFilter {
                key: key("web.*"),
                headers: header("a"),
                tags: vec!["#y".into(), "#x".into()],
            },
            &[2],
        ),
    ];
    for (at, (filter, expected)) in cases.into_iter().enumerate() {
        let options = filtered(Filter::Fields(filter));
        let subscription = bus
            .subscribe("t", &format!("g{at}"), options)
            .await
            .expect("subscribed");
        assert_eq!(take(&subscription, expected.len()).await, expected);
        nothing(&subscription, 100).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_filter_is_the_groups_until_it_is_changed_on_purpose() {
    let bus = bus();
    let only_a = FieldFilter {
        key: Some(Pattern::new("a").expect("a pattern")),
        ..Default::default()
    };
    let one = bus
        .subscribe("t", "g", filtered(Filter::Fields(only_a)))
        .await
        .expect("subscribed");
    for name in ["a", "b"] {
        bus.publish("t", &1, &key(name)).await.expect("stored");
    }
    assert_eq!(take(&one, 1).await, [1]);
    drop(one);
    let two = bus
        .subscribe("t", "g", earliest())
        .await
        .expect("subscribed");
    for name in ["b", "a"] {
        bus.publish("t", &1, &key(name)).await.expect("stored");
    }
    assert_eq!(take(&two, 1).await, [4], "the group remembers its filter");
    let refused = bus.subscribe("t", "g", filtered(Filter::All)).await;
    assert_eq!(refused.expect_err("it has another").kind(), "GroupMismatch");
    let config = prombus::GroupConfig {
        filter: Some(Filter::All),
        ..Default::default()
    };
    bus.configure_group("t", "g", &config)
        .await
        .expect("changed");
    let three = bus
        .subscribe("t", "g", filtered(Filter::All))
        .await
        .expect("subscribed");
    drop(two);
    bus.publish("t", &1, &key("b")).await.expect("stored");
    assert_eq!(take(&three, 1).await, [5]);
}

#[test]
fn the_wire_form_is_json() {
    let text = r##"{"key":"web.*","headers":{"a":"b"},"tags":["#x"]}"##;
    let filter: FieldFilter = serde_json::from_str(text).expect("a filter");
    assert_eq!(serde_json::to_string(&filter).expect("JSON"), text);
    assert!(
        serde_json::from_str::<FieldFilter>("{\"keys\":\"a\"}").is_err(),
        "an unknown field"
    );
    assert!(
        serde_json::from_str::<FieldFilter>("{\"key\":\"a**\"}").is_err(),
        "a bad pattern"
    );
}
