//! Adding rows, also as other programs do it.

use super::*;
use crate::error::OutboxError;

#[test]
fn a_row_is_there_only_if_the_transaction_commits() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut connection = outbox(&folder.path().join("a.db"));
    connection
        .execute_batch("CREATE TABLE orders (id INTEGER)")
        .expect("a table");
    for commits in [false, true] {
        let transaction = connection.transaction().expect("a transaction");
        transaction
            .execute("INSERT INTO orders VALUES (1)", [])
            .expect("a row");
        add(&transaction, "1", None);
        if commits {
            transaction.commit().expect("it commits");
        }
    }
    assert_eq!(Outbox::counts(&connection).expect("counts").pending, 1);
}

#[test]
fn ids_are_made_or_given_and_stand_once_per_topic() {
    let connection = outbox(Path::new(":memory:"));
    let made = add(&connection, "1", None);
    assert_eq!(made.len(), 32);
    assert_ne!(made, add(&connection, "1", None));
    let options = PublishOptions {
        id: Some("mine"),
        ..PublishOptions::default()
    };
    Outbox::add(&connection, TOPIC, "1", &options).expect("added");
    Outbox::add(&connection, "other", "1", &options).expect("another topic");
    let again = Outbox::add(&connection, TOPIC, "2", &options);
    assert!(matches!(again, Err(AddError::IdTaken { .. })), "{again:?}");
}

#[test]
fn what_can_be_seen_to_be_wrong_is_refused_at_once() {
    let connection = outbox(Path::new(":memory:"));
    let plain = PublishOptions::default();
    let bad_id = PublishOptions {
        id: Some("ä"),
        ..plain
    };
    assert!(matches!(
        Outbox::add(&connection, "no topic", "1", &plain),
        Err(AddError::InvalidTopic(_))
    ));
    assert!(matches!(
        Outbox::add(&connection, TOPIC, "{", &plain),
        Err(AddError::InvalidJson(_))
    ));
    assert!(matches!(
        Outbox::add(&connection, TOPIC, "1", &bad_id),
        Err(AddError::InvalidField(_))
    ));
    let empty = Connection::open_in_memory().expect("a database");
    assert!(matches!(
        Outbox::add(&empty, TOPIC, "1", &plain),
        Err(AddError::Outbox(OutboxError::NoOutbox))
    ));
    let options = DrainerOptions::new("w");
    let clock = Arc::new(ManualClock::at(0));
    assert!(matches!(
        Outbox::drainer(empty, options, clock),
        Err(OutboxError::NoOutbox)
    ));
}

#[tokio::test]
async fn everything_a_publisher_may_say_arrives() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db");
    let headers = [
        ("x-b".to_owned(), "2".to_owned()),
        ("x-a".to_owned(), "1".to_owned()),
    ];
    let (tags, causes) = (["#new".to_owned()], ["cause".to_owned()]);
    let options = PublishOptions {
        id: Some("own"),
        ts: Some(5),
        key: Some("k"),
        headers: &headers,
        tags: &tags,
        caused_by: &causes,
        sid: Some("boot"),
        ..PublishOptions::default()
    };
    Outbox::add_value(&outbox(&path), TOPIC, &[1, 2], &options).expect("added");
    let bus = bus();
    let clock = Arc::new(ManualClock::at(9));
    let drained = drainer(&path, "w", &clock)
        .drain(&bus)
        .await
        .expect("drained");
    assert_eq!((drained.sent, drained.duplicates), (1, 0));
    let limit = ReadLimit {
        events: 1,
        bytes: 1,
    };
    let page = bus
        .store()
        .read(&TOPIC.into(), ReadFrom::Seq(1), limit)
        .await
        .expect("a page");
    assert_eq!(
        page.events[0].json(),
        r##"{"id":"own","sid":"boot","ts":5,"topic":"orders.made","seq":1,"key":"k","headers":{"x-a":"1","x-b":"2"},"payload":[1,2],"caused_by":["cause"],"tags":["#new"]}"##
    );
}

#[tokio::test]
async fn rows_that_other_programs_wrote_badly_are_given_up_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.db");
    let connection = outbox(&path);
    connection
        .execute_batch(
            "INSERT INTO prombus_outbox (id, topic, payload) VALUES ('good', 'orders.made', '{\"n\": 1}');
             INSERT INTO prombus_outbox (id, topic, payload) VALUES ('no-json', 'orders.made', '{');
             INSERT INTO prombus_outbox (id, topic, payload) VALUES ('no-topic', 'a b', '1');
             INSERT INTO prombus_outbox (id, topic, payload, headers) VALUES ('no-headers', 't', '1', '[');
             INSERT INTO prombus_outbox (id, topic, payload, ts) VALUES ('no-ts', 't', '1', -1);
             INSERT INTO prombus_outbox (id, topic, payload) VALUES ('blob', 't', x'00ff');",
        )
        .expect("rows");
    let clock = Arc::new(ManualClock::at(9));
    let bus = bus();
    let drained = drainer(&path, "w", &clock)
        .drain(&bus)
        .await
        .expect("drained");
    assert_eq!((drained.sent, drained.retried, drained.failed), (1, 0, 5));
    for (id, why) in [
        ("no-json", "bad_json"),
        ("no-topic", "bad_topic"),
        ("no-headers", "headers"),
        ("no-ts", "negative"),
        ("blob", "payload"),
    ] {
        let (state, _, error) = state(&connection, id);
        let error = error.unwrap_or_default();
        assert!(
            state == "failed" && error.contains(why),
            "{id}: {state} {error}"
        );
    }
    assert_eq!(
        stored(&bus).await,
        [("good".to_owned(), r#"{"n":1}"#.to_owned())]
    );
}
