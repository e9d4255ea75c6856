//! Events of earlier versions of their schema, upcast on their way to a subscriber.

use crate::support::*;
use prombus::{
    Bus, Compatibility, Delivery, PublishOptions, RegisterSchema, SCHEMA_VERSION_HEADER,
    SubscribeExtras, SubscribeOptions, UPCAST_FROM_HEADER, UpcastFunction,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn closed(properties: &Value, required: &Value, upcast: &Value) -> String {
    json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        "x-upcast": upcast,
    })
    .to_string()
}

/// Three versions: a name that is renamed, then a price that is moved and gets a currency.
fn versions() -> [String; 3] {
    let (text, number) = (json!({"type": "string"}), json!({"type": "number"}));
    let cost = json!({
        "type": "object", "properties": {"amount": number, "currency": text}, "required": ["currency"],
    });
    [
        closed(
            &json!({"name": text, "price": number, "legacy": {}}),
            &json!(["name"]),
            &json!([]),
        ),
        closed(
            &json!({"title": text, "price": number}),
            &json!(["title"]),
            &json!([{"rename": {"from": "/name", "to": "title"}}, {"remove": {"path": "/legacy"}}]),
        ),
        closed(
            &json!({"title": text, "cost": cost}),
            &json!(["title", "cost"]),
            &json!([
                {"move": {"from": "/price", "to": "/cost/amount"}},
                {"default": {"path": "/cost/currency", "value": "EUR"}},
            ]),
        ),
    ]
}

async fn register(bus: &Bus, schema: &str) {
    let options = RegisterSchema {
        compatibility: Some(Compatibility::None),
    };
    let registered = bus.register_schema("t", schema, options).await;
    registered.expect("registered");
}

async fn publish(bus: &Bus, payload: &Value) {
    let published = bus.publish("t", payload, &plain()).await;
    published.expect("published");
}

fn upcasting() -> SubscribeOptions {
    SubscribeOptions {
        upcast: true,
        ..earliest()
    }
}

fn payload(delivery: &Delivery) -> Value {
    delivery.value().expect("JSON")
}

#[tokio::test(start_paused = true)]
async fn events_of_all_versions_come_as_the_latest() {
    let bus = bus();
    let [v1, v2, v3] = versions();
    register(&bus, &v1).await;
    let keyed = PublishOptions {
        key: Some("k"),
        id: Some("own"),
        ts: Some(5),
        ..plain()
    };
    let first = json!({"name": "a", "price": 1.5, "legacy": [1]});
    bus.publish("t", &first, &keyed).await.expect("published");
    register(&bus, &v2).await;
    publish(&bus, &json!({"title": "b"})).await;
    register(&bus, &v3).await;
    publish(&bus, &json!({"title": "c", "cost": {"currency": "USD"}})).await;
    let subscription = bus.subscribe("t", "new", upcasting()).await;
    let subscription = subscription.expect("subscribed");
    let expected = [
        (
            json!({"title": "a", "cost": {"amount": 1.5, "currency": "EUR"}}),
            Some("1"),
        ),
        (
            json!({"title": "b", "cost": {"currency": "EUR"}}),
            Some("2"),
        ),
        (json!({"title": "c", "cost": {"currency": "USD"}}), None),
    ];
    for (seq, (expected, from)) in (1..).zip(&expected) {
        let delivery = next(&subscription).await;
        assert_eq!(&payload(&delivery), expected);
        let headers = delivery.fields().headers;
        assert_eq!(headers[SCHEMA_VERSION_HEADER], "3");
        let stored_as = headers.get(UPCAST_FROM_HEADER).map(String::as_str);
        assert_eq!(stored_as, *from);
        let event = &delivery.event;
        assert_eq!(event.seq(), seq);
        if seq == 1 {
            let own = (event.id(), event.ts(), event.key());
            assert_eq!(own, ("own".into(), 5, Some("k".into())));
        }
        let acked = delivery.ack_confirmed().await;
        acked.expect("settled as any other");
    }
    let others = bus.subscribe("t", "old", earliest()).await;
    let stored = next(&others.expect("subscribed")).await;
    assert_eq!(payload(&stored), first, "others get what is stored");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_upcast_comes_as_it_is_stored() {
    let bus = bus();
    let [v1, v2, v3] = versions();
    publish(&bus, &json!("before any schema")).await;
    register(&bus, &v1).await;
    publish(&bus, &json!({"name": "a"})).await;
    register(&bus, &v2).await;
    register(&bus, &v3).await;
    let removed = bus.remove_schema("t", Some(2)).await;
    removed.expect("removed");
    let subscription = bus.subscribe("t", "g", upcasting()).await;
    let subscription = subscription.expect("subscribed");
    assert_eq!(payload(&next(&subscription).await), "before any schema");
    let delivery = next(&subscription).await;
    assert_eq!(payload(&delivery), json!({"name": "a"}), "a step is gone");
    assert_eq!(delivery.fields().headers[SCHEMA_VERSION_HEADER], "1");
    // Without a step for its new property, the event would not fit.
    let strict = closed(&json!({"n": {}}), &json!(["n"]), &json!([]));
    register(&bus, &strict).await;
    let subscription = bus.subscribe("t", "h", upcasting()).await;
    let subscription = subscription.expect("subscribed");
    assert_eq!(payload(&next(&subscription).await), "before any schema");
    assert_eq!(payload(&next(&subscription).await), json!({"name": "a"}));
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_a_pattern_finds_later_is_upcast_too() {
    let bus = bus();
    let [v1, v2, _] = versions();
    let subscription = bus.subscribe("**", "g", upcasting()).await;
    let subscription = subscription.expect("subscribed");
    register(&bus, &v1).await;
    publish(&bus, &json!({"name": "a"})).await;
    register(&bus, &v2).await;
    assert_eq!(payload(&next(&subscription).await), json!({"title": "a"}));
}

#[tokio::test(start_paused = true)]
async fn a_function_may_do_anything() {
    let bus = bus();
    publish(&bus, &json!({"n": 1})).await;
    publish(&bus, &json!("left alone")).await;
    let function = UpcastFunction::new(|event| {
        let mut value: Value = serde_json::from_str(event.payload()).ok()?;
        let n = value.get("n")?.as_u64()?;
        value["n"] = json!(n + 1);
        Some(value)
    });
    let options = SubscribeOptions {
        extras: SubscribeExtras {
            upcast_with: Some(function),
            ..SubscribeExtras::default()
        },
        ..earliest()
    };
    let subscription = bus.subscribe("t", "g", options).await;
    let subscription = subscription.expect("subscribed");
    assert_eq!(payload(&next(&subscription).await), json!({"n": 2}));
    assert_eq!(payload(&next(&subscription).await), "left alone");
}

#[tokio::test(start_paused = true)]
async fn steps_that_make_no_sense_are_refused_with_their_place() {
    let bus = bus();
    let schema = json!({"x-upcast": [{"remove": {"path": "/a"}}, {"rename": {"from": "a"}}]});
    let options = RegisterSchema::default();
    let refused = bus.register_schema("t", &schema.to_string(), options).await;
    let error = refused.expect_err("no steps").to_string();
    assert!(error.contains("/x-upcast/1"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever was published with an early version, what an upcasting subscriber gets fits the version that it names.
    #[test]
    fn an_upcast_event_fits_the_latest_version(
        name in "\\PC{0,8}", price in prop::option::of(-1e9..1e9f64), is_second in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let bus = bus();
            let versions = versions();
            let first = usize::from(is_second);
            register(&bus, &versions[first]).await;
            let mut event = json!({["name", "title"][first]: name});
            if let Some(price) = price {
                event["price"] = json!(price);
            }
            publish(&bus, &event).await;
            for later in &versions[first + 1..] {
                register(&bus, later).await;
            }
            let subscription = bus.subscribe("t", "g", upcasting()).await.expect("subscribed");
            let delivery = next(&subscription).await;
            let headers = delivery.fields().headers;
            prop_assert!(headers.contains_key(UPCAST_FROM_HEADER));
            // Publishing holds it against the version that the header names.
            let named = [(SCHEMA_VERSION_HEADER.to_owned(), headers[SCHEMA_VERSION_HEADER].clone())];
            let options = PublishOptions { headers: &named, ..plain() };
            let again = bus.publish_text("t", delivery.event.payload(), &options).await;
            prop_assert!(again.is_ok(), "{:?}", again);
            prop_assert_eq!(&payload(&delivery)["title"], &json!(name));
            Ok(())
        })?;
    }
}
