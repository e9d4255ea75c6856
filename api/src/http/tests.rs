//! Bodies and queries, written and read back; what is said about wrong ones.

use super::*;
use crate::code::Code;
use crate::frames::{Ack, Ids, Modack, Nack};
use crate::options::PublishOptions;
use crate::record::Record;
use prombus_interface::StartAt;
use proptest::prelude::*;
use serde_json::json;

fn name() -> impl Strategy<Value = String> {
    any::<String>()
}

fn place() -> impl Strategy<Value = StartAt> {
    prop_oneof![
        Just(StartAt::Latest),
        Just(StartAt::Earliest),
        (0..1_u64 << 53).prop_map(StartAt::Ts),
        any::<String>().prop_map(StartAt::AfterId),
        (0..1_u64 << 53).prop_map(StartAt::Seq),
    ]
}

proptest! {
    #[test]
    fn requests_read_back(
        names in (name(), name()),
        to in place(),
        flags in any::<[bool; 2]>(),
        numbers in any::<[Option<u64>; 2]>(),
        small in any::<Option<u32>>(),
        ids in prop::collection::vec(any::<String>(), 0..3),
    ) {
        let (topic, group) = names;
        let seek = Seek { topic: topic.clone(), group: group.clone(), to: to.clone(), dry_run: flags[0] };
        prop_assert_eq!(Seek::parse(&seek.to_json()).unwrap(), seek);
        let pull = Pull {
            topic: topic.clone(),
            group,
            max: small.map(|max| max as usize),
            wait_ms: numbers[0],
            ack_timeout_ms: numbers[1],
            start: flags[0].then_some(to),
            upcast: flags[1].then_some(true),
        };
        let pace = match small {
            None => Pace::Original,
            Some(0) => Pace::Max,
            Some(factor) => Pace::Times(f64::from(factor) / 8.0),
        };
        let shadow = Shadow {
            topic: topic.clone(),
            group: pull.group.clone(),
            start: pull.start.clone(),
            to: numbers[0],
            pace: flags[1].then_some(pace),
            ttl: numbers[1].map(|ms| Age { ms }),
        };
        prop_assert_eq!(Shadow::parse(&shadow.to_json()).unwrap(), shadow);
        prop_assert_eq!(Pull::parse(&pull.to_json()).unwrap(), pull);
        let config = TopicConfig {
            durability: if flags[0] { Durability::Os } else { Durability::Fsync },
            retention: numbers[0].map(|ms| Age { ms }),
            max_bytes: numbers[0],
            max_events: numbers[1],
            compaction: flags[1],
            snapshot_topic: flags[0].then(|| topic.clone()),
            snapshot_interval: numbers[1].map(|ms| Age { ms }),
            partitions: small,
            schema: flags[1].then(|| "full".to_owned()),
        };
        prop_assert_eq!(&TopicConfig::parse(&config.to_json()).unwrap(), &config);
        prop_assert_eq!(&serde_json::from_slice::<TopicConfig>(&config.to_json()).unwrap(), &config);
        let written = serde_json::to_vec(&config).unwrap();
        prop_assert_eq!(&TopicConfig::parse(&written).unwrap(), &config);
        let redrive = Redrive {
            topic: topic.as_str().into(),
            ids: flags[0].then(|| ids.iter().map(|id| id.as_str().into()).collect()),
            dry_run: flags[1],
            rate: small.filter(|rate| *rate > 0),
            payload: (flags[0] && ids.len() == 1).then_some("{\"a\":1}"),
            force: flags[0],
            to_all: flags[1],
        };
        let written = redrive.to_json();
        prop_assert_eq!(Redrive::parse(&written).unwrap(), redrive);
        let envelope = Envelope {
            payload: "[1,\"]\"]",
            options: PublishOptions { key: Some(topic.as_str().into()), ts: numbers[0], tags: ids, ..Default::default() },
        };
        let written = envelope.to_json();
        prop_assert_eq!(Envelope::parse(&written).unwrap(), envelope);
    }

    #[test]
    fn queries_read_back(
        topic in name(),
        start in prop::option::of(place()),
        numbers in prop::array::uniform2(prop::option::of(0..1_u64 << 53)),
        texts in (prop::option::of(name()), prop::option::of(name())),
        ndjson in any::<bool>(),
        keys in prop::collection::vec(name(), 0..3),
    ) {
        let read = ReadQuery { topic: topic.clone(), start, limit: numbers[0], upcast: ndjson };
        prop_assert_eq!(ReadQuery::parse(&Query::parse(&read.to_query()).unwrap()).unwrap(), read);
        let (after_id, key) = texts.clone();
        let group = GroupQuery { topic: topic.clone(), group: key.clone() };
        prop_assert_eq!(GroupQuery::parse(&Query::parse(&group.to_query()).unwrap()).unwrap(), group);
        let export = ExportQuery { topic: topic.clone(), from_ts: numbers[0], to_ts: numbers[1], ndjson, after_id, key, upcast: !ndjson };
        prop_assert_eq!(ExportQuery::parse(&Query::parse(&export.to_query()).unwrap()).unwrap(), export);
        let fields = keys.iter().map(|key| (key.clone(), key.clone())).collect();
        let list = ListQuery { offset: numbers[0], limit: numbers[1], prefix: texts.1.clone(), at: numbers[1], fields };
        prop_assert_eq!(ListQuery::parse(&Query::parse(&list.to_query()).unwrap()).unwrap(), list);
        let tombstones = !keys.is_empty();
        let latest = LatestQuery { topic, keys, prefix: texts.1, after: texts.0, limit: numbers[1], tombstones };
        prop_assert_eq!(LatestQuery::parse(&Query::parse(&latest.to_query()).unwrap()).unwrap(), latest);
    }

    #[test]
    fn garbage_never_panics(text in any::<String>(), bytes in any::<Vec<u8>>(), near in "[%&=+a-f0-9topic]{0,30}") {
        for query in [&text, &near] {
            if let Ok(query) = Query::parse(query) {
                let _ = (ReadQuery::parse(&query), ExportQuery::parse(&query), publish_query(&query));
            }
        }
        let _ = (Seek::parse(&bytes), TopicConfig::parse(&bytes), Redrive::parse(&bytes), Envelope::parse(&bytes));
        let _ = (Ack::parse(&bytes), Record::parse(&text), Age::parse(&text));
    }

    #[test]
    fn ages_read_back(ms in any::<u64>()) {
        let age = Age { ms };
        prop_assert_eq!(Age::parse(&age.to_string()), Some(age));
    }
}

#[test]
fn parameters_that_are_none_are_fields() {
    let text = "offset=1&status=alive&payload.limit=3&a.b=x&token=t&prefix=p&status=stale";
    let list = ListQuery::parse(&Query::parse(text).unwrap()).unwrap();
    let field = |path: &str, value: &str| (path.to_owned(), value.to_owned());
    let expected = [
        field("status", "alive"),
        field("limit", "3"),
        field("a.b", "x"),
        field("status", "stale"),
    ];
    assert_eq!(list.fields, expected);
    assert_eq!(
        (list.offset, list.limit, list.prefix.as_deref()),
        (Some(1), None, Some("p"))
    );
}

#[test]
fn ages_are_written_as_people_do() {
    for (text, ms) in [
        ("30s", 30_000),
        ("12h", 43_200_000),
        ("3d", 259_200_000),
        ("2w", 1_209_600_000),
        ("1500ms", 1_500),
        ("0ms", 0),
    ] {
        assert_eq!(Age::parse(text), Some(Age { ms }), "{text}");
        assert_eq!(Age { ms }.to_string(), text);
    }
    assert_eq!(Age::parse("90m"), Some(Age { ms: 5_400_000 }));
    for bad in [
        "",
        "s",
        "3",
        "3 d",
        "-3d",
        "3D",
        "1.5h",
        "3days",
        "99999999999999999w",
        "é",
    ] {
        assert_eq!(Age::parse(bad), None, "{bad}");
    }
}

#[test]
fn queries_are_taken_apart() {
    let query =
        Query::parse("topic=a.b&key=%C3%BC+x&key=2&tags=a,b&tags=%23c&ts=5&id=&flag&&off=0")
            .unwrap();
    assert_eq!(query.get("key"), Some("ü x"));
    assert_eq!(query.all("key").count(), 2);
    assert_eq!(query.flag("flag").unwrap(), Some(true));
    assert_eq!(query.flag("off").unwrap(), Some(false));
    let options = publish_query(&query).unwrap();
    assert_eq!(options.tags, ["a", "b", "#c"]);
    assert_eq!(options.ts, Some(5));
    assert_eq!(options.id.as_deref(), Some(""));
}

#[test]
fn wrong_queries_are_named() {
    let refusal = |query: &str| {
        let query = Query::parse(query);
        let read = query
            .and_then(|query| ReadQuery::parse(&query).and(ExportQuery::parse(&query).map(drop)));
        read.unwrap_err().message
    };
    assert_eq!(refusal("from=latest"), "topic: missing");
    assert_eq!(
        refusal("topic=t&ts=x"),
        "ts: expected a whole number from 0 to 9007199254740991"
    );
    assert_eq!(
        refusal("topic=t&limit=%2B1"),
        "limit: expected a whole number from 0 to 9007199254740991"
    );
    assert_eq!(refusal("topic=t&from=ts"), "ts: missing, required by from");
    assert_eq!(refusal("topic=t&ndjson=2"), "ndjson: expected 1 or 0");
    assert_eq!(
        refusal("topic=%f"),
        "query: two hexadecimal digits have to follow %"
    );
    assert_eq!(refusal("topic=%ff"), "query: must be UTF-8");
}

#[test]
fn wrong_bodies_are_named() {
    let seek = |body: &[u8]| {
        let refusal = Seek::parse(body).unwrap_err();
        (refusal.code, refusal.message)
    };
    let says = |code, text: &str| (code, text.to_owned());
    let bad_frame = |text| says(Code::BadFrame, text);
    let bad_json = |text| says(Code::BadJson, text);
    assert_eq!(seek(b"{\"topic\":\"t\"}"), bad_frame("group: missing"));
    assert_eq!(
        seek(b"{\"topic\":\"t\",\"group\":\"g\"}"),
        bad_frame("from: missing")
    );
    assert_eq!(
        seek(b"{\"topic\":\"t\",\"group\":\"g\",\"from\":\"seq\",\"seq\":\"1\"}"),
        bad_frame("seq: expected a whole number from 0 to 18446744073709551615, found a string")
    );
    assert_eq!(
        seek(b"{\"unheard\":1}"),
        bad_frame(
            "unheard: unknown field; expected one of topic, group, dry_run, from, ts, afterId, seq"
        )
    );
    assert_eq!(
        seek(b"{\"topic\":\"t\",\"topic\":\"t\"}"),
        bad_frame("topic: duplicate field")
    );
    assert_eq!(
        seek(b""),
        bad_json("expected a value, found the end at byte 0")
    );
    assert_eq!(seek(b"\xff"), bad_json("invalid UTF-8 at byte 0"));
    // Two bodies are no JSON, which is the better thing to say.
    assert_eq!(seek(b"{\"topic\":\"t\"} {}").0, Code::BadJson);
    let redrive = |body: &'static str| Redrive::parse(body.as_bytes()).unwrap_err().message;
    assert_eq!(
        redrive(r#"{"topic":"t","ids":["a","b"],"payload":1}"#),
        "payload: an edited payload is for a single id"
    );
    assert_eq!(
        redrive(r#"{"topic":"t","ids":["a"],"all":true}"#),
        "all: ids name the letters already"
    );
    assert_eq!(redrive(r#"{"topic":"t","all":false}"#), "ids: missing");
    assert_eq!(
        redrive(r#"{"topic":"t","rate":0}"#),
        "rate: must be at least 1"
    );
    let config = |body: &'static str| TopicConfig::parse(body.as_bytes()).unwrap_err().message;
    assert_eq!(
        config(r#"{"retantion":"3d"}"#),
        "retantion: unknown field; did you mean retention?"
    );
    assert_eq!(
        config(r#"{"retention":"3 days"}"#),
        "retention: expected an age like 30s, 12h or 3d (ms, s, m, h, d, w)"
    );
    assert_eq!(
        config(r#"{"durability":"none"}"#),
        "durability: expected fsync or os"
    );
}

#[test]
fn settling_bodies_are_the_frames_without_op() {
    let ack = Ack::parse(
        br#"{"topic":"t","group":"g","ids":["a","b"],"publish":[{"topic":"o","payload":[1]}]}"#,
    )
    .unwrap();
    assert_eq!(ack.ids.as_slice(), ["a", "b"]);
    assert_eq!(ack.publish[0].payload, "[1]");
    let nack =
        Nack::parse(br#"{"topic":"t","group":"g","id":"a","reason":"r","delay_ms":5}"#).unwrap();
    assert_eq!((nack.ids, nack.delay_ms), (Ids::One("a".into()), Some(5)));
    let modack = Modack::parse(br#"{"topic":"t","group":"g","id":"a","extend_ms":5}"#).unwrap();
    assert_eq!(modack.extend_ms, Some(5));
}

#[test]
fn records_go_into_pages_as_they_are() {
    let records: [&[u8]; 2] = [br#"{"id":"a", "payload":1.50}"#, br#"{"id":"b"}"#];
    let mut out = Vec::new();
    write_event_page(&mut out, "t", records, Some(3));
    let page: EventPage = serde_json::from_slice(&out).unwrap();
    assert_eq!(
        (page.topic.as_str(), page.count, page.next),
        ("t", 2, Some(3))
    );
    assert_eq!(page.events[0].get().as_bytes(), records[0]);
    out.clear();
    write_event_page(&mut out, "t", [], None);
    assert_eq!(
        String::from_utf8_lossy(&out),
        r#"{"topic":"t","count":0,"events":[],"next":null}"#
    );
    out.clear();
    write_latest_page(&mut out, "t", records, Some("k\""));
    let page: LatestPage = serde_json::from_slice(&out).unwrap();
    assert_eq!((page.count, page.next.as_deref()), (2, Some("k\"")));
    out.clear();
    let item = |number| StateText {
        key: "k\"",
        payload: "1.50",
        ts: number,
        seq: number,
        id: None,
    };
    write_list_page(&mut out, "t", (5, 1), [item(1), item(2)]);
    let page: ListPage = serde_json::from_slice(&out).unwrap();
    assert_eq!((page.total, page.count, page.next), (5, 2, Some(3)));
    assert_eq!(
        (page.items[1].key.as_str(), page.items[1].payload.get()),
        ("k\"", "1.50")
    );
    for (total, offset) in [(3, 1), (1, 9), (1, u64::MAX)] {
        out.clear();
        write_list_page(&mut out, "t", (total, offset), [item(1), item(2)]);
        let page: ListPage = serde_json::from_slice(&out).unwrap();
        assert_eq!(page.next, None);
    }
    out.clear();
    let context = Context {
        attempt: 2,
        max_attempts: 5,
        ack_deadline_ms: 30_000,
        shadow: true,
    };
    write_pulled(&mut out, "t", "g", records.map(|record| (record, context)));
    let pulled: Pulled = serde_json::from_slice(&out).unwrap();
    assert_eq!((pulled.count, pulled.events[1].ctx), (2, context));
    assert_eq!(pulled.events[1].event.get().as_bytes(), records[1]);
}

#[test]
fn replies_leave_out_what_says_nothing() {
    let reply = PublishReply {
        id: "i".to_owned(),
        seq: 1,
        ts: 2,
        topic: "t".to_owned(),
        duplicate: false,
        durability: "fsync".to_owned(),
        published: Vec::new(),
    };
    let expected = json!({"id": "i", "seq": 1, "ts": 2, "topic": "t", "durability": "fsync"});
    assert_eq!(serde_json::to_value(&reply).unwrap(), expected);
    let error = ErrorBody::new(Code::UnknownTopic, "no topic t");
    assert_eq!(
        serde_json::to_value(&error).unwrap(),
        json!({"code": "unknown_topic", "error": "no topic t"})
    );
    assert_eq!(error.known_code(), Some(Code::UnknownTopic));
}

#[test]
fn bad_lines_are_counted_beyond_what_is_told() {
    let mut reply = BulkReply::default();
    for line in 1..=5 {
        reply.fail(line, Code::BadJson, "no", 3);
    }
    assert_eq!(
        (reply.failed, reply.errors.len(), reply.errors_left_out),
        (5, 3, 2)
    );
}

#[test]
fn only_traces_and_own_headers_become_event_headers() {
    for name in ["x-request", "traceparent", "tracestate"] {
        assert!(is_event_header(name), "{name}");
    }
    for name in [
        "authorization",
        "cookie",
        "idempotency-key",
        "x",
        "content-type",
    ] {
        assert!(!is_event_header(name), "{name}");
    }
}
