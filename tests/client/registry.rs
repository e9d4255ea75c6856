//! Schemas, schedules, shadow groups, comparisons and searches through the client.

use super::*;
use prombus_client::{
    DiffQuery, FindBy, FindQuery, ListQuery, Pace, Schedule, SchedulesQuery, Shadow, TopicConfig,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemas_are_checked_registered_read_and_removed() {
    on_both(|server| async move {
        let client = server.client().await;
        let number = r#"{"type":"number"}"#;
        let registered = within(client.register_schema("t", number, Some("backward")))
            .await
            .unwrap();
        assert_eq!((registered.version, registered.unchanged), (1, false));
        let refused = within(client.publish("t", "text", &PLAIN)).await;
        assert_eq!(refused.unwrap_err().code(), "schema_invalid");
        within(client.publish("t", &1, &PLAIN)).await.unwrap();
        let text = r#"{"type":"string"}"#;
        let checked = within(client.check_schema("t", text, None)).await.unwrap();
        assert!(!checked.compatible);
        assert_eq!(checked.retained.unwrap().failing, 1);
        let refused = within(client.register_schema("t", text, None)).await;
        assert_eq!(refused.unwrap_err().code(), "schema_incompatible");
        let schemas = within(client.schemas("t")).await.unwrap();
        assert_eq!((schemas.latest, schemas.versions.len()), (1, 1));
        for version in [None, Some(1)] {
            let schema = within(client.schema("t", version)).await.unwrap();
            assert_eq!(
                (schema.version, schema.schema["type"].as_str()),
                (1, Some("number"))
            );
        }
        let missing = within(client.schema("t", Some(7))).await.unwrap_err();
        assert_eq!(missing.code(), "unknown_schema");
        assert_eq!(within(client.all_schemas()).await.unwrap()[0].topic, "t");
        within(client.remove_schema("t", None)).await.unwrap();
        let gone = within(client.schemas("t")).await.unwrap_err();
        assert_eq!(gone.code(), "unknown_schema");
        let odd = within(client.schemas("a/b")).await.unwrap_err();
        assert_eq!(odd.code(), "bad_request");
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedules_are_listed_and_removed() {
    on_both(|server| async move {
        let client = server.client().await;
        let id = "a/b?c";
        let later = PublishOptions {
            id: Some(id),
            extras: Schedule::after(3_600_000).into(),
            ..*PLAIN
        };
        let published = within(client.publish("t", &1, &later)).await.unwrap();
        assert_eq!((published.seq, published.due.is_some()), (0, true));
        let page = within(client.schedules(&SchedulesQuery::default()))
            .await
            .unwrap();
        assert_eq!(page.schedules.len(), 1);
        assert_eq!(page.schedules[0].id, id);
        let removed = within(client.unschedule(id)).await.unwrap();
        assert_eq!(removed.payload.get(), "1");
        let gone = within(client.unschedule(id)).await.unwrap_err();
        assert_eq!(gone.code(), "unknown_id");
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shadow_is_fed_a_stretch_again() {
    on_both(|server| async move {
        let client = server.client().await;
        for number in 0..6 {
            within(client.publish("t", &number, &PLAIN)).await.unwrap();
        }
        let original = within(client.subscribe("t", "g", earliest()))
            .await
            .unwrap();
        let shadow = Shadow {
            topic: "t".to_owned(),
            group: "g".to_owned(),
            start: Some(StartAt::Seq(2)),
            to: Some(4),
            pace: Some(Pace::Max),
            ttl: None,
        };
        let made = within(client.shadow_group(&shadow)).await.unwrap();
        assert_eq!((made.from_seq, made.to_seq), (2, Some(4)));
        let fed = within(client.subscribe("t", &made.group, earliest()))
            .await
            .unwrap();
        for seq in 2..=4 {
            let delivery = within(fed.next()).await.unwrap();
            assert_eq!((delivery.event.seq(), delivery.context.shadow), (seq, true));
            delivery.ack();
        }
        within(fed.unsubscribe()).await;
        assert_eq!(within(client.cursor("t", "g")).await.unwrap().last_seq, 0);
        drop(original);
        let error = within(client.cursor("t", "nobody")).await.unwrap_err();
        assert_eq!(error.code(), "unknown_group");
        assert!(within(client.nodes()).await.unwrap().is_empty());
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn states_are_compared() {
    on_both(|server| async move {
        let client = server.client().await;
        for (at, (key, ts)) in [("k", 1_000), ("k", 2_000), ("k2", 3_000)]
            .into_iter()
            .enumerate()
        {
            let options = PublishOptions {
                key: Some(key),
                ts: Some(ts),
                ..*PLAIN
            };
            within(client.publish("t", &at, &options)).await.unwrap();
        }
        for (at_ts, expected) in [(500, None), (1_500, Some(1)), (2_500, Some(2))] {
            let state = within(client.state_at("t", "k", at_ts)).await.unwrap();
            assert_eq!(state.map(|state| state.seq), expected, "at {at_ts}");
            let all = ListQuery::default();
            let table = within(client.table_at("t", at_ts, &all)).await;
            let table = table.unwrap().items;
            assert_eq!(table.first().map(|state| state.seq), expected, "at {at_ts}");
        }
        let query = DiffQuery {
            from: 1_500,
            to: Some(4_000),
            ..DiffQuery::default()
        };
        let diff = within(client.diff("t", &query)).await.unwrap();
        assert_eq!((diff.added.len(), diff.changed.len()), (1, 1));
        assert_eq!(diff.added[0].key, "k2");
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_found_by_header() {
    let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
    let gateway = GatewayOptions {
        index_headers: vec![("t".to_owned(), vec!["correlationId".to_owned()])],
        ..GatewayOptions::default()
    };
    let auth = Authenticator::off();
    let server = Running::start_with(store, auth, "127.0.0.1:0", gateway).await;
    let client = server.client().await;
    let headers = [("correlationId".to_owned(), "abc".to_owned())];
    for number in 0..3 {
        let options = PublishOptions {
            headers: if number == 1 { &headers } else { &[] },
            ..*PLAIN
        };
        within(client.publish("t", &number, &options))
            .await
            .unwrap();
    }
    let query = FindQuery {
        topic: "t".to_owned(),
        by: FindBy::Header {
            name: "correlationId".to_owned(),
            value: "abc".to_owned(),
        },
        after_seq: None,
        limit: None,
    };
    let found = within(client.find(&query)).await.unwrap();
    let seqs: Vec<u64> = found.events.iter().map(|event| event.seq()).collect();
    assert_eq!(seqs, [2]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_published_as_a_whole_or_not_at_all() {
    on_both(|server| async move {
        let client = server.client().await;
        let mut batch = client.batch();
        let own = PublishOptions {
            id: Some("first"),
            key: Some("k"),
            ..*PLAIN
        };
        batch
            .add("a", r#"{"n":1}"#, &own)
            .add_value("b", &2, &PLAIN);
        let stored = within(client.publish_atomic(batch)).await.unwrap();
        let places: Vec<u64> = stored.iter().map(|event| event.seq).collect();
        assert_eq!((places, stored[0].id.as_str()), (vec![1, 1], "first"));

        let behind = PublishOptions {
            expect_seq: Some(9),
            ..*PLAIN
        };
        let mut batch = client.batch();
        batch.add("a", "1", &PLAIN).add("b", "2", &behind);
        let refused = within(client.publish_atomic(batch)).await.unwrap_err();
        assert_eq!(refused.code(), "seq_mismatch");
        assert!(refused.to_string().contains("publish[1]"), "{refused}");
        assert_eq!(within(client.topic("a")).await.unwrap().tail_seq, 1);

        let mut batch = client.batch();
        batch.add("a", "{", &PLAIN);
        let refused = within(client.publish_atomic(batch)).await.unwrap_err();
        assert_eq!(refused.code(), "bad_json");
        let empty = within(client.publish_atomic(client.batch())).await;
        assert_eq!(empty.unwrap_err().code(), "bad_frame");

        let mut batch = client.batch();
        batch.add("a", r#"{"n":1}"#, &own);
        let again = within(client.publish_atomic(batch)).await.unwrap();
        assert!(again[0].duplicate);
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn snapshots_tombstones_and_partitions_are_as_in_process() {
    on_both(|server| async move {
        let client = server.client().await;
        let config = TopicConfig {
            snapshot_topic: Some("t.snapshot".to_owned()),
            partitions: Some(2),
            ..TopicConfig::default()
        };
        within(client.configure_topic("t", &config)).await.unwrap();
        let keyed = PublishOptions {
            key: Some("k"),
            ..*PLAIN
        };
        within(client.publish("t", &1, &keyed)).await.unwrap();
        assert_eq!(within(client.snapshot("t")).await.unwrap(), 1);
        assert!(within(client.topic("t.snapshot")).await.unwrap().tail_seq > 0);
        within(client.publish("u", &1, &PLAIN)).await.unwrap();
        let none = within(client.snapshot("u")).await.unwrap_err();
        assert_eq!(none.code(), "bad_frame");

        within(client.publish_text("t", "null", &keyed))
            .await
            .unwrap();
        assert!(within(client.latest("t", "k")).await.unwrap().is_none());
        let tombstone = within(client.latest_or_tombstone("t", "k")).await.unwrap();
        assert_eq!(tombstone.map(|event| event.seq()), Some(2));
        let unknown = within(client.latest_or_tombstone("t", "none")).await;
        assert!(unknown.unwrap().is_none());

        let more = TopicConfig {
            partitions: Some(3),
            ..config
        };
        assert!(within(client.configure_topic("t", &more)).await.is_err());
        within(client.repartition_topic("t", &more)).await.unwrap();
        let info = within(client.topic("t")).await.unwrap();
        assert_eq!(info.config.partitions, Some(3));
        server.stop().await;
    })
    .await;
}
