//! Messages on a socket. Whatever comes, reading them ends, panics nowhere, and what was understood means the same
//! when it is written and read again.
#![no_main]
#![allow(
    clippy::expect_used,
    reason = "a broken promise has to stop the fuzzer"
)]

use libfuzzer_sys::fuzz_target;
use prombus_api::Code;
use prombus_api::frames::{
    ClientFrame, ClientFrames, Request, ServerFrames, write_ack, write_auth, write_modack,
    write_nack, write_pause, write_publish, write_resume, write_revoked, write_subscribe,
    write_unsubscribe,
};

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = std::str::from_utf8(bytes) else {
        return;
    };
    let is_json = serde_json::from_str::<serde::de::IgnoredAny>(message).is_ok();
    for frame in ClientFrames::new(message) {
        match frame {
            Ok(frame) => check_round_trip(&frame),
            // What every JSON reader takes may be no frame, but it is JSON.
            Err(error) => assert!(!is_json || error.code != Code::BadJson, "{message}"),
        }
    }
    for frame in ServerFrames::new(message) {
        drop(frame);
    }
});

fn check_round_trip(frame: &ClientFrame<'_>) {
    // A payload is passed on unchecked, and one that is no JSON need not be readable once it is written elsewhere.
    if let Request::Publish(publish) = &frame.request
        && serde_json::from_str::<serde::de::IgnoredAny>(publish.payload).is_err()
    {
        return;
    }
    if let Request::Ack(ack) = &frame.request
        && !ack.publish.is_empty()
    {
        return;
    }
    let corr = frame.corr.as_deref();
    let mut out = Vec::new();
    match &frame.request {
        Request::Auth(auth) => write_auth(&mut out, auth, corr),
        Request::Publish(publish) => write_publish(&mut out, publish, corr),
        Request::Subscribe(subscribe) => write_subscribe(&mut out, subscribe, corr),
        Request::Unsubscribe(name) => write_unsubscribe(&mut out, &name.topic, &name.group, corr),
        Request::Ack(ack) => write_ack(&mut out, ack, corr),
        Request::Nack(nack) => write_nack(&mut out, nack, corr),
        Request::Modack(modack) => write_modack(&mut out, modack, corr),
        Request::Pause(name) => write_pause(&mut out, &name.topic, &name.group, corr),
        Request::Resume(name) => write_resume(&mut out, &name.topic, &name.group, corr),
        Request::Revoked(revoked) => write_revoked(&mut out, revoked, corr),
    }
    let text = std::str::from_utf8(&out).expect("frames are text");
    let mut again = ClientFrames::new(text);
    assert_eq!(again.next().expect("a frame").as_ref(), Ok(frame), "{text}");
    assert!(again.next().is_none(), "{text}");
}
