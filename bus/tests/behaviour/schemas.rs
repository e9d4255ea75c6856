//! Schemas: what registering refuses, what publishing is held to, and what stays after a restart.

use crate::support::*;
use prombus::error::{PublishError, SchemaError};
use prombus::{
    AckPublish, Bus, Compatibility, PublishOptions, RegisterSchema, SCHEMA_VERSION_HEADER,
    TopicConfig,
};
use std::sync::Arc;

const V1: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}"#;
/// V1 with one more property, which may be left out.
const V2: &str = r#"{"type":"object","properties":{"n":{"type":"integer"},"name":{"type":"string"}},"required":["n"],"additionalProperties":false}"#;
/// V1 whose number may not be negative.
const NARROW: &str = r#"{"type":"object","properties":{"n":{"type":"integer","minimum":0}},"required":["n"],"additionalProperties":false}"#;

async fn register(bus: &Bus, schema: &str) -> Result<u32, SchemaError> {
    let registered = bus.register_schema("t", schema, RegisterSchema::default());
    registered.await.map(|registered| registered.version)
}

async fn publish(bus: &Bus, payload: &str) -> Result<u64, PublishError> {
    let published = bus.publish_text("t", payload, &plain()).await;
    published.map(|published| published.seq)
}

fn version_header(version: &str) -> Vec<(String, String)> {
    vec![(SCHEMA_VERSION_HEADER.to_owned(), version.to_owned())]
}

async fn publish_as(bus: &Bus, version: &str, payload: &str) -> Result<u64, PublishError> {
    let headers = version_header(version);
    let options = PublishOptions {
        headers: &headers,
        ..plain()
    };
    let published = bus.publish_text("t", payload, &options).await;
    published.map(|published| published.seq)
}

/// The versions that the events of `t` are stamped with.
async fn stamps(bus: &Bus) -> Vec<Option<String>> {
    let events = read_all(bus, "t").await;
    let stamp = |json: &str| {
        let record: serde_json::Value = serde_json::from_str(json).expect("a record");
        let stamp = record["headers"][SCHEMA_VERSION_HEADER].as_str();
        stamp.map(str::to_owned)
    };
    events.iter().map(|event| stamp(event.json())).collect()
}

#[tokio::test(start_paused = true)]
async fn publishing_is_held_to_the_latest_version_and_stamped() {
    let bus = bus();
    assert_eq!(publish(&bus, r#"{"anything":1}"#).await, Ok(1));
    assert_eq!(register(&bus, V1).await, Ok(1));
    assert_eq!(publish(&bus, r#"{"n":1}"#).await, Ok(2));
    let error = publish(&bus, r#"{"n":"x"}"#).await.expect_err("no integer");
    let PublishError::SchemaInvalid(invalid) = &error else {
        panic!("{error:?}");
    };
    assert_eq!((&*invalid.path, invalid.version), ("/n", 1));
    assert!(!error.is_retryable());
    assert_eq!(register(&bus, V2).await, Ok(2));
    assert_eq!(publish(&bus, r#"{"n":1,"name":"x"}"#).await, Ok(3));
    let expected = [None, Some("1".to_owned()), Some("2".to_owned())];
    assert_eq!(stamps(&bus).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_publisher_may_name_an_older_version_but_none_that_there_is_not() {
    let bus = bus();
    register(&bus, V1).await.expect("the first");
    register(&bus, V2).await.expect("wider");
    assert_eq!(publish_as(&bus, "1", r#"{"n":1}"#).await, Ok(1));
    for (version, payload) in [
        ("1", r#"{"n":1,"name":"x"}"#),
        ("3", r#"{"n":1}"#),
        ("one", r#"{"n":1}"#),
    ] {
        let error = publish_as(&bus, version, payload).await;
        assert!(
            matches!(error, Err(PublishError::SchemaInvalid(_))),
            "{version}"
        );
    }
    assert_eq!(stamps(&bus).await, [Some("1".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_header_of_a_topic_without_schema_is_a_header() {
    let bus = bus();
    assert_eq!(publish_as(&bus, "7", "1").await, Ok(1));
    assert_eq!(stamps(&bus).await, [Some("7".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_keyed_tombstone_passes_and_is_not_stamped() {
    let bus = bus();
    register(&bus, V1).await.expect("the first");
    let keyed = PublishOptions {
        key: Some("k"),
        ..plain()
    };
    bus.publish_text("t", "null", &keyed)
        .await
        .expect("a tombstone");
    assert!(
        publish(&bus, "null").await.is_err(),
        "without a key it is a payload"
    );
    assert_eq!(stamps(&bus).await, [None]);
}

#[tokio::test(start_paused = true)]
async fn of_a_batch_only_the_events_that_fit_are_stored() {
    let bus = bus();
    register(&bus, V1).await.expect("the first");
    let mut batch = bus.batch();
    for (topic, payload) in [
        ("t", r#"{"n":1}"#),
        ("t", "{}"),
        ("other", "{}"),
        ("t", "{}"),
        ("t", r#"{"n":2}"#),
    ] {
        batch.add(topic, payload, &plain());
    }
    let results = bus.publish_batch(batch).await;
    let stored: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(stored, [true, false, true, false, true]);
    assert_eq!(stamps(&bus).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn results_that_do_not_fit_are_not_published_and_settle_nothing() {
    let bus = bus();
    register(&bus, V1).await.expect("the first");
    publish_one(&bus, "in", 1).await;
    let subscription = bus
        .subscribe("in", "g", earliest())
        .await
        .expect("subscribed");
    let delivery = next(&subscription).await;
    let id = delivery.event.id().into_owned();
    let mut steps = Vec::new();
    for payload in ["{}", r#"{"n":1}"#] {
        let mut batch = bus.batch();
        batch.add("t", payload, &plain());
        let ids = vec![id.clone()];
        steps.push(AckPublish { ids, batch });
    }
    let answers = subscription
        .control()
        .ack_ids_and_publish("in", steps)
        .await;
    assert!(
        answers[0]
            .as_ref()
            .is_err_and(|error| error.to_string().contains("\"n\" is a required property"))
    );
    assert!(answers[1].is_ok(), "{:?}", answers[1]);
    assert_eq!(stamps(&bus).await, [Some("1".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn an_incompatible_version_is_refused_with_path_and_rule() {
    let bus = bus();
    register(&bus, V1).await.expect("the first");
    let error = register(&bus, NARROW)
        .await
        .expect_err("negative numbers were allowed");
    let text = error.to_string();
    assert!(
        text.starts_with("not backward compatible with version 1: /properties/n/minimum: "),
        "{text}"
    );
    assert!(text.ends_with("(range_narrowed)"), "{text}");
    let checked = bus.check_schema("t", NARROW, None).await.expect("checked");
    assert!(checked.incompatible.is_some());
    let forward = Some(Compatibility::Forward);
    let checked = bus
        .check_schema("t", NARROW, forward)
        .await
        .expect("checked");
    assert_eq!((checked.incompatible, checked.latest), (None, Some(1)));
    let options = RegisterSchema {
        compatibility: forward,
    };
    let registered = bus
        .register_schema("t", NARROW, options)
        .await
        .expect("forward");
    assert_eq!(
        (registered.version, registered.compatibility),
        (2, Compatibility::Forward)
    );
    let config = TopicConfig::of(&bus.topic("t").expect("it exists"));
    assert_eq!(config.schema, forward);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_schema_or_has_no_place_is_refused() {
    let bus = bus();
    for schema in [
        "{",
        "[]",
        r#"{"type":"text"}"#,
        r#"{"$ref":"https://example.com/s"}"#,
    ] {
        let error = register(&bus, schema).await.expect_err(schema);
        assert!(matches!(error, SchemaError::InvalidSchema(_)), "{error}");
    }
    assert!(bus.topic("t").is_err(), "no topic is made for it");
    let snapshots = TopicConfig {
        snapshot_topic: Some("a.s".into()),
        ..TopicConfig::default()
    };
    bus.create_topic("a", &snapshots).await.expect("made");
    for topic in ["dlq.t", "a.s", "no topic"] {
        let error = bus
            .register_schema(topic, V1, RegisterSchema::default())
            .await;
        assert!(error.is_err(), "{topic}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_schema_again_is_the_same_version() {
    let bus = bus();
    register(&bus, V1).await.expect("the first");
    let reordered = r#" {"additionalProperties": false, "required": ["n"], "properties": {"n": {"type": "integer"}}, "type": "object"} "#;
    for schema in [V1, reordered] {
        let same = bus
            .register_schema("t", schema, RegisterSchema::default())
            .await;
        let same = same.expect("the same");
        assert_eq!((same.version, same.unchanged), (1, true));
    }
    assert_eq!(bus.schemas("t").await.expect("schemas").versions.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn versions_are_listed_removed_and_never_numbered_again() {
    let bus = bus();
    assert!(matches!(
        bus.schemas("t").await,
        Err(SchemaError::UnknownSchema(_))
    ));
    register(&bus, V1).await.expect("the first");
    register(&bus, V2).await.expect("wider");
    assert_eq!(
        &*bus
            .schema("t", None)
            .await
            .expect("the latest")
            .version
            .to_string(),
        "2"
    );
    assert_eq!(
        bus.schema("t", Some(1)).await.expect("the first").version,
        1
    );
    assert!(bus.schema("t", Some(3)).await.is_err());
    bus.remove_schema("t", Some(2)).await.expect("removed");
    assert!(bus.remove_schema("t", Some(2)).await.is_err());
    assert!(
        publish(&bus, r#"{"n":1,"name":"x"}"#).await.is_err(),
        "version 1 applies again"
    );
    assert_eq!(register(&bus, V2).await, Ok(3));
    bus.remove_schema("t", None).await.expect("all");
    assert_eq!(
        publish(&bus, "1").await,
        Ok(1),
        "nothing is held against anything"
    );
    assert_eq!(register(&bus, "true").await, Ok(4));
    let all = bus.all_schemas().await.expect("listed");
    assert_eq!(
        all.iter()
            .map(|info| (&*info.topic, info.latest))
            .collect::<Vec<_>>(),
        [("t", 4)]
    );
}

#[tokio::test(start_paused = true)]
async fn other_settings_leave_the_schema_as_it_is() {
    let bus = bus();
    register(&bus, V1).await.expect("the first");
    let config = TopicConfig {
        max_events: Some(10),
        ..TopicConfig::default()
    };
    bus.configure_topic("t", &config).await.expect("changed");
    assert!(publish(&bus, "1").await.is_err());
    bus.purge_topic("t").await.expect("purged");
    assert!(publish(&bus, "1").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_topic_takes_its_schemas_with_it() {
    let bus = bus();
    register(&bus, V1).await.expect("the first");
    register(&bus, V2).await.expect("wider");
    assert!(publish(&bus, "1").await.is_err());
    bus.delete_topic("t").await.expect("deleted");
    assert_eq!(publish(&bus, "1").await, Ok(1));
    assert!(bus.schemas("t").await.is_err());
    assert_eq!(register(&bus, "true").await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn schemas_survive_the_bus_and_reach_others_on_the_store() {
    let (store, options) = store();
    let open = || Bus::open(store.clone(), options.clone()).expect("opened");
    let (one, other) = (open(), open());
    assert_eq!(publish(&other, "1").await, Ok(1));
    register(&one, V1).await.expect("the first");
    assert!(publish(&other, "1").await.is_err(), "it learns of it");
    register(&other, V2).await.expect("wider");
    assert_eq!(publish(&one, r#"{"n":1,"name":"x"}"#).await, Ok(2));
    let later = open();
    assert!(publish(&later, "1").await.is_err());
    assert_eq!(later.schemas("t").await.expect("schemas").latest, 2);
}

#[tokio::test(start_paused = true)]
async fn of_registrations_at_the_same_time_each_is_checked_against_the_others() {
    let (store, options) = store();
    let buses: Vec<Bus> = (0..4)
        .map(|_| Bus::open(store.clone(), options.clone()).expect("opened"))
        .collect();
    // Each is wider than the one before, so that only an order of ever wider ones is possible.
    let tasks = buses.into_iter().enumerate().map(|(at, bus)| {
        tokio::spawn(async move {
            let schema = format!(r#"{{"type":"integer","minimum":{}}}"#, 10 - at);
            register(&bus, &schema).await
        })
    });
    let mut registered = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        registered.extend(task.await.expect("done").ok());
    }
    let bus = Bus::open(store, options).expect("opened");
    let info = bus.schemas("t").await.expect("schemas");
    registered.sort_unstable();
    let versions: Vec<u32> = info
        .versions
        .iter()
        .map(|version| version.version)
        .collect();
    assert_eq!(versions, registered);
    let minimums = info.versions.iter().map(|version| {
        let schema: serde_json::Value = serde_json::from_str(&version.schema).expect("JSON");
        schema["minimum"].as_i64().expect("a number")
    });
    assert!(
        minimums
            .collect::<Vec<_>>()
            .is_sorted_by(|one, other| one > other)
    );
}

#[tokio::test(start_paused = true)]
async fn retained_events_that_do_not_fit_are_counted_and_named_with_the_groups() {
    let bus = bus();
    for n in 0..250 {
        let payload = match n % 2 {
            0 => r#"{"n":1}"#,
            _ => r#"{"n":"x"}"#,
        };
        publish(&bus, payload).await.expect("no schema yet");
    }
    let _live = bus
        .subscribe("t", "live", earliest())
        .await
        .expect("subscribed");
    let check = bus.check_retained("t", V1).await.expect("checked");
    assert_eq!((check.checked, check.failing), (250, 125));
    assert_eq!(check.first_failing.len(), 100);
    assert_eq!(
        (check.first_failing[0].seq, &*check.first_failing[0].path),
        (2, "/n")
    );
    let groups: Vec<_> = check
        .groups
        .iter()
        .map(|group| (&*group.group, group.members, group.failing_ahead))
        .collect();
    assert_eq!(groups, [("live", 1, 125)]);
    let none = bus
        .check_retained("unknown", V1)
        .await
        .expect("nothing there");
    assert_eq!(none.checked, 0);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_versions_and_their_bytes_have_limits() {
    let bus = bus();
    let options = RegisterSchema {
        compatibility: Some(Compatibility::None),
    };
    for n in 0..prombus::MAX_SCHEMA_VERSIONS {
        let schema = format!(r#"{{"minimum":{n}}}"#);
        bus.register_schema("t", &schema, options)
            .await
            .expect("registered");
    }
    let error = bus
        .register_schema("t", "true", options)
        .await
        .expect_err("too many");
    assert!(error.to_string().contains("max_schema_versions"), "{error}");
    let long = |n: usize| format!(r#"{{"title":"{n}{}"}}"#, "x".repeat(120 << 10));
    let mut refused = None;
    for n in 0..20 {
        let registered = bus.register_schema("long", &long(n), options).await;
        refused = refused.or(registered.err().map(|error| error.to_string()));
    }
    assert!(refused.is_some_and(|error| error.contains("max_topic_schema_bytes")));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_read_refuses_rather_than_lets_anything_through() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options.clone()).expect("opened");
    register(&bus, V1).await.expect("the first");
    let mut batch = prombus_store::Batch::new();
    let value: Arc<[u8]> = Arc::from(&b"{"[..]);
    batch.change(prombus_store::Change::Put {
        key: "schema/t".into(),
        value,
        expect: prombus_store::Expect::Any,
    });
    let later = Bus::open(store, options).expect("opened");
    later.store().commit(batch).await.expect("written");
    let error = publish(&later, r#"{"n":1}"#).await.expect_err("damaged");
    assert!(
        error.is_retryable() && error.to_string().contains("damaged"),
        "{error}"
    );
}
