//! Events of earlier versions, lifted on their way to a subscriber.

use crate::support::*;
use prombus::{
    Bus, Compatibility, Delivery, PublishOptions, RegisterSchema, SCHEMA_VERSION_HEADER,
    SubscribeOptions, UPCAST_FROM_HEADER, UpcastFunction,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn closed(properties: Value, required: Value, upcast: Value) -> String {
    json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        "x-upcast": upcast,
    })
    .to_string()
}

/// Three versions: a name that is renamed, and a currency that is added.
fn versions() -> [String; 3] {
    let (text, number) = (json!({"type": "string"}), json!({"type": "number"}));
    [
        closed(json!({"name": text, "price": number}), json!(["name"]), json!([])),
        closed(
            json!({"title": text, "price": number}),
            json!(["title"]),
            json!([{"rename": {"from": "/name", "to": "title"}}]),
        ),
        closed(
            json!({"title": text, "cost": {"type": "object", "properties": {"amount": number, "currency": text}, "required": ["currency"]}}),
            json!(["title", "cost"]),
            json!([
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
    bus.register_schema("t", schema, options).await.expect("registered");
}

async fn publish(bus: &Bus, payload: &Value) {
    bus.publish("t", payload, &plain()).await.expect("published");
}

fn lifting() -> SubscribeOptions {
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
    let first = json!({"name": "a", "price": 1.5});
    bus.publish("t", &first, &keyed).await.expect("published");
    register(&bus, &v2).await;
    publish(&bus, &json!({"title": "b"})).await;
    register(&bus, &v3).await;
    publish(&bus, &json!({"title": "c", "cost": {"currency": "USD"}})).await;
    let lifted = bus.subscribe("t", "new", lifting()).await.expect("subscribed");
    let expected = [
        json!({"title": "a", "cost": {"amount": 1.5, "currency": "EUR"}}),
        json!({"title": "b", "cost": {"currency": "EUR"}}),
        json!({"title": "c", "cost": {"currency": "USD"}}),
    ];
    for (at, expected) in expected.iter().enumerate() {
        let delivery = next(&lifted).await;
        assert_eq!(&payload(&delivery), expected);
        let headers = delivery.fields().headers;
        assert_eq!(headers[SCHEMA_VERSION_HEADER], "3");
        let from = headers.get(UPCAST_FROM_HEADER).map(String::as_str);
        assert_eq!(from, [Some("1"), Some("2"), None][at]);
        assert_eq!(delivery.event.seq(), at as u64 + 1);
        if at == 0 {
            let event = &delivery.event;
            assert_eq!((&*event.id(), event.ts(), event.key().as_deref()), ("own", 5, Some("k")));
        }
        delivery.ack_confirmed().await.expect("settled as any other");
    }
    let plainly = bus.subscribe("t", "old", earliest()).await.expect("subscribed");
    assert_eq!(payload(&next(&plainly).await), first, "others get what is stored");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_lifted_comes_as_it_is_stored() {
    let bus = bus();
    let [v1, v2, v3] = versions();
    publish(&bus, &json!("before any schema")).await;
    register(&bus, &v1).await;
    publish(&bus, &json!({"name": "a"})).await;
    register(&bus, &v2).await;
    register(&bus, &v3).await;
    bus.remove_schema("t", Some(2)).await.expect("removed");
    let lifted = bus.subscribe("t", "g", lifting()).await.expect("subscribed");
    assert_eq!(payload(&next(&lifted).await), json!("before any schema"));
    let delivery = next(&lifted).await;
    assert_eq!(payload(&delivery), json!({"name": "a"}), "a step on the way is gone");
    assert_eq!(delivery.fields().headers[SCHEMA_VERSION_HEADER], "1");
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
        upcast_with: Some(function),
        ..earliest()
    };
    let subscription = bus.subscribe("t", "g", options).await.expect("subscribed");
    assert_eq!(payload(&next(&subscription).await), json!({"n": 2}));
    assert_eq!(payload(&next(&subscription).await), json!("left alone"));
}

proptest! {
    /// Whatever is published with an early version, what a lifting subscriber gets fits the version that it names.
    #[test]
    fn a_lifted_event_fits_the_latest_version(
        name in "[a-z]{0,5}", price in prop::option::of(-100.0..100.0f64), title in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
        runtime.block_on(async {
            let bus = bus();
            let versions = versions();
            register(&bus, &versions[usize::from(title)]).await;
            let mut event = json!({(if title { "title" } else { "name" }): name});
            if let Some(price) = price {
                event["price"] = json!(price);
            }
            publish(&bus, &event).await;
            for later in &versions[usize::from(title) + 1..] {
                register(&bus, later).await;
            }
            let subscription = bus.subscribe("t", "g", lifting()).await.expect("subscribed");
            let delivery = next(&subscription).await;
            prop_assert!(delivery.fields().headers.contains_key(UPCAST_FROM_HEADER));
            let options = PublishOptions::default();
            let again = bus.publish_text("t", delivery.event.payload(), &options).await;
            prop_assert!(again.is_ok(), "{:?}", again);
            Ok(())
        })?;
    }
}
