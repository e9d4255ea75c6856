//! Publishing: what is stored, what is answered, and what is refused.

use crate::support::*;
use prombus::error::{InvalidField, PublishError};
use prombus::{Bus, BusOptions, EventFields, Limits, PublishOptions};
use std::sync::atomic::Ordering;

#[tokio::test(start_paused = true)]
async fn an_event_is_stored_as_it_was_published() {
    let bus = bus();
    let headers = [("x-a".to_owned(), "1 \"quoted\"".to_owned())];
    let tags = ["#stt".to_owned()];
    let causes = ["cause-1".to_owned()];
    let options = PublishOptions {
        id: Some("my id"),
        ts: Some(5),
        key: Some("host:1"),
        headers: &headers,
        tags: &tags,
        caused_by: &causes,
        sid: Some("boot-1"),
        ..plain()
    };
    let payload = "{ \"b\": 1.50, \"a\" : \"\\u0041\" }";
    let published = bus
        .publish_text("a.b", payload, &options)
        .await
        .expect("it is good");
    assert_eq!(
        (published.id.as_str(), published.seq, published.ts),
        ("my id", 1, 5)
    );
    assert!(!published.duplicate);
    let events = read_all(&bus, "a.b").await;
    assert_eq!(
        events[0].json(),
        r##"{"id":"my id","sid":"boot-1","ts":5,"topic":"a.b","seq":1,"key":"host:1","headers":{"x-a":"1 \"quoted\""},"payload":{"b":1.50,"a":"\u0041"},"caused_by":["cause-1"],"tags":["#stt"]}"##
    );
    let fields = EventFields::of(&events[0]);
    assert_eq!(fields.headers["x-a"], "1 \"quoted\"");
    assert_eq!(
        (fields.tags, fields.sid.as_deref()),
        (tags.to_vec(), Some("boot-1"))
    );
}

#[tokio::test(start_paused = true)]
async fn ids_and_positions_rise_in_the_order_of_the_calls() {
    let bus = bus();
    // Not awaited before the next call: the order of the calls is what counts.
    let answers: Vec<_> = (0..10)
        .map(|number| bus.publish("t", &number, &plain()))
        .collect();
    let mut last = String::new();
    for (at, answer) in answers.into_iter().enumerate() {
        let published = answer.await.expect("it is stored");
        assert_eq!(published.seq, at as u64 + 1);
        assert_eq!(published.ts, START_MS);
        assert!(published.id.as_str() > last.as_str());
        last = published.id.as_str().to_owned();
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_is_stored_once() {
    let bus = bus();
    let options = PublishOptions {
        id: Some("a"),
        ..plain()
    };
    let first = bus.publish("t", &1, &options).await.expect("new");
    let again = bus
        .publish("t", &1, &options)
        .await
        .expect("a duplicate is fine");
    assert_eq!((again.id, again.seq, again.duplicate), (first.id, 1, true));
    let other = bus
        .publish("t", &2, &options)
        .await
        .expect_err("another payload");
    assert!(
        matches!(&other, PublishError::IdConflict(conflict) if conflict.seq == 1),
        "{other}"
    );
    assert_eq!(other.kind(), "IdConflict");
    assert_eq!(read_all(&bus, "t").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn each_event_of_a_batch_gets_its_own_result_with_one_commit() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options).expect("the options are good");
    publish_one(&bus, "one", 0).await;
    publish_one(&bus, "two", 0).await;
    let commits = store.commits.load(Ordering::SeqCst);
    let own = PublishOptions {
        id: Some("a"),
        ..plain()
    };
    let mut batch = bus.batch();
    batch.add("one", "1", &own);
    batch.add("one", "{", &plain());
    batch.add("two", "2", &plain());
    batch.add("no topic", "3", &plain());
    batch.add("one", "1", &own);
    batch.add("one", "9", &own);
    batch.add("two", "4", &plain());
    assert_eq!(batch.len(), 7);
    let results = bus.publish_batch(batch).await;
    let told: Vec<_> = results
        .iter()
        .map(|result| match result {
            Ok(published) => (published.seq.to_string(), published.duplicate),
            Err(error) => (error.kind().to_owned(), false),
        })
        .collect();
    let expected = [
        ("2", false),
        ("InvalidJson", false),
        ("2", false),
        ("InvalidTopic", false),
        ("2", true),
        ("IdConflict", false),
        ("3", false),
    ];
    assert_eq!(
        told,
        expected.map(|(text, duplicate)| (text.to_owned(), duplicate))
    );
    assert!(
        matches!(&results[5], Err(PublishError::IdConflict(conflict)) if &*conflict.topic == "one")
    );
    assert_eq!(store.commits.load(Ordering::SeqCst), commits + 1);
    assert!(bus.publish_batch(bus.batch()).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn null_and_deleted_are_tombstones() {
    let bus = bus();
    for payload in [
        "null",
        "{ \"_deleted\": true }",
        "{\"_deleted\":false}",
        "0",
    ] {
        bus.publish_text("t", payload, &key("k"))
            .await
            .expect("it is stored");
    }
    let tombstones: Vec<bool> = read_all(&bus, "t")
        .await
        .iter()
        .map(|event| event.is_tombstone())
        .collect();
    assert_eq!(tombstones, [true, true, false, false]);
}

/// The word for what is wrong with an event of these options.
async fn refusal(bus: &Bus, options: PublishOptions<'_>) -> &'static str {
    let refused = bus.publish("t", &1, &options).await;
    assert!(
        bus.store().topic("t").is_none(),
        "a refused event does not make its topic"
    );
    refused.expect_err("it is wrong").kind()
}

#[tokio::test(start_paused = true)]
async fn wrong_ids_times_keys_and_sids_are_refused() {
    let bus = bus();
    let long = "x".repeat(513);
    for id in ["", "ü", "tab\t", &long[..65]] {
        let id = Some(id);
        assert_eq!(
            refusal(&bus, PublishOptions { id, ..plain() }).await,
            "InvalidField"
        );
    }
    let ts = Some(1 << 53);
    assert_eq!(
        refusal(&bus, PublishOptions { ts, ..plain() }).await,
        "InvalidField"
    );
    let options = key(&long);
    assert_eq!(refusal(&bus, options).await, "TooLarge");
    for sid in ["", &long[..257]] {
        let sid = Some(sid);
        assert_eq!(
            refusal(&bus, PublishOptions { sid, ..plain() }).await,
            "InvalidField"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_headers_tags_and_causes_are_refused() {
    let bus = bus();
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let many = (0..65)
        .map(|number| header(&number.to_string(), ""))
        .collect();
    let cases: [(&str, Vec<(String, String)>); 4] = [
        ("TooLarge", many),
        ("TooLarge", vec![header("a", &"x".repeat(16 << 10))]),
        ("InvalidField", vec![header("", "1")]),
        ("InvalidField", vec![header("a", "1"), header("a", "2")]),
    ];
    for (code, headers) in &cases {
        assert_eq!(
            refusal(&bus, PublishOptions { headers, ..plain() }).await,
            *code
        );
    }
    let (too_many, too_long, empty) = (vec!["x".to_owned(); 65], "x".repeat(257), String::new());
    for items in [too_many, vec![too_long], vec![empty]] {
        let (tags, caused_by) = (&items, &items);
        assert_eq!(
            refusal(&bus, PublishOptions { tags, ..plain() }).await,
            "InvalidField"
        );
        assert_eq!(
            refusal(
                &bus,
                PublishOptions {
                    caused_by,
                    ..plain()
                }
            )
            .await,
            "InvalidField"
        );
    }
    let twice = bus.publish(
        "t",
        &1,
        &PublishOptions {
            headers: &cases[3].1,
            ..plain()
        },
    );
    assert_eq!(
        twice.await,
        Err(InvalidField::new("headers", "duplicate name \"a\"").into())
    );
}

#[tokio::test(start_paused = true)]
async fn wrong_payloads_and_topics_are_refused() {
    let bus = bus();
    for topic in ["", "a..b", "a b", "a*", &"x".repeat(250)] {
        let error = bus.publish(topic, &1, &plain()).await.expect_err(topic);
        assert_eq!(error.kind(), "InvalidTopic", "{error}");
    }
    let deep = format!("{}{}", "[".repeat(129), "]".repeat(129));
    for payload in ["", "{", "01", "\"\u{1}\"", "nul", "1 2", &deep] {
        let error = bus
            .publish_text("t", payload, &plain())
            .await
            .expect_err(payload);
        assert!(matches!(error, PublishError::InvalidJson(_)), "{error}");
    }
    let largest = format!("\"{}\"", "x".repeat((1 << 20) - 2));
    assert!(
        bus.publish_text("t", &format!(" {largest}\n"), &plain())
            .await
            .is_ok()
    );
    for larger in [
        format!("{largest}0"),
        format!("[{largest}]"),
        "x".repeat(3 << 20),
    ] {
        let error = bus
            .publish_text("t", &larger, &plain())
            .await
            .expect_err("too large");
        assert!(
            matches!(error.kind(), "TooLarge" | "InvalidJson"),
            "{}",
            error.kind()
        );
    }
    let over = format!("[{largest}]");
    let error = bus
        .publish_text("t", &over, &plain())
        .await
        .expect_err("too large");
    assert_eq!(error.kind(), "TooLarge");
    let unwritable = std::collections::HashMap::from([((1, 2), 3)]);
    let error = bus
        .publish("t", &unwritable, &plain())
        .await
        .expect_err("no JSON keys");
    assert!(matches!(error, PublishError::InvalidPayload(_)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn limits_are_options() {
    let (store, options) = store();
    let limits = Limits {
        max_payload_bytes: 5,
        ..Limits::default()
    };
    let bus = Bus::open(store, BusOptions { limits, ..options }).expect("the options are good");
    assert!(bus.publish_text("t", "12345", &plain()).await.is_ok());
    let error = bus
        .publish_text("t", "123456", &plain())
        .await
        .expect_err("one too many");
    assert_eq!(
        error.to_string(),
        "payload too large: 6 bytes, the limit is 5"
    );
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_says_so_and_recovers() {
    let (store, options) = store();
    let bus = Bus::open(store.clone(), options).expect("the options are good");
    publish_one(&bus, "t", 1).await;
    store.refuse_writes(true);
    let error = bus
        .publish("t", &2, &plain())
        .await
        .expect_err("the store fails");
    assert_eq!(error.kind(), "StoreFailed");
    assert!(error.to_string().contains("the test says so"), "{error}");
    assert!(bus.publish("new", &2, &plain()).await.is_err());
    store.refuse_writes(false);
    assert_eq!(publish_one(&bus, "t", 3).await.seq, 2);
    assert_eq!(publish_one(&bus, "new", 3).await.seq, 1);
}
