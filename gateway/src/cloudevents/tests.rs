//! The examples of the CloudEvents specification, both ways, and what is no CloudEvent.

use super::*;
use crate::api_error::ApiError;
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use prombus::StoredEvent;
use prombus_store::{Batch, Draft, Id};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let pairs = pairs.iter().map(|(name, value)| {
        let name: HeaderName = name.parse().expect("a name");
        let value = HeaderValue::from_bytes(value.as_bytes());
        (name, value.expect("a value"))
    });
    pairs.collect()
}

fn structured(body: &Value) -> Result<CloudEvent, ApiError> {
    let events = CloudEvent::read(
        Mode::Structured,
        &HeaderMap::new(),
        body.to_string().as_bytes(),
    );
    events.map(|mut events| events.remove(0))
}

fn stored(event: &CloudEvent) -> StoredEvent {
    let options = &event.options;
    let topic: Arc<str> = "t".into();
    let id = options.id.as_deref().and_then(Id::from_client);
    let id = id.expect("an id that the bus takes");
    let mut batch = Batch::new();
    batch.publish(
        &topic,
        &Draft {
            id: Some(id),
            ts: options.ts,
            key: options.key.as_deref(),
            headers: &options.headers,
            payload: &event.payload,
            ..Draft::default()
        },
    );
    let draft = batch.events().next().expect("an event");
    StoredEvent::encode(draft, &id, options.ts.unwrap_or(7), 1)
}

/// The event as it goes out again after it was stored.
fn given_out(event: &CloudEvent) -> Value {
    let mut out = Vec::new();
    write_event(&mut out, &stored(event), &[]);
    serde_json::from_slice(&out).expect("JSON")
}

/// The examples of section 3.2 of the JSON format, each with the same event in the binary mode: its content type and body.
fn examples() -> Vec<(Value, Option<&'static str>, &'static [u8])> {
    let example = |own: Value| {
        let mut event = json!({
            "specversion": "1.0", "type": "com.example.someevent", "source": "/mycontext", "id": "C234-1234-1234",
            "time": "2018-04-05T17:31:00Z", "comexampleextension1": "value",
        });
        let fields = event.as_object_mut().expect("an object");
        fields.extend(own.as_object().expect("an object").clone());
        event
    };
    vec![
        (
            example(
                json!({"datacontenttype": "application/vnd.apache.thrift.binary", "data_base64": "AAEC/w=="}),
            ),
            Some("application/vnd.apache.thrift.binary"),
            b"\x00\x01\x02\xff",
        ),
        (
            example(json!({"datacontenttype": "application/xml", "data": "<much wow=\"xml\"/>"})),
            Some("application/xml"),
            b"<much wow=\"xml\"/>",
        ),
        (
            example(
                json!({"datacontenttype": "application/json", "data": {"appinfoA": "abc", "appinfoB": 123, "appinfoC": true}}),
            ),
            Some("application/json"),
            br#"{"appinfoA" : "abc", "appinfoB" : 123, "appinfoC" : true}"#,
        ),
        (
            example(json!({"datacontenttype": "application/json", "data": 1.5})),
            Some("application/json"),
            b"1.5",
        ),
        (
            example(json!({"datacontenttype": "application/json", "data": "I'm just a string"})),
            Some("application/json"),
            br#""I'm just a string""#,
        ),
        (
            example(json!({"data_base64": "eyAieHl6IjogMTIzIH0="})),
            None,
            br#"{ "xyz": 123 }"#,
        ),
        (example(json!({})), None, b""),
    ]
}

#[test]
fn the_examples_come_back_as_they_were() {
    for (mut example, ..) in examples() {
        example["comexampleothervalue"] = json!(5);
        let event = structured(&example).expect("an event");
        assert_eq!(event.event_type, "com.example.someevent");
        assert_eq!(event.options.id.as_deref(), Some("C234-1234-1234"));
        assert_eq!(event.options.ts, Some(1_522_949_460_000));
        assert_eq!(event.options.key, None);
        assert_eq!(given_out(&event), example);
    }
}

#[test]
fn the_binary_mode_says_the_same_as_the_structured_one() {
    for (example, content_type, body) in examples() {
        let mut sent = headers(&[
            ("ce-specversion", "1.0"),
            ("ce-type", "com.example.someevent"),
            ("ce-source", "/mycontext"),
            ("ce-id", "C234-1234-1234"),
            ("ce-time", "2018-04-05T17:31:00Z"),
            ("ce-comexampleextension1", "value"),
            ("authorization", "Bearer secret"),
            ("x-other", "not an attribute"),
        ]);
        if let Some(content_type) = content_type {
            sent.insert("content-type", HeaderValue::from_static(content_type));
        }
        assert_eq!(mode_of(&sent), Ok(Some(Mode::Binary)));
        let events = CloudEvent::read(Mode::Binary, &sent, body).expect("an event");
        assert_eq!(given_out(&events[0]), example);
    }
}

#[test]
fn attributes_in_headers_are_decoded() {
    let sent = headers(&[
        ("ce-specversion", "1.0"),
        ("ce-type", "t"),
        ("ce-source", "/s"),
        ("ce-id", "1"),
        ("ce-subject", "Euro%20%E2%82%AC%20%F0%9F%98%80"),
        ("ce-quoted", r#""a \"b\"""#),
        ("traceparent", "00-a-b-01"),
        ("content-type", "Application/JSON; charset=utf-8"),
    ]);
    let events = CloudEvent::read(Mode::Binary, &sent, b"{\"a\":1}").expect("an event");
    assert_eq!(events[0].options.key.as_deref(), Some("Euro € 😀"));
    let traceparent = ("traceparent".to_owned(), "00-a-b-01".to_owned());
    assert!(events[0].options.headers.contains(&traceparent));
    let out = given_out(&events[0]);
    assert_eq!(out["quoted"], "a \"b\"");
    assert_eq!(out["traceparent"], "00-a-b-01");
    assert_eq!(out["data"], json!({"a": 1}));
    for (name, value) in [
        ("ce-subject", &b"%C0%A0"[..]),
        ("ce-subject", b"\xff"),
        ("ce-data", b"1"),
        ("ce-x_y", b"1"),
    ] {
        let mut sent = sent.clone();
        let name: HeaderName = name.parse().expect("a name");
        sent.insert(name, HeaderValue::from_bytes(value).expect("a value"));
        let read = CloudEvent::read(Mode::Binary, &sent, b"1");
        let code = read.map_err(|error| error.code.as_str());
        assert_eq!(code, Err("bad_frame"), "{value:?}");
    }
    let read = CloudEvent::read(Mode::Binary, &sent, b"\xff");
    assert_eq!(read.map_err(|error| error.code.as_str()), Err("bad_json"));
}

#[test]
fn times_are_kept_to_the_letter() {
    for (time, ts) in [
        ("2018-04-05T17:31:00Z", 1_522_949_460_000),
        ("2018-04-05T19:31:00.5+02:00", 1_522_949_460_500),
        ("2018-04-05T17:31:00.123456789Z", 1_522_949_460_123),
        ("1970-01-01T00:00:00.000Z", 0),
    ] {
        let event =
            json!({"specversion": "1.0", "type": "t", "source": "/s", "id": "1", "time": time});
        let read = structured(&event).expect("an event");
        assert_eq!(read.options.ts, Some(ts));
        assert_eq!(given_out(&read)["time"], time);
    }
}

#[test]
fn ids_that_the_bus_does_not_take_are_hashed_and_kept() {
    let long = "x".repeat(65);
    for id in ["ü", " 1", "a\nb", long.as_str()] {
        let event = json!({"specversion": "1.0", "type": "t", "source": "/s", "id": id});
        let read = structured(&event).expect("an event");
        let own = read.options.id.clone().expect("an id");
        assert_eq!((&own[..3], own.len()), ("ce-", 46));
        assert_eq!(structured(&event).expect("an event").options.id, Some(own));
        assert_eq!(given_out(&read)["id"], id);
    }
}

#[test]
fn an_event_that_never_was_one_is_one() {
    let event = CloudEvent {
        event_type: String::new(),
        payload: "[1]".to_owned(),
        options: prombus_api::options::PublishOptions {
            id: Some("e-1".into()),
            key: Some("k".into()),
            headers: vec![
                ("x-other".to_owned(), "1".to_owned()),
                ("ce-json_values".to_owned(), "trick".to_owned()),
                ("ce-trick".to_owned(), "1,\"data\":2".to_owned()),
            ],
            ..Default::default()
        },
    };
    let expected = json!({
        "specversion": "1.0", "id": "e-1", "source": "/topics/t", "type": "t", "subject": "k", "trick": "1,\"data\":2",
        "time": "1970-01-01T00:00:00.007Z", "datacontenttype": "application/json", "data": [1],
    });
    assert_eq!(given_out(&event), expected);
    let attempt = Extension {
        name: "trick",
        json: "2".to_owned(),
    };
    let mut out = Vec::new();
    write_event(&mut out, &stored(&event), &[attempt]);
    let text = String::from_utf8(out).expect("text");
    assert_eq!(text.matches("trick").count(), 1, "{text}");
}

#[test]
fn the_content_type_tells_the_mode() {
    for (content_type, mode) in [
        ("application/cloudevents+json", Some(Mode::Structured)),
        (
            "Application/CloudEvents+JSON; charset=UTF-8",
            Some(Mode::Structured),
        ),
        ("application/cloudevents-batch+json", Some(Mode::Batched)),
        ("application/json", None),
    ] {
        let found = mode_of(&headers(&[("content-type", content_type)]));
        assert_eq!(found, Ok(mode));
    }
    let avro = headers(&[("content-type", "application/cloudevents+avro")]);
    let code = mode_of(&avro).map_err(|error| error.code.as_str());
    assert_eq!(code, Err("bad_frame"));
}

#[test]
fn batches_are_lists() {
    let (example, ..) = examples().remove(0);
    let read = |body: String| CloudEvent::read(Mode::Batched, &HeaderMap::new(), body.as_bytes());
    assert_eq!(read("[]".to_owned()), Ok(vec![]));
    let both = read(format!("[{example},{example}]")).expect("events");
    assert_eq!(both.len(), 2);
    let error = read(format!("[{example},{{}}]")).expect_err("no event");
    assert_eq!(error.message, "event 1: specversion: missing");
    let error = read(example.to_string()).expect_err("no list");
    assert_eq!(error.code.as_str(), "bad_frame");
}

#[test]
fn only_clients_that_name_cloudevents_get_them() {
    for (accept, format) in [
        ("*/*", Format::Records),
        ("application/json", Format::Records),
        ("application/cloudevents+json", Format::CloudEvents),
        (
            "text/event-stream, application/cloudevents+json;q=0.5",
            Format::CloudEvents,
        ),
        (
            "application/cloudevents-batch+json, application/cloudevents+json",
            Format::CloudEventsBatch,
        ),
        ("application/cloudevents+json;q=0", Format::Records),
    ] {
        let found = Format::accepted(&headers(&[("accept", accept)]));
        assert_eq!(found, format, "{accept}");
    }
}

#[test]
fn what_is_no_cloud_event_is_refused() {
    let event = |own: Value| {
        let mut event = json!({"specversion": "1.0", "type": "t", "source": "/s", "id": "1"});
        let fields = event.as_object_mut().expect("an object");
        fields.extend(own.as_object().expect("an object").clone());
        fields.retain(|_, value| value != "absent");
        event.to_string()
    };
    for (body, code) in [
        ("{".to_owned(), "bad_json"),
        ("[]".to_owned(), "bad_frame"),
        ("1".to_owned(), "bad_frame"),
        (event(json!({"specversion": "absent"})), "bad_frame"),
        (event(json!({"specversion": "0.3"})), "bad_frame"),
        (event(json!({"id": "absent"})), "bad_frame"),
        (event(json!({"id": ""})), "bad_frame"),
        (event(json!({"source": ""})), "bad_frame"),
        (event(json!({"type": "absent"})), "bad_frame"),
        (event(json!({"subject": ""})), "bad_frame"),
        (event(json!({"Upper": "x"})), "bad_frame"),
        (event(json!({"a_b": "x"})), "bad_frame"),
        (event(json!({"extension": {}})), "bad_frame"),
        (event(json!({"time": "today"})), "bad_frame"),
        (event(json!({"time": "1969-12-31T23:59:59Z"})), "bad_frame"),
        (event(json!({"time": "2018-04-05 17:31:00Z"})), "bad_frame"),
        (
            event(json!({"data": 1, "data_base64": "AA=="})),
            "bad_frame",
        ),
        (event(json!({"data_base64": "?"})), "bad_frame"),
        (event(json!({"data_base64": 1})), "bad_frame"),
    ] {
        let read = CloudEvent::read(Mode::Structured, &HeaderMap::new(), body.as_bytes());
        let code_of = read.map_err(|error| error.code.as_str());
        assert_eq!(code_of, Err(code), "{body}");
    }
}

proptest! {
    /// Whatever attributes an event has, they are the same when it goes out again.
    #[test]
    fn events_come_back_as_they_were(
        id in "\\PC{1,80}",
        source in "\\PC{1,20}",
        subject in prop::option::of("\\PC{1,20}"),
        extensions in prop::collection::btree_map("e[a-z0-9]{0,10}", "\\PC{0,20}", 0..5),
        numbers in prop::collection::btree_map("n[a-z0-9]{0,10}", any::<i32>(), 0..5),
        ts in 0_i64..4_000_000_000_000,
        data in prop::option::of("\\PC{0,20}"),
    ) {
        let time = jiff::Timestamp::from_millisecond(ts).expect("a time").to_string();
        let mut event = json!({"specversion": "1.0", "type": "t", "id": id, "source": source, "time": time});
        let fields = event.as_object_mut().expect("an object");
        fields.extend(extensions.into_iter().map(|(name, value)| (name, json!(value))));
        fields.extend(numbers.into_iter().map(|(name, value)| (name, json!(value))));
        fields.extend(subject.map(|subject| ("subject".to_owned(), json!(subject))));
        fields.extend(data.map(|data| ("data".to_owned(), json!(data))));
        let read = structured(&event).expect("an event");
        prop_assert_eq!(given_out(&read), event);
    }
}
