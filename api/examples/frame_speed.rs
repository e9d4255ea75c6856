//! How long reading and writing one frame takes, beside the same frames read by serde's derive.
//!
//!     cargo run --release -p prombus-api --example frame_speed

use prombus_api::frames::{
    Ack, ClientFrames, DeliveryContext, Ids, Publish, ServerFrames, write_ack, write_event,
    write_publish, write_published,
};
use prombus_api::options::PublishOptions;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 401;
/// Few, so that a round mostly ends before the system gives the core to somebody else.
const FRAMES_PER_ROUND: u32 = 1_000;

/// What derive makes of a client's frames: one struct with all fields, as they may stand in any order.
#[derive(Deserialize)]
#[allow(dead_code, reason = "filling the fields is what is measured")]
struct Derived<'a> {
    #[serde(borrow)]
    op: Cow<'a, str>,
    #[serde(borrow)]
    corr: Option<Cow<'a, str>>,
    #[serde(borrow)]
    topic: Option<Cow<'a, str>>,
    #[serde(borrow)]
    group: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    #[serde(borrow)]
    opts: Option<DerivedOptions<'a>>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "filling the fields is what is measured")]
struct DerivedOptions<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    key: Option<Cow<'a, str>>,
}

/// The same with the op as serde's tag, which is how one would write it without measuring.
#[derive(Deserialize)]
#[serde(tag = "op")]
#[allow(dead_code, reason = "filling the fields is what is measured")]
enum Tagged<'a> {
    #[serde(rename = "PUBLISH")]
    Publish {
        #[serde(borrow)]
        topic: Cow<'a, str>,
        payload: serde_json::Value,
    },
}

fn main() {
    let dense = r#"{"pid":4711,"name":"worker","host":"node-17.example","cpu_pct":12.25,"mem_mb":512,"ok":true,"#
        .to_owned()
        + r#""labels":{"region":"eu-1","zone":"b","tier":"gold"},"points":[1,2,3,4,5,6,7,8],"note":""#
        + &"x".repeat(64)
        + "\"}";
    let sparse = format!("{{\"data\":\"{}\"}}", "x".repeat(245));
    for (name, payload) in [("dense", &dense), ("one long string", &sparse)] {
        say(&format!(
            "PUBLISH, payload of {} bytes, {name}",
            payload.len()
        ));
        publish(payload);
    }
    say("ACK, one id");
    ack();
    say("EVENT");
    event(&dense);
}

fn publish(payload: &str) {
    let options = PublishOptions {
        key: Some("worker-17".into()),
        ..PublishOptions::default()
    };
    for (name, options) in [("", PublishOptions::default()), (" with key", options)] {
        let publish = Publish {
            topic: "heartbeat.received".into(),
            payload,
            options,
        };
        let mut frame = Vec::new();
        write_publish(&mut frame, &publish, Some("c-104711"));
        let text = String::from_utf8(frame.clone()).unwrap_or_default();
        measure(&format!("scanner{name}"), || {
            ClientFrames::new(black_box(&text)).flatten().count()
        });
        measure(&format!("derive{name}"), || {
            serde_json::from_str::<Derived<'_>>(black_box(&text))
                .is_ok()
                .into()
        });
        measure(&format!("tagged derive{name}"), || {
            serde_json::from_str::<Tagged<'_>>(black_box(&text))
                .is_ok()
                .into()
        });
        measure(&format!("write_publish{name}"), || {
            frame.clear();
            write_publish(&mut frame, black_box(&publish), Some("c-104711"));
            frame.len()
        });
    }
    let mut reply = Vec::new();
    measure("write_published", || {
        reply.clear();
        let id = "019a8c5e-7b1a-7f00-8000-000000104711";
        write_published(
            &mut reply,
            black_box(id),
            (104_711, 1_700_000_000_000),
            false,
            Some("c-104711"),
        );
        reply.len()
    });
}

fn ack() {
    let id = "019a8c5e-7b1a-7f00-8000-000000104711";
    let ack = |ids| Ack {
        topic: "heartbeat.received".into(),
        group: "workers".into(),
        ids,
        publish: Vec::new(),
    };
    let mut frame = Vec::new();
    write_ack(&mut frame, &ack(Ids::One(id.into())), None);
    let text = String::from_utf8(frame).unwrap_or_default();
    measure("scanner", || {
        ClientFrames::new(black_box(&text)).flatten().count()
    });
    measure("derive", || {
        serde_json::from_str::<Derived<'_>>(black_box(&text))
            .is_ok()
            .into()
    });
    let mut frame = Vec::new();
    write_ack(&mut frame, &ack(Ids::Many(vec![id.into(); 50])), None);
    let text = String::from_utf8(frame).unwrap_or_default();
    measure("scanner, 50 ids in one frame", || {
        ClientFrames::new(black_box(&text)).flatten().count()
    });
}

fn event(payload: &str) {
    let record = format!(
        r#"{{"id":"019a8c5e-7b1a-7f00-8000-000000104711","ts":1763240000000,"topic":"heartbeat.received","seq":104711,"payload":{payload}}}"#
    );
    let mut frame = Vec::new();
    measure("write_event", || {
        frame.clear();
        let record = black_box(record.as_bytes());
        let context = DeliveryContext {
            attempt: 1,
            max_attempts: 5,
            ack_deadline_ms: 30_000,
            shadow: false,
        };
        write_event(&mut frame, "heartbeat.received", "workers", record, context);
        frame.len()
    });
    let text = String::from_utf8(frame).unwrap_or_default();
    measure("scanner", || {
        ServerFrames::new(black_box(&text)).flatten().count()
    });
}

/// Prints the median time of one call.
#[allow(clippy::disallowed_methods, reason = "durations for people to read")]
fn measure(name: &str, mut call: impl FnMut() -> usize) {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..FRAMES_PER_ROUND {
                black_box(call());
            }
            start.elapsed().as_nanos() as f64 / f64::from(FRAMES_PER_ROUND)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    say(&format!(
        "  {name:<32} {:>7.0} ns  (best {:.0})",
        rounds[ROUNDS / 2],
        rounds[0]
    ));
}

#[allow(clippy::print_stdout, reason = "this is what the program is for")]
fn say(line: &str) {
    println!("{line}");
}
