//! The examples of the CloudEvents specification, both ways.

use super::*;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use prombus_store::{Batch, Draft, Id, StoredEvent};
use serde_json::{Value, json};
use std::sync::Arc;

/// The example of the JSON format, section 3.2, with a JSON string as data.
const EXAMPLE: &str = r#"{
    "specversion" : "1.0",
    "type" : "com.example.someevent",
    "source" : "/mycontext",
    "subject": null,
    "id" : "C234-1234-1234",
    "time" : "2018-04-05T17:31:00Z",
    "comexampleextension1" : "value",
    "comexampleothervalue" : 5,
    "datacontenttype" : "application/json",
    "data" : {"appinfoA" : "abc", "appinfoB" : 123, "appinfoC" : true}
}"#;

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let pairs = pairs.iter().map(|(name, value)| {
        let name: HeaderName = name.parse().expect("a name");
        (name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"))
    });
    pairs.collect()
}

fn structured(body: &str) -> CloudEvent {
    let events = CloudEvent::read(Mode::Structured, &HeaderMap::new(), body.as_bytes());
    events.expect("an event").remove(0)
}

/// The event as it is stored, and given out again.
fn given_out(event: &CloudEvent) -> Value {
    let options = &event.options;
    let topic: Arc<str> = "t".into();
    let mut batch = Batch::new();
    let draft = Draft {
        id: options.id.as_deref().and_then(Id::from_client),
        ts: options.ts,
        key: options.key.as_deref(),
        headers: &options.headers,
        payload: &event.payload,
        ..Draft::default()
    };
    batch.publish(&topic, &draft);
    let draft = batch.events().next().expect("an event");
    let id = options.id.as_deref().and_then(Id::from_client).expect("an id");
    let stored = StoredEvent::encode(draft, &id, options.ts.unwrap_or(7), 1);
    let mut out = Vec::new();
    write_event(&mut out, &stored, &[]);
    serde_json::from_slice(&out).expect("JSON")
}

#[test]
fn the_json_example_comes_back_as_it_was() {
    let event = structured(EXAMPLE);
    assert_eq!(event.event_type, "com.example.someevent");
    assert_eq!(event.options.id.as_deref(), Some("C234-1234-1234"));
    assert_eq!(event.options.ts, Some(1_522_949_460_000));
    assert_eq!(event.options.key, None, "null is not there");
    assert!(event.payload.starts_with(r#"{"appinfoA" : "abc""#), "as it was written");
    let mut expected: Value = serde_json::from_str(EXAMPLE).expect("JSON");
    expected.as_object_mut().expect("an object").remove("subject");
    assert_eq!(given_out(&event), expected);
}

#[test]
fn data_is_json_text_or_bytes() {
    for (fields, data) in [
        (json!({"datacontenttype": "text/xml", "data": "<much wow=\"xml\"/>"}), r#""<much wow=\"xml\"/>""#),
        (json!({"datacontenttype": "application/vnd.apache.thrift.binary", "data_base64": "AAEC/w=="}), r#""AAEC/w==""#),
        (json!({"data": null}), "null"),
        (json!({"data": 1.5}), "1.5"),
        (json!({}), "null"),
    ] {
        let mut event = json!({"specversion":"1.0","type":"t","source":"/s","id":"1","subject":"ü/1",
            "time":"2018-04-05T17:31:00.123Z","traceparent":"00-a-b-01","dataschema":"http://x/y"});
        let object = event.as_object_mut().expect("an object");
        object.extend(fields.as_object().expect("an object").clone());
        let read = structured(&event.to_string());
        assert_eq!(read.payload, data);
        assert_eq!(given_out(&read), event);
    }
}

#[test]
fn times_are_kept_to_the_letter() {
    for (time, ts) in [
        ("2018-04-05T17:31:00Z", 1_522_949_460_000),
        ("2018-04-05T19:31:00.5+02:00", 1_522_949_460_500),
        ("2018-04-05T17:31:00.123456789Z", 1_522_949_460_123),
        ("1970-01-01T00:00:00.000Z", 0),
    ] {
        let event = json!({"specversion":"1.0","type":"t","source":"/s","id":"1","time":time});
        let read = structured(&event.to_string());
        assert_eq!(read.options.ts, Some(ts));
        assert_eq!(given_out(&read)["time"], time);
    }
}

#[test]
fn the_binary_example_is_read() {
    let sent = headers(&[
        ("ce-specversion", "1.0"),
        ("ce-type", "com.example.someevent"),
        ("ce-time", "2018-04-05T03:56:24Z"),
        ("ce-id", "1234-1234-1234"),
        ("ce-source", "/mycontext/subcontext"),
        ("ce-subject", "Euro%20%E2%82%AC"),
        ("ce-comexample", "100%"),
        ("traceparent", "00-a-b-01"),
        ("content-type", "application/json; charset=utf-8"),
        ("authorization", "Bearer secret"),
    ]);
    assert_eq!(mode_of(&sent), Some(Mode::Binary));
    let event = CloudEvent::read(Mode::Binary, &sent, b"{\"a\":1}").expect("an event").remove(0);
    assert_eq!(event.options.key.as_deref(), Some("Euro \u{20ac}"));
    let out = given_out(&event);
    assert_eq!(out, json!({"specversion":"1.0","type":"com.example.someevent","time":"2018-04-05T03:56:24Z",
        "id":"1234-1234-1234","source":"/mycontext/subcontext","subject":"Euro €","comexample":"100%",
        "traceparent":"00-a-b-01","datacontenttype":"application/json; charset=utf-8","data":{"a":1}}));
    for (content_type, body, payload) in [
        ("text/plain", &b"hi \"you\""[..], r#""hi \"you\"""#),
        ("application/octet-stream", &[0xff, 0x00], r#""/wA=""#),
        ("application/json", b"", "null"),
    ] {
        let mut sent = sent.clone();
        sent.insert("content-type", HeaderValue::from_static(content_type));
        let event = CloudEvent::read(Mode::Binary, &sent, body).expect("an event").remove(0);
        assert_eq!(event.payload, payload, "{content_type}");
        assert_eq!(given_out(&event)["datacontenttype"], content_type);
    }
}

#[test]
fn modes_are_told_by_the_content_type() {
    for (content_type, mode) in [
        ("application/cloudevents+json", Some(Mode::Structured)),
        ("Application/CloudEvents+JSON; charset=UTF-8", Some(Mode::Structured)),
        ("application/cloudevents-batch+json", Some(Mode::Batch)),
        ("application/json", None),
    ] {
        assert_eq!(mode_of(&headers(&[("content-type", content_type)])), mode);
    }
    let none = CloudEvent::read(Mode::Batch, &HeaderMap::new(), b"[]").expect("no events");
    assert!(none.is_empty());
    let batch = format!("[{EXAMPLE},{EXAMPLE}]");
    let batch = CloudEvent::read(Mode::Batch, &HeaderMap::new(), batch.as_bytes());
    assert_eq!(batch.expect("events").len(), 2);
}

#[test]
fn what_is_no_cloud_event_is_refused() {
    for (body, code) in [
        ("{", "bad_json"),
        ("[]", "bad_frame"),
        ("1", "bad_frame"),
        (r#"{"specversion":"1.0","type":"t","source":"/s"}"#, "bad_frame"),
        (r#"{"specversion":"1.0","type":"t","source":"","id":"1"}"#, "bad_frame"),
        (r#"{"specversion":"0.3","type":"t","source":"/s","id":"1"}"#, "bad_frame"),
        (r#"{"specversion":"1.0","type":"t","source":"/s","id":"1","Upper":"x"}"#, "bad_frame"),
        (r#"{"specversion":"1.0","type":"t","source":"/s","id":"1","a_b":"x"}"#, "bad_frame"),
        (r#"{"specversion":"1.0","type":"t","source":"/s","id":"1","ext":{}}"#, "bad_frame"),
        (r#"{"specversion":"1.0","type":"t","source":"/s","id":"1","time":"today"}"#, "bad_frame"),
        (r#"{"specversion":"1.0","type":"t","source":"/s","id":"1","data":1,"data_base64":"AA=="}"#, "bad_frame"),
        (r#"{"specversion":"1.0","type":"t","source":"/s","id":"1","data_base64":"?"}"#, "bad_frame"),
    ] {
        let read = CloudEvent::read(Mode::Structured, &HeaderMap::new(), body.as_bytes());
        assert_eq!(read.map_err(|error| error.code.as_str()), Err(code), "{body}");
    }
}
