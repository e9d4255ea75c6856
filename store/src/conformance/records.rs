//! The record as clients see it: field order, what is left out, and text that is kept as it was written.

use super::Harness;
use super::case::{Case, START_MS, client_id, keyed, payloads, plain, with_id};
use crate::{
    Batch, Change, CommitError, Draft, Expect, ExpectedPosition, IfExists, LimitReached,
    MAX_RECORD_BYTES, TopicOptions,
};

/// Payloads whose meaning survives a JSON library and whose encoding does not.
const ODD_PAYLOADS: [&str; 18] = [
    "null",
    "true",
    "\"\"",
    "{}",
    "[]",
    "1E400",
    "-0",
    "-0.0",
    "1.0",
    "1.10e+05",
    "0.1000000000000000055511151231257827021181583404541015625",
    "123456789012345678901234567890",
    r#""\u00fc\/\u0000\ud83e\udd80""#,
    "\"ü🦀\u{7f}\u{2028}\"",
    r#"{"b":1,"a":2,"b":3,"":{"seq":9,"id":"x"}}"#,
    r#"{"key":"k","payload":{"tags":["t"]},"topic":"other"}"#,
    r#"[[[[[[[[[["deep"]]]]]]]]]]"#,
    r#""}\",\"payload\":\"""#,
];

/// `id sid ts topic seq key partition headers payload caused_by tags`, in this order.
pub async fn fields_come_in_the_order_of_the_contract<H: Harness>(harness: &H) {
    let case = Case::new(harness).await;
    let topic = case
        .put_topic("heartbeat.received", TopicOptions::default())
        .await;
    let full = Draft {
        id: Some(client_id("my-id")),
        ts: Some(42),
        sid: Some("boot-1"),
        key: Some("host:1"),
        partition: Some(3),
        headers: &[
            ("z".into(), "last first".into()),
            ("a".into(), String::new()),
        ],
        payload: r#"{"pid":7}"#,
        caused_by: &["one".into(), "two".into()],
        tags: &["#stt".into()],
        tombstone: false,
        expected: ExpectedPosition::default(),
    };
    case.store(&topic, &full).await;
    let made = case.store(&topic, &Draft { id: None, ..full }).await;
    let rest = concat!(
        r#","key":"host:1","partition":3,"headers":{"z":"last first","a":""},"payload":{"pid":7},"#,
        r##""caused_by":["one","two"],"tags":["#stt"]}"##
    );
    let expected = [("my-id".to_owned(), 1), (made.id.to_string(), 2)].map(|(id, seq)| {
        let head = format!(
            r#"{{"id":"{id}","sid":"boot-1","ts":42,"topic":"heartbeat.received","seq":{seq}"#
        );
        head + rest
    });
    let case = case.reopen().await;
    let events = case.all(&topic).await;
    let read: Vec<&str> = events.iter().map(|event| event.json()).collect();
    assert_eq!(read, expected);
    assert_eq!(events[0].json_bytes(), expected[0].as_bytes());
}

/// What was not given is not there.
pub async fn absent_fields_are_left_out<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let placed = case.store(&topic, &plain("[1]")).await;
    let id = placed.id;
    let expected = format!(r#"{{"id":"{id}","ts":{START_MS},"topic":"t","seq":1,"payload":[1]}}"#);
    assert_eq!(case.all(&topic).await[0].json(), expected);
}

/// Number encoding, key order, escapes and text are the publisher's, also after a restart.
pub async fn payload_text_is_kept<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let long = format!("\"{}\"", "long ".repeat(200_000));
    let payloads_in: Vec<&str> = ODD_PAYLOADS.into_iter().chain([long.as_str()]).collect();
    let drafts: Vec<Draft<'_>> = payloads_in.iter().map(|payload| plain(payload)).collect();
    case.store_all(&topic, &drafts).await;
    assert_eq!(payloads(&case.all(&topic).await), payloads_in);
    let case = case.reopen().await;
    let events = case.all(&topic).await;
    assert_eq!(payloads(&events), payloads_in);
    for (event, payload) in events.iter().zip(payloads_in) {
        let tail = format!(r#","payload":{payload}}}"#);
        assert!(event.json().ends_with(&tail), "the record has it too");
    }
}

/// Keys, headers and the rest may be any text; it is escaped where JSON asks for it and nowhere else.
pub async fn awkward_strings_are_spelled_as_json<H: Harness>(harness: &H) {
    const RAW: &str = "q\" b\\ n\n r\r t\t ctl\u{1} / ü 🦀";
    const SPELLED: &str = r#""q\" b\\ n\n r\r t\t ctl\u0001 / ü 🦀""#;
    let (case, topic) = Case::with_topic(harness).await;
    let draft = Draft {
        id: Some(client_id(r#"say "hi" \ bye"#)),
        ts: Some(1),
        sid: Some(RAW),
        key: Some(RAW),
        headers: &[(RAW.into(), RAW.into())],
        caused_by: &[RAW.into()],
        tags: &[RAW.into(), String::new()],
        ..plain("0")
    };
    case.store(&topic, &draft).await;
    let expected = format!(
        concat!(
            r#"{{"id":"say \"hi\" \\ bye","sid":{0},"ts":1,"topic":"t","seq":1,"key":{0},"#,
            r#""headers":{{{0}:{0}}},"payload":0,"caused_by":[{0}],"tags":[{0},""]}}"#
        ),
        SPELLED
    );
    let case = case.reopen().await;
    let event = &case.all(&topic).await[0];
    assert_eq!(event.json(), expected);
    assert_eq!(event.id(), r#"say "hi" \ bye"#);
    assert_eq!(event.key().as_deref(), Some(RAW));
    assert_eq!(case.find_id(&topic, r#"say "hi" \ bye"#).await, Some(1));
    assert_eq!(case.latest_seq(&topic, RAW).await, Some(1));
}

/// What a record says of itself is what was published.
pub async fn parts_of_a_record_can_be_asked_for<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let gone = Draft {
        tombstone: true,
        ..keyed("", "null")
    };
    let placed = case.store_all(&topic, &[with_id("mine", "1"), gone]).await;
    let case = case.reopen().await;
    let events = case.all(&topic).await;
    let [own, gone] = events.as_slice() else {
        panic!("two events, not {}", events.len());
    };
    assert_eq!((own.id().as_ref(), own.has_client_id()), ("mine", true));
    assert_eq!((own.key(), own.is_tombstone()), (None, false));
    assert_eq!((own.seq(), own.ts(), own.topic()), (1, START_MS, "t"));
    assert_eq!(
        (gone.id().as_ref(), gone.has_client_id()),
        (placed[1].id.as_str(), false)
    );
    assert_eq!(
        (gone.key().as_deref(), gone.is_tombstone()),
        (Some(""), true)
    );
    assert_eq!((gone.seq(), gone.payload()), (2, "null"));
    assert!(gone.stored_bytes() >= gone.json().len());
}

/// A record has a largest size. What is over it is refused whole, and nothing of its batch happens: a store that took it
/// could not read it again.
pub async fn what_no_record_can_hold_is_refused<H: Harness>(harness: &H) {
    let (case, topic) = Case::with_topic(harness).await;
    let huge = format!("{:?}", "x".repeat(MAX_RECORD_BYTES));
    let mut batch = Batch::new();
    batch.publish(&topic, &plain("1"));
    batch.publish(&topic, &plain(&huge));
    let refused = case.store.commit(batch).await;
    let limit = LimitReached {
        name: "max_record_bytes",
        limit: MAX_RECORD_BYTES as u64,
    };
    assert_eq!(refused, Err(CommitError::LimitReached(limit.clone())));

    let put = Change::Put {
        key: "k".into(),
        value: vec![b'x'; MAX_RECORD_BYTES].into(),
        expect: Expect::Any,
    };
    let attributes = "x".repeat(MAX_RECORD_BYTES);
    let put_topic = Change::PutTopic {
        topic: "other".into(),
        options: TopicOptions {
            attributes,
            ..TopicOptions::default()
        },
        if_exists: IfExists::Replace,
    };
    for change in [put, put_topic] {
        let refused = case.change(change).await;
        assert_eq!(refused, Err(CommitError::LimitReached(limit.clone())));
    }
    assert_eq!(case.store(&topic, &plain("2")).await.seq, 1);
    let case = case.reopen().await;
    assert_eq!(payloads(&case.all(&topic).await), ["2"]);
    assert!(case.store.topic("other").is_none());
    let keyed = case.store.get("k").await;
    assert_eq!(keyed.expect("an answer"), None);
}
