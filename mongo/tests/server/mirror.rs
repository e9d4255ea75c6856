//! The readable copy: the record as documents, cursors, indexes, retention, and one writer at a time.

use crate::lab::{Lab, eventually};
use mongodb::bson::{Bson, Document, doc};
use prombus::{PublishOptions, StartAt, SubscribeOptions, TopicConfig};
use prombus_mongo::{Mirror, MirrorOptions};

async fn mirror(lab: &Lab, holder: &str) -> Mirror {
    let options = MirrorOptions {
        poll_ms: 10,
        cursors_ms: 20,
        lease_ms: 300,
        ..MirrorOptions::new(holder)
    };
    let opened = Mirror::open(&lab.bus, &lab.database, options).await;
    opened.expect("a mirror")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_and_cursors_are_there_as_documents() {
    let lab = Lab::start().await;
    let config = TopicConfig {
        retention_ms: Some(60_000),
        ..TopicConfig::default()
    };
    let made = lab.bus.create_topic("orders", &config).await;
    made.expect("a topic");
    let headers = [("correlationId".to_owned(), "c-1".to_owned())];
    let options = PublishOptions {
        id: Some("one"),
        key: Some("anna"),
        headers: &headers,
        ..PublishOptions::default()
    };
    let payload = r#"{"total":12.50,"n":[1,2]}"#;
    let published = lab.bus.publish_text("orders", payload, &options).await;
    let published = published.expect("published");
    lab.publish("users", &[("a", "1"), ("b", "2"), ("c", "3")])
        .await;
    let mut mirror = mirror(&lab, "me").await;
    mirror.sync().await.expect("written");
    let events = lab.documents("events").await;
    assert_eq!(events.len(), 4);
    let one = &events[0];
    assert_eq!(one.get_str("_id").ok(), Some("orders/1"));
    assert_eq!(one.get_str("id").ok(), Some("one"));
    assert_eq!(one.get("ts"), Some(&Bson::Int64(published.ts as i64)));
    assert_eq!(one.get_str("raw").ok(), Some(payload));
    let total = one
        .get_document("payload")
        .and_then(|payload| payload.get_f64("total"));
    assert_eq!(total.ok(), Some(12.5));
    let expires = one
        .get_datetime("expireAt")
        .expect("a time")
        .timestamp_millis();
    assert_eq!(expires as u64, published.ts + 60_000);
    let collection = lab.database.collection::<Document>("events");
    let found = collection
        .find_one(doc! { "headers.correlationId": "c-1" })
        .await;
    assert!(found.expect("a query").is_some());
    let indexes = collection.list_index_names().await.expect("indexes");
    for name in ["topic_1_ts_1_id_1", "topic_1_key_1_ts_-1", "topic_1_id_1"] {
        assert!(indexes.contains(&name.to_owned()), "{indexes:?}");
    }

    // A group's cursor, and its end with the group.
    let options = SubscribeOptions {
        from: StartAt::Earliest,
        manual_ack: true,
        ..SubscribeOptions::default()
    };
    let subscription = lab
        .bus
        .subscribe("users", "g", options)
        .await
        .expect("joined");
    for _ in 0..2 {
        let delivery = subscription.next().await.expect("an event");
        delivery.ack_confirmed().await.expect("acknowledged");
    }
    mirror.sync().await.expect("written");
    let cursors = lab.documents("cursors").await;
    assert_eq!(cursors[0].get_str("_id").ok(), Some("users::g"));
    assert_eq!(cursors[0].get("lastSeq"), Some(&Bson::Int64(2)));
    let second = lab.events("users").await[1].id().into_owned();
    assert_eq!(cursors[0].get_str("lastId").ok(), Some(second.as_str()));
    drop(subscription);
    lab.bus.remove_group("users", "g").await.expect("removed");
    mirror.sync().await.expect("written");
    assert!(lab.documents("cursors").await.is_empty());

    // A topic that is made anew under its old name is another one.
    lab.bus.delete_topic("users").await.expect("deleted");
    lab.publish("users", &[("z", "9")]).await;
    mirror.sync().await.expect("written");
    let events = lab.documents("events").await;
    let ids: Vec<_> = events
        .iter()
        .map(|one| one.get_str("_id").expect("one"))
        .collect();
    assert_eq!(ids, ["orders/1", "users/1"]);
    assert_eq!(events[1].get_str("key").ok(), Some("z"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_process_mirrors_at_a_time_and_another_goes_on() {
    let lab = Lab::start().await;
    let mut running = Vec::new();
    for holder in ["one", "two"] {
        let mut mirror = mirror(&lab, holder).await;
        running.push(tokio::spawn(async move { mirror.run().await }));
    }
    let holder = async || {
        let leases = lab.documents("prombus_leases").await;
        let holder = leases
            .first()
            .and_then(|lease| lease.get_str("holder").ok());
        holder.map(str::to_owned)
    };
    lab.publish("t", &[("a", "1")]).await;
    eventually("the event is there", async || {
        lab.documents("events").await.len() == 1
    })
    .await;
    let first = holder().await.expect("a holder");
    let at = usize::from(first == "two");
    running[at].abort();
    lab.publish("t", &[("b", "2")]).await;
    eventually("the other one goes on", async || {
        lab.documents("events").await.len() == 2
    })
    .await;
    assert_ne!(holder().await.expect("a holder"), first);
    for task in running {
        task.abort();
    }
}
