//! What a sender is told, word by word.

use crate::code::Code;
use crate::frames::*;
use std::collections::BTreeSet;

/// Message, code, what the text says, corr. Where the text ends in a blank, the rest is in serde_json's words.
const REFUSALS: &[(&str, Code, &str, Option<&str>)] = &[
    (
        "",
        Code::BadJson,
        "not JSON at byte 0: it ends where a value should stand",
        None,
    ),
    (
        "hello",
        Code::BadJson,
        "not JSON at byte 0: a value should stand here",
        None,
    ),
    (
        "{",
        Code::BadJson,
        "not JSON at byte 1: the name of a field should stand here",
        None,
    ),
    (
        "{\"op\":\"ACK\"",
        Code::BadJson,
        "not JSON at byte 11: it ends inside a bracket",
        None,
    ),
    (
        "{\"op\" \"ACK\"}",
        Code::BadJson,
        "not JSON at byte 6: a colon should stand here",
        None,
    ),
    (
        "{op:1}",
        Code::BadJson,
        "not JSON at byte 1: the name of a field should stand here",
        None,
    ),
    (
        r#"{"op":"PAUSE","topic":"t","group":"g",}"#,
        Code::BadJson,
        "not JSON at byte 38: the name of a field should stand here",
        None,
    ),
    (
        r#"{"op":"PAUSE","topic":"t","group":"g"} x"#,
        Code::BadJson,
        "not JSON at byte 39: something follows the value",
        None,
    ),
    (
        r#"{"op":"PAUSE","topic":tru,"corr":"c"}"#,
        Code::BadJson,
        "not JSON: ",
        Some("c"),
    ),
    (
        r#"{"op":"NOPE","x":tru,"corr":"c"}"#,
        Code::BadJson,
        "not JSON: ",
        Some("c"),
    ),
    (
        "null",
        Code::BadFrame,
        "it has to be an object, not null",
        None,
    ),
    (
        "12",
        Code::BadFrame,
        "it has to be an object, not this number",
        None,
    ),
    (
        "\"x\"",
        Code::BadFrame,
        "it has to be an object, not a string",
        None,
    ),
    ("[]", Code::BadFrame, "the array holds no frame", None),
    (
        "[[]]",
        Code::BadFrame,
        "it has to be an object, not an array",
        None,
    ),
    ("{}", Code::BadFrame, "op: it is missing", None),
    (
        r#"{"corr":"c"}"#,
        Code::BadFrame,
        "op: it is missing",
        Some("c"),
    ),
    (
        r#"{"op":5,"corr":"c"}"#,
        Code::BadFrame,
        "op: it has to be a string, not this number",
        Some("c"),
    ),
    (r#"{"op":null}"#, Code::BadFrame, "op: it is missing", None),
    (
        r#"{"op":"ack"}"#,
        Code::UnknownOp,
        "there is no op \"ack\"",
        None,
    ),
    (
        r#"{"corr":"c","op":"EVENT"}"#,
        Code::UnknownOp,
        "there is no op \"EVENT\"",
        Some("c"),
    ),
    (
        r#"{"op":"PUBLISH","payload":1,"corr":"\u0063"}"#,
        Code::BadFrame,
        "topic: it is missing",
        Some("c"),
    ),
    (
        r#"{"op":"PUBLISH","topic":"t"}"#,
        Code::BadFrame,
        "payload: it is missing",
        None,
    ),
    (
        r#"{"op":"PUBLISH","topic":["t"],"payload":1}"#,
        Code::BadFrame,
        "topic: it has to be a string, not an array",
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
        "opts: it has to be an object, not an array",
        None,
    ),
    (
        r#"{"op":"PUBLISH","topic":"t","payload":1,"opts":{"key":5}}"#,
        Code::BadFrame,
        "opts.key: it has to be a string, not this number",
        None,
    ),
    (
        r#"{"op":"PUBLISH","topic":"t","payload":1,"opts":{"headers":{"a":1}}}"#,
        Code::BadFrame,
        "opts.headers.a: it has to be a string, not this number",
        None,
    ),
    (
        r#"{"op":"PUBLISH","topic":"t","payload":1,"opts":{"tags":["a",true]}}"#,
        Code::BadFrame,
        "opts.tags.1: it has to be a string, not a boolean",
        None,
    ),
    (
        r#"{"op":"ACK","topic":"t","group":"g"}"#,
        Code::BadFrame,
        "id: it is missing",
        None,
    ),
    (
        r#"{"op":"ACK","topic":"t","group":"g","id":"a","ids":["b"]}"#,
        Code::BadFrame,
        "ids: there is an id already",
        None,
    ),
    (
        r#"{"op":"ACK","topic":"t","group":"g","ids":"b"}"#,
        Code::BadFrame,
        "ids: it has to be an array, not a string",
        None,
    ),
    (
        r#"{"op":"ACK","topic":"t","id":"b"}"#,
        Code::BadFrame,
        "group: it is missing",
        None,
    ),
    (
        r#"{"op":"ACK","topic":"t","group":"g","id":"b","publish":[{"topic":"x"}]}"#,
        Code::BadFrame,
        "publish.0.payload: it is missing",
        None,
    ),
    (
        r#"{"op":"NACK","topic":"t","group":"g","id":"b","delay_ms":-1}"#,
        Code::BadFrame,
        "delay_ms: it has to be a whole number from 0 to 18446744073709551615, not this number",
        None,
    ),
    (
        r#"{"op":"MODACK","topic":"t","group":"g","extend_ms":5}"#,
        Code::BadFrame,
        "id: it is missing",
        None,
    ),
    (
        r#"{"op":"AUTH","token":1}"#,
        Code::BadFrame,
        "token: it has to be a string, not this number",
        None,
    ),
    (
        r#"{"op":"AUTH","batch":1}"#,
        Code::BadFrame,
        "batch: it has to be true or false, not this number",
        None,
    ),
    (
        r#"{"op":"SUBSCRIBE","topic":"t","opts":{"maxInFlight":4294967296}}"#,
        Code::BadFrame,
        "opts.maxInFlight: it has to be a whole number from 0 to 4294967295, not this number",
        None,
    ),
    (
        r#"{"op":"RESUME","topic":"t","group":"g","corr":{}}"#,
        Code::BadFrame,
        "corr: it has to be a string, not an object",
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
        let told = match says.ends_with(' ') {
            true => error.message.get(..says.len()),
            false => Some(error.message.as_str()),
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
