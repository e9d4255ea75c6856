//! What a sender is told, word by word.

use crate::code::Code;
use crate::frames::*;
use std::collections::BTreeSet;

/// Message, code, what the text says, corr. Where the text ends in a blank, the rest is in serde_json's words.
const REFUSALS: &[(&str, Code, &str, Option<&str>)] = &[
    (
        "",
        Code::BadJson,
        "expected a value, found the end at byte 0",
        None,
    ),
    ("hello", Code::BadJson, "expected a value at byte 0", None),
    ("{", Code::BadJson, "expected a field name at byte 1", None),
    (
        "{\"op\":\"ACK\"",
        Code::BadJson,
        "unclosed bracket at byte 11",
        None,
    ),
    (
        "{\"op\" \"ACK\"}",
        Code::BadJson,
        "expected a colon at byte 6",
        None,
    ),
    (
        "{op:1}",
        Code::BadJson,
        "expected a field name at byte 1",
        None,
    ),
    (
        r#"{"op":"PAUSE","topic":"t","group":"g",}"#,
        Code::BadJson,
        "expected a field name at byte 38",
        None,
    ),
    (
        r#"{"op":"PAUSE","topic":"t","group":"g"} x"#,
        Code::BadJson,
        "unexpected data after the value at byte 39",
        None,
    ),
    (
        r#"{"op":"PAUSE","topic":tru,"corr":"c"}"#,
        Code::BadJson,
        "invalid JSON: ",
        Some("c"),
    ),
    (
        r#"{"op":"NOPE","x":tru,"corr":"c"}"#,
        Code::BadJson,
        "invalid JSON: ",
        Some("c"),
    ),
    (
        "null",
        Code::BadFrame,
        "expected an object, found null",
        None,
    ),
    (
        "12",
        Code::BadFrame,
        "expected an object, found a number",
        None,
    ),
    (
        "\"x\"",
        Code::BadFrame,
        "expected an object, found a string",
        None,
    ),
    ("[]", Code::BadFrame, "empty array of frames", None),
    (
        "[[]]",
        Code::BadFrame,
        "expected an object, found an array",
        None,
    ),
    ("{}", Code::BadFrame, "op: missing", None),
    (r#"{"corr":"c"}"#, Code::BadFrame, "op: missing", Some("c")),
    (
        r#"{"op":5,"corr":"c"}"#,
        Code::BadFrame,
        "op: expected a string, found a number",
        Some("c"),
    ),
    (r#"{"op":null}"#, Code::BadFrame, "op: missing", None),
    (
        r#"{"op":"ack"}"#,
        Code::UnknownOp,
        "unknown op \"ack\"",
        None,
    ),
    (
        r#"{"corr":"c","op":"EVENT"}"#,
        Code::UnknownOp,
        "unknown op \"EVENT\"",
        Some("c"),
    ),
    (
        r#"{"op":"PUBLISH","payload":1,"corr":"\u0063"}"#,
        Code::BadFrame,
        "topic: missing",
        Some("c"),
    ),
    (
        r#"{"op":"PUBLISH","topic":"t"}"#,
        Code::BadFrame,
        "payload: missing",
        None,
    ),
    (
        r#"{"op":"PUBLISH","topic":["t"],"payload":1}"#,
        Code::BadFrame,
        "topic: expected a string, found an array",
        None,
    ),
    (
        r#"{"op":"PUBLISH","topic":"\ud800","payload":1}"#,
        Code::BadFrame,
        "topic: ",
        None,
    ),
    (
        r#"{"op":"PUBLISH","topic":"t","payload":1,"opts":[]}"#,
        Code::BadFrame,
        "opts: expected an object, found an array",
        None,
    ),
    (
        r#"{"op":"PUBLISH","topic":"t","payload":1,"opts":{"key":5}}"#,
        Code::BadFrame,
        "opts.key: expected a string, found a number",
        None,
    ),
    (
        r#"{"op":"PUBLISH","topic":"t","payload":1,"opts":{"headers":{"a":1}}}"#,
        Code::BadFrame,
        "opts.headers.a: expected a string, found a number",
        None,
    ),
    (
        r#"{"op":"PUBLISH","topic":"t","payload":1,"opts":{"tags":["a",true]}}"#,
        Code::BadFrame,
        "opts.tags.1: expected a string, found a boolean",
        None,
    ),
    (
        r#"{"op":"ACK","topic":"t","group":"g"}"#,
        Code::BadFrame,
        "id: missing",
        None,
    ),
    (
        r#"{"op":"ACK","topic":"t","group":"g","id":"a","ids":["b"]}"#,
        Code::BadFrame,
        "ids: not allowed together with id",
        None,
    ),
    (
        r#"{"op":"ACK","topic":"t","group":"g","ids":"b"}"#,
        Code::BadFrame,
        "ids: expected an array, found a string",
        None,
    ),
    (
        r#"{"op":"ACK","topic":"t","id":"b"}"#,
        Code::BadFrame,
        "group: missing",
        None,
    ),
    (
        r#"{"op":"ACK","topic":"t","group":"g","id":"b","publish":[{"topic":"x"}]}"#,
        Code::BadFrame,
        "publish.0.payload: missing",
        None,
    ),
    (
        r#"{"op":"NACK","topic":"t","group":"g","id":"b","delay_ms":-1}"#,
        Code::BadFrame,
        "delay_ms: expected a whole number from 0 to 18446744073709551615",
        None,
    ),
    (
        r#"{"op":"MODACK","topic":"t","group":"g","extend_ms":5}"#,
        Code::BadFrame,
        "id: missing",
        None,
    ),
    (
        r#"{"op":"AUTH","token":1}"#,
        Code::BadFrame,
        "token: expected a string, found a number",
        None,
    ),
    (
        r#"{"op":"AUTH","batch":1}"#,
        Code::BadFrame,
        "batch: expected true or false, found a number",
        None,
    ),
    (
        r#"{"op":"SUBSCRIBE","topic":"t","opts":{"maxInFlight":4294967296}}"#,
        Code::BadFrame,
        "opts.maxInFlight: expected a whole number from 0 to 4294967295",
        None,
    ),
    (
        r#"{"op":"RESUME","topic":"t","group":"g","corr":{}}"#,
        Code::BadFrame,
        "corr: expected a string, found an object",
        None,
    ),
    (
        r#"{"op":"SUBSCRIBE","topic":"t","from":"earliest"}"#,
        Code::BadFrame,
        "from: unknown field; did you mean opts.from?",
        None,
    ),
    (
        r#"{"op":"SUBSCRIBE","topic":"t","opts":{"ack_timeout_ms":5},"corr":"c"}"#,
        Code::BadFrame,
        "opts.ack_timeout_ms: unknown field; did you mean ackTimeoutMs?",
        Some("c"),
    ),
    (
        r#"{"op":"PUBLISH","topic":"t","payload":1,"opts":{"x":5}}"#,
        Code::BadFrame,
        "opts.x: unknown field; expected one of id, ts, key, headers, tags, caused_by, sid, expect_seq, expect_key_seq, deliver_at, delay_ms, every, catch_up, also_publish",
        None,
    ),
    (
        r#"{"op":"ACK","topic":"t","group":"g","id":"i","delay_ms":0}"#,
        Code::BadFrame,
        "delay_ms: unknown field; expected one of topic, group, id, ids, corr, publish",
        None,
    ),
    (
        r#"{"op":"PUBLISH","topic":"t","payload":1,"topic":"u"}"#,
        Code::BadFrame,
        "topic: duplicate field",
        None,
    ),
    (
        r#"{"op":"PUBLISH","topic":"t","payload":1,"\u006fp":"ACK"}"#,
        Code::BadFrame,
        "op: duplicate field",
        None,
    ),
    (
        r#"{"op":"PUBLISH","t\u006fpic":"t","payload":1,"topic":"u"}"#,
        Code::BadFrame,
        "topic: duplicate field",
        None,
    ),
    (
        r#"{"op":"MODACK","topic":"t","group":"g","id":"i","extend_ms":0.}"#,
        Code::BadJson,
        "invalid JSON: ",
        None,
    ),
];

#[test]
fn refusals_say_what_is_wrong_and_where() {
    for (message, code, says, corr) in REFUSALS {
        let read: Vec<_> = ClientFrames::new(message).collect();
        assert_eq!(read.len(), 1, "{message}");
        let error = read[0].as_ref().unwrap_err();
        assert_eq!(error.code, *code, "{message}");
        let told = if says.ends_with(' ') {
            error.message.get(..says.len())
        } else {
            Some(error.message.as_str())
        };
        assert_eq!(told, Some(*says), "{message}");
        assert_eq!(error.corr.as_deref(), *corr, "{message}");
    }
}

#[test]
fn every_code_that_reading_gives_is_tried() {
    let tried: BTreeSet<&str> = REFUSALS.iter().map(|(_, code, ..)| code.as_str()).collect();
    assert_eq!(
        tried,
        BTreeSet::from(["bad_frame", "bad_json", "unknown_op"])
    );
}

#[test]
fn null_is_the_same_as_leaving_out_except_for_payloads() {
    let message = r#"{"op":"PUBLISH","topic":"t","payload":null,"corr":null,"opts":{"id":null,"ts":null,"headers":null,"tags":null}}"#;
    let frame = ClientFrames::new(message).next().unwrap().unwrap();
    let Request::Publish(publish) = frame.request else {
        panic!("not a publish");
    };
    assert_eq!(publish.payload, "null");
    assert_eq!(frame.corr, None);
    assert_eq!(publish.options, crate::options::PublishOptions::default());
}

#[test]
fn a_long_name_from_outside_is_cut() {
    let message = format!(r#"{{"op":"{}"}}"#, "x".repeat(100_000));
    let error = ClientFrames::new(&message).next().unwrap().unwrap_err();
    assert!(error.message.len() < 200, "{}", error.message.len());
}

#[test]
fn a_token_is_not_shown() {
    let message = r#"{"op":"AUTH","token":"secret"}"#;
    let frame = ClientFrames::new(message).next().unwrap().unwrap();
    assert!(!format!("{frame:?}").contains("secret"));
}
