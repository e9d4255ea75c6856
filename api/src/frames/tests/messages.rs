//! Messages as a whole: what is borrowed, what arrays do, and that no text whatever makes it stumble.

use super::strategies::*;
use crate::code::Code;
use crate::error::FrameError;
use crate::frames::*;
use proptest::prelude::*;
use serde::de::IgnoredAny;

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// What was passed on unchecked.
fn payloads<'a>(frame: &'a ClientFrame<'_>) -> Vec<&'a str> {
    match &frame.request {
        Request::Publish(publish) => {
            let others = publish.options.also_publish.iter();
            let others = others.map(|also| &*also.payload);
            std::iter::once(publish.payload).chain(others).collect()
        }
        Request::Ack(ack) => ack.publish.iter().map(|publish| publish.payload).collect(),
        _ => Vec::new(),
    }
}

/// Some bytes of a message replaced by others, cut back to UTF-8.
fn damaged(message: &str, damage: &[(prop::sample::Index, u8)]) -> String {
    let mut bytes = message.as_bytes().to_vec();
    for (at, byte) in damage {
        let at = at.index(bytes.len());
        match byte {
            0x80.. => {
                bytes.remove(at);
            }
            _ => bytes[at] = *byte,
        }
        if bytes.is_empty() {
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Nothing that is not JSON gets through, but for payloads, which others check; and what is JSON is never called
    /// anything else.
    #[test]
    fn damaged_messages_are_told_from_json(
        frames in prop::collection::vec(client_frame(), 1..3),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        as_array in any::<bool>(),
    ) {
        let written: Vec<String> = frames.iter().map(write_client).collect();
        let message = if as_array { format!("[{}]", written.join(",")) } else { written[0].clone() };
        let message = damaged(&message, &damage);
        let read: Vec<Result<ClientFrame<'_>, FrameError>> = ClientFrames::new(&message).collect();
        prop_assert!(!read.is_empty());
        let bad_json = |result: &Result<_, FrameError>| {
            result.as_ref().is_err_and(|error| error.code == Code::BadJson)
        };
        let bad_payload = |result: &Result<ClientFrame<'_>, FrameError>| {
            result.as_ref().is_ok_and(|frame| payloads(frame).iter().any(|payload| !is_json(payload)))
        };
        let seems_json = !read.iter().any(|result| bad_json(result) || bad_payload(result));
        prop_assert_eq!(seems_json, is_json(&message), "{} {:?}", message, read);
    }

    #[test]
    fn garbage_is_refused(message in prop_oneof![any::<String>(), "[\\[\\]{}\",:\\\\opACK1 ]{0,30}"]) {
        for result in ClientFrames::new(&message).take(100) {
            prop_assert!(result.is_err());
        }
        for result in ServerFrames::new(&message).take(100) {
            prop_assert!(result.is_err());
        }
    }
}

#[test]
fn payloads_and_names_are_slices_of_the_message() {
    let message = r#"{"op":"PUBLISH","topic":"a.b","payload": {"x": [1, 2]} ,"opts":{"key":"k","id":"i"},"corr":"c"}"#;
    let inside = |text: &str| {
        let range = message.as_bytes().as_ptr_range();
        range.contains(&text.as_ptr())
    };
    let frame = ClientFrames::new(message).next().unwrap().unwrap();
    let Request::Publish(publish) = &frame.request else {
        panic!("not a publish");
    };
    assert_eq!(publish.payload, r#"{"x": [1, 2]}"#);
    let options = &publish.options;
    for text in [
        publish.payload,
        &publish.topic,
        frame.corr.as_deref().unwrap(),
        options.key.as_deref().unwrap(),
        options.id.as_deref().unwrap(),
    ] {
        assert!(inside(text), "{text} was copied");
    }
    let message = r#"{"op":"EVENT","topic":"t","group":"g","event":{"id":"i","ts":1,"topic":"t","seq":1,"payload":[1]},"ctx":{"attempt":1,"ack_deadline_ms":2}}"#;
    let frame = ServerFrames::new(message).next().unwrap().unwrap();
    let ServerFrame::Event(event) = &frame else {
        panic!("not an event");
    };
    let range = message.as_bytes().as_ptr_range();
    assert!(range.contains(&event.event.payload.as_ptr()));
    assert!(range.contains(&event.event_json.as_ptr()));
}

#[test]
fn a_bad_frame_in_an_array_spoils_no_other() {
    let message = r#" [
        {"op":"PUBLISH","topic":"t","payload":1,"corr":"1"},
        {"op":"PUBLISH","topic":"t","corr":"2"},
        17,
        {"op":"PUBLISH","topic":5,"payload":{"corr":"no"},"corr":"3"},
        {"op":"NOPE","corr":"4"},
        {"corr":"5"},
        [{"op":"ACK"}],
        {"op":"ACK","topic":"t","group":"g","id":"i","x":nul,"corr":"6"},
        {"op":"ACK","topic":"t","group":"g","id":"i","corr":7},
        {"op":"PUBLISH","topic":"t","payload":{"a":tru},"corr":"8"},
        {"op":"PAUSE","topic":"t","group":"g","corr":"9"}
    ] "#;
    let read: Vec<_> = ClientFrames::new(message)
        .map(|result| match result {
            Ok(frame) => (None, frame.corr.map(|corr| corr.into_owned())),
            Err(error) => (Some(error.code), error.corr),
        })
        .collect();
    let corr = |text: &str| Some(text.to_owned());
    let expected = [
        (None, corr("1")),
        (Some(Code::BadFrame), corr("2")),
        (Some(Code::BadFrame), None),
        (Some(Code::BadFrame), corr("3")),
        (Some(Code::UnknownOp), corr("4")),
        (Some(Code::BadFrame), corr("5")),
        (Some(Code::BadFrame), None),
        (Some(Code::BadJson), corr("6")),
        (Some(Code::BadFrame), None),
        // Its payload is no JSON, which the bus will see.
        (None, corr("8")),
        (None, corr("9")),
    ];
    assert_eq!(read, expected);
}

#[test]
fn a_broken_array_gives_the_frames_before_the_break_unless_it_is_not_closed() {
    let good = r#"{"op":"PAUSE","topic":"t","group":"g"}"#;
    for (message, good_frames) in [
        // One that is not closed runs not at all.
        (format!("[{good},"), 0),
        (format!("[{good}"), 0),
        (format!("[{good},{good},]"), 2),
        (format!("[{good} {good}]"), 1),
        (format!("[{good}] x"), 1),
        (format!("[{good},{{\"op\":\"ACK"), 0),
        ("[".to_owned(), 0),
        ("[] []".to_owned(), 0),
        (format!("{good}{good}"), 0),
    ] {
        let read: Vec<_> = ClientFrames::new(&message).collect();
        assert_eq!(read.len(), good_frames + 1, "{message}");
        assert!(read[..good_frames].iter().all(Result::is_ok), "{message}");
        assert_eq!(
            read[good_frames].as_ref().unwrap_err().code,
            Code::BadJson,
            "{message}"
        );
    }
}

#[test]
fn huge_and_deep_messages_are_read_or_refused() {
    let deep = "[".repeat(1_000_000);
    assert_eq!(ClientFrames::new(&deep).filter(Result::is_ok).count(), 0);
    let payload = format!("{deep}{}", "]".repeat(1_000_000));
    let message = format!(r#"{{"payload":{payload},"op":"PUBLISH","topic":"t"}}"#);
    let frame = ClientFrames::new(&message).next().unwrap().unwrap();
    assert_eq!(payloads(&frame), [payload]);
    let many = format!("[{}1]", "1,".repeat(100_000));
    assert_eq!(
        ClientFrames::new(&many).filter(Result::is_err).count(),
        100_001
    );
}
