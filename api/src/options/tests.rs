//! Options with their names on the wire, and what is said about wrong ones.

use super::*;
use crate::http::Body;
use prombus_interface::{FieldFilter, Ordering, Pattern, StartAt};
use std::collections::BTreeMap;

fn subscribe(json: &str) -> Result<SubscribeOptions, String> {
    SubscribeOptions::parse(json.as_bytes()).map_err(|error| error.message)
}

#[test]
fn every_subscribe_option_has_its_name() {
    let json = r##"{"from":"seq","seq":7,"ts":9,"afterId":"x","batchSize":1,"maxInFlight":2,"ackTimeoutMs":3,"maxAttempts":4,
        "manualAck":true,"filter":{"key":"a.*","headers":{"h":"v"},"tags":["#t"]},"topics":["a","b.**"],"ordering":"key","upcast":true,"partitioned":true}"##;
    let expected = SubscribeOptions {
        start: Some(StartAt::Seq(7)),
        batch_size: Some(1),
        max_in_flight: Some(2),
        ack_timeout_ms: Some(3),
        max_attempts: Some(4),
        manual_ack: Some(true),
        filter: Some(FieldFilter {
            key: Some(Pattern::new("a.*").unwrap()),
            headers: BTreeMap::from([("h".to_owned(), "v".to_owned())]),
            tags: vec!["#t".to_owned()],
        }),
        topics: vec!["a".to_owned(), "b.**".to_owned()],
        ordering: Some(Ordering::Key),
        upcast: Some(true),
        partitioned: Some(true),
    };
    assert_eq!(subscribe(json), Ok(expected));
}

#[test]
fn every_publish_option_has_its_name() {
    let json = r##"{"id":"i","ts":5,"key":"k","headers":{"a":"1","b":"2"},"tags":["#t"],"caused_by":["c"],"sid":"s","expect_seq":7,"expect_key_seq":0,"deliver_at":8,"delay_ms":9,"every":"1m","catch_up":true,"also_publish":[{"topic":"t2","payload":{"v": 2}}]}"##;
    let options = PublishOptions::parse(json.as_bytes()).unwrap();
    let text = |text: &str| text.to_owned();
    let expected = PublishOptions {
        id: Some("i".into()),
        ts: Some(5),
        key: Some("k".into()),
        headers: vec![(text("a"), text("1")), (text("b"), text("2"))],
        tags: vec![text("#t")],
        caused_by: vec![text("c")],
        sid: Some("s".into()),
        expect_seq: Some(7),
        expect_key_seq: Some(0),
        deliver_at: Some(8),
        delay_ms: Some(9),
        every: Some("1m".into()),
        catch_up: true,
        also_publish: vec![AlsoPublish {
            topic: "t2".into(),
            payload: r#"{"v": 2}"#.into(),
        }],
    };
    assert_eq!(options, expected);
}

#[test]
fn places_are_named_by_from_or_by_what_only_one_place_needs() {
    for (json, start) in [
        ("{}", None),
        (r#"{"from":"latest","ts":5}"#, Some(StartAt::Latest)),
        (r#"{"from":"earliest"}"#, Some(StartAt::Earliest)),
        (r#"{"from":"ts","ts":5}"#, Some(StartAt::Ts(5))),
        (r#"{"ts":5}"#, Some(StartAt::Ts(5))),
        (
            r#"{"from":"afterId","afterId":"x"}"#,
            Some(StartAt::AfterId("x".to_owned())),
        ),
        (r#"{"afterId":"x"}"#, Some(StartAt::AfterId("x".to_owned()))),
        (r#"{"seq":1,"from":"seq"}"#, Some(StartAt::Seq(1))),
        (r#"{"seq":1}"#, Some(StartAt::Seq(1))),
    ] {
        assert_eq!(subscribe(json).unwrap().start, start, "{json}");
    }
}

#[test]
fn wrong_options_are_named() {
    for (json, says) in [
        (r#"{"from":"ts"}"#, "ts: missing, required by from"),
        (
            r#"{"from":"afterId"}"#,
            "afterId: missing, required by from",
        ),
        (r#"{"from":"seq","ts":1}"#, "seq: missing, required by from"),
        (
            r#"{"from":"now"}"#,
            "from: expected latest, earliest, ts, afterId or seq",
        ),
        (
            r#"{"ts":1,"seq":1}"#,
            "from: missing; says which of ts, afterId and seq applies",
        ),
        (
            r#"{"ts":"1"}"#,
            "ts: expected a whole number from 0 to 18446744073709551615, found a string",
        ),
        (
            r#"{"seq":1.5}"#,
            "seq: expected a whole number from 0 to 18446744073709551615",
        ),
        (
            r#"{"manualAck":"yes"}"#,
            "manualAck: expected true or false, found a string",
        ),
        (
            r#"{"topics":"a"}"#,
            "topics: expected an array, found a string",
        ),
        (r#"{"ordering":"topic"}"#, "ordering: expected none or key"),
        (
            r#"{"filter":{"kee":"a"}}"#,
            "filter.kee: unknown field; did you mean key?",
        ),
        (
            r#"{"filter":{"headers":{"a":1}}}"#,
            "filter.headers.a: expected a string, found a number",
        ),
        (
            r#"{"filter":[]}"#,
            "filter: expected an object, found an array",
        ),
        ("[]", "expected an object, found an array"),
    ] {
        assert_eq!(subscribe(json), Err(says.to_owned()), "{json}");
    }
}
