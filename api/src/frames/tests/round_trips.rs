//! What is written reads back the same, with the fields in any order, and from servers with unknown ones between.

use super::strategies::*;
use crate::code::Code;
use crate::frames::*;
use proptest::prelude::*;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Fields of servers that are newer than their client.
const UNKNOWN: [&str; 2] = [
    r#""future":{"op":"NO","corr":["x",1.5e3,null,"]"]}"#,
    r#""\u0066lag" : false "#,
];

/// The same object with its fields in another order and some more.
fn shuffled(frame: &str, seed: u64, more: &[&str]) -> String {
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(frame).unwrap();
    let mut fields: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{}\n: {value}\t", serde_json::to_string(name).unwrap()))
        .collect();
    fields.extend(more.iter().map(|field| (*field).to_owned()));
    fields.sort_by_key(|field| {
        field.bytes().fold(seed, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    });
    format!(" {{ {} }} ", fields.join(" , "))
}

fn only_client(message: &str) -> ClientFrame<'_> {
    let mut frames = ClientFrames::new(message);
    let frame = frames.next().unwrap().unwrap();
    assert!(frames.next().is_none());
    frame
}

fn only_server(message: &str) -> ServerFrame<'_> {
    let mut frames = ServerFrames::new(message);
    let frame = frames.next().unwrap().unwrap();
    assert!(frames.next().is_none());
    frame
}

proptest! {
    #[test]
    fn client_frames(frame in client_frame(), seed in any::<u64>()) {
        let written = write_client(&frame);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&written).is_ok(), "{}", written);
        prop_assert_eq!(&only_client(&written), &frame);
        let shuffled = shuffled(&written, seed, &[]);
        prop_assert_eq!(&only_client(&shuffled), &frame);
    }

    #[test]
    fn arrays_of_client_frames(frames in prop::collection::vec(client_frame(), 1..5)) {
        let written: Vec<String> = frames.iter().map(write_client).collect();
        let message = format!("[{}]", written.join(" ,\n"));
        let read: Result<Vec<_>, _> = ClientFrames::new(&message).collect();
        prop_assert_eq!(read.unwrap(), frames);
    }

    #[test]
    fn events(
        names in (text(), text()),
        event in record(),
        attempt in any::<u32>(),
        max_attempts in any::<u32>(),
        ack_deadline_ms in any::<u64>(),
        seed in any::<u64>(),
        shadow in any::<bool>(),
    ) {
        let mut json = Vec::new();
        event.write(&mut json);
        let mut out = Vec::new();
        let context = DeliveryContext { attempt, max_attempts, ack_deadline_ms, shadow };
        write_event(&mut out, &names.0, &names.1, &json, context);
        let written = String::from_utf8(out).unwrap();
        let event_json = std::str::from_utf8(&json).unwrap();
        let (topic, group) = names;
        let expected = ServerFrame::Event(EventFrame { topic, group, event, event_json, attempt, max_attempts: Some(max_attempts), ack_deadline_ms, shadow });
        prop_assert_eq!(&only_server(&written), &expected);
        let shuffled = shuffled(&written, seed, &UNKNOWN);
        prop_assert_eq!(&only_server(&shuffled), &expected);
    }

    #[test]
    fn replies(
        texts in (text(), text()),
        corr in prop::option::of(text()),
        seq in any::<u64>(),
        duplicate in any::<bool>(),
        code in prop::sample::select(Code::ALL),
        (retry_after_ms, actual) in any::<(Option<u64>, Option<u64>)>(),
        seed in any::<u64>(),
    ) {
        let (id, message) = texts;
        let (mut ok, mut published, mut subscribed, mut error) = (vec![], vec![], vec![], vec![]);
        let event = PublishedFrame { topic: message.clone(), id: id.clone(), seq, duplicate };
        let events = vec![event; (seq % 4) as usize];
        let mut stepped = vec![];
        write_ack_published(&mut stepped, &events, corr.as_deref());
        write_ok(&mut ok, corr.as_deref());
        write_published(&mut published, &id, (seq, seq / 2), duplicate, corr.as_deref());
        write_subscribed(&mut subscribed, &id, corr.as_deref());
        let details = ErrorDetails { retry_after_ms, actual };
        write_error(&mut error, code, &message, corr.as_deref(), details);
        let plain = OkFrame { corr: corr.clone(), ..OkFrame::default() };
        let with_id = OkFrame { id: Some(id.clone()), seq: Some(seq), ts: Some(seq / 2), duplicate, ..plain.clone() };
        let with_events = OkFrame { published: events, ..plain.clone() };
        let with_group = OkFrame { group: Some(id), ..plain.clone() };
        let failed = ErrorFrame { corr, code: code.as_str().into(), message, details };
        prop_assert_eq!(failed.known_code(), Some(code));
        for (written, expected) in [
            (ok, ServerFrame::Ok(plain)),
            (published, ServerFrame::Ok(with_id)),
            (subscribed, ServerFrame::Ok(with_group)),
            (stepped, ServerFrame::Ok(with_events)),
            (error, ServerFrame::Error(failed)),
        ] {
            let written = String::from_utf8(written).unwrap();
            prop_assert_eq!(&only_server(&written), &expected);
            let shuffled = shuffled(&written, seed, &UNKNOWN);
        prop_assert_eq!(&only_server(&shuffled), &expected);
        }
    }
}

#[test]
fn the_frames_of_the_contract_are_written_to_the_letter() {
    let mut out = Vec::new();
    let context = DeliveryContext {
        attempt: 1,
        max_attempts: 5,
        ack_deadline_ms: 30_000,
        shadow: false,
    };
    write_event(&mut out, "t", "g", br#"{"id":"i"}"#, context);
    assert_eq!(
        String::from_utf8(std::mem::take(&mut out)).unwrap(),
        r#"{"op":"EVENT","topic":"t","group":"g","event":{"id":"i"},"ctx":{"attempt":1,"maxAttempts":5,"ack_deadline_ms":30000}}"#
    );
    write_published(&mut out, "i", (7, 1_700), true, Some("c"));
    assert_eq!(
        String::from_utf8(std::mem::take(&mut out)).unwrap(),
        r#"{"op":"OK","corr":"c","id":"i","seq":7,"ts":1700,"duplicate":true}"#
    );
    let event = PublishedFrame {
        topic: "t".into(),
        id: "i".into(),
        seq: 7,
        duplicate: false,
    };
    write_ack_published(&mut out, &[event], Some("c"));
    assert_eq!(
        String::from_utf8(std::mem::take(&mut out)).unwrap(),
        r#"{"op":"OK","corr":"c","published":[{"topic":"t","id":"i","seq":7}]}"#
    );
    let publish = br#"[{"topic":"u","payload":1}]"#;
    let ids = Ids::Many(vec!["i".into()]);
    write_ack_publish(&mut out, "t", "g", &ids, publish, Some("c"));
    assert_eq!(
        String::from_utf8(std::mem::take(&mut out)).unwrap(),
        r#"{"op":"ACK","topic":"t","group":"g","ids":["i"],"publish":[{"topic":"u","payload":1}],"corr":"c"}"#
    );
    let details = ErrorDetails {
        retry_after_ms: Some(250),
        ..ErrorDetails::default()
    };
    write_error(&mut out, Code::RateLimited, "slow down", None, details);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"op":"ERR","code":"rate_limited","msg":"slow down","retry_after_ms":250}"#
    );
}
