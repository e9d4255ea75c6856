//! A keyed topic as a collection: upserts, tombstones, versions, indexes, restarts, and two processes at once.

use crate::lab::Lab;
use mongodb::bson::{Bson, Document, doc};
use prombus::ReadLimit;
use prombus_mongo::error::ProjectError;
use prombus_mongo::{Applied, BusSource, Changelog, ChangelogOptions, Runner};

const TOPIC: &str = "users";

async fn catch_up(lab: &Lab, options: &ChangelogOptions) -> Result<Applied, ProjectError> {
    let changelog = Changelog::open(&lab.database, TOPIC, options).await?;
    let mut runner = Runner::new(changelog, BusSource::new(&lab.bus, TOPIC));
    runner.catch_up().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_become_documents_and_tombstones_remove_them() {
    let lab = Lab::start().await;
    let events = [
        ("anna", r#"{"city":"Graz","age":41}"#),
        ("bert", "1.0"),
        ("carl", "[1]"),
        ("anna", r#"{"city":"Linz"}"#),
        ("carl", "null"),
    ];
    lab.publish(TOPIC, &events).await;
    let options = ChangelogOptions {
        // More than one transaction.
        batch: ReadLimit {
            events: 2,
            bytes: 1 << 20,
        },
        ..ChangelogOptions::new("users")
    };
    let applied = catch_up(&lab, &options).await.expect("it catches up");
    assert_eq!((applied.events, applied.deletes), (5, 1));
    let found = lab.documents("users").await;
    let ids: Vec<_> = found
        .iter()
        .map(|one| one.get_str("_id").expect("one"))
        .collect();
    assert_eq!(ids, ["anna", "bert"]);
    let payload = found[0].get_document("payload").expect("a document");
    assert_eq!(payload, &doc! { "city": "Linz" });
    assert_eq!(found[0].get("seq"), Some(&Bson::Int64(4)));
    // The publisher's spelling is kept where BSON would lose it.
    assert_eq!(found[1].get_str("raw").ok(), Some("1.0"));
    // Another start goes on behind it.
    lab.publish(TOPIC, &[("dora", "4")]).await;
    let applied = catch_up(&lab, &options).await.expect("it goes on");
    assert_eq!((applied.events, applied.upserts), (1, 1));
    // A collection that was dropped is built anew.
    let users = lab.database.collection::<Document>("users");
    users.drop().await.expect("dropped");
    let applied = catch_up(&lab, &options).await.expect("built anew");
    assert_eq!(applied.events, 6);
    assert_eq!(lab.documents("users").await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_older_does_not_overwrite_what_is_newer() {
    let lab = Lab::start().await;
    let options = ChangelogOptions {
        columns: vec![
            "city=address.city:text".parse().expect("a column"),
            "rev".parse().expect("a column"),
        ],
        indexes: vec![vec!["city".to_owned()]],
        version: Some("rev".parse().expect("a version")),
        ..ChangelogOptions::new("users")
    };
    lab.publish(
        TOPIC,
        &[
            ("anna", r#"{"rev":2,"address":{"city":"Linz"}}"#),
            ("anna", r#"{"rev":1,"address":{"city":"Graz"}}"#),
        ],
    )
    .await;
    let applied = catch_up(&lab, &options).await.expect("it catches up");
    assert_eq!(applied.outdated, 1);
    // Also against what is in the collection already.
    lab.publish(TOPIC, &[("anna", r#"{"rev":1,"address":{"city":"Wien"}}"#)])
        .await;
    let applied = catch_up(&lab, &options).await.expect("it catches up");
    assert_eq!(applied.outdated, 1);
    let found = lab.documents("users").await;
    assert_eq!(found[0].get_str("city").ok(), Some("Linz"));
    let users = lab.database.collection::<Document>("users");
    let indexes = users.list_index_names().await.expect("indexes");
    assert!(indexes.contains(&"by_city".to_owned()), "{indexes:?}");
    // Another definition of the same collection is refused, and so is a collection of somebody else.
    let other = ChangelogOptions::new("users");
    let error = catch_up(&lab, &other).await.expect_err("another one");
    assert!(matches!(error, ProjectError::OtherDefinition(_)), "{error}");
    let theirs = lab.database.collection::<Document>("theirs");
    theirs.insert_one(doc! { "a": 1 }).await.expect("theirs");
    let error = catch_up(&lab, &ChangelogOptions::new("theirs")).await;
    let error = error.expect_err("not ours");
    assert!(
        matches!(error, ProjectError::CollectionMismatch(_)),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_of_the_same_projector_do_not_repeat_each_other() {
    let lab = Lab::start().await;
    for number in 0..40 {
        let key = format!("k{}", number % 5);
        let payload = number.to_string();
        lab.publish(TOPIC, &[(key.as_str(), payload.as_str())])
            .await;
    }
    let options = ChangelogOptions {
        batch: ReadLimit {
            events: 3,
            bytes: 1 << 20,
        },
        ..ChangelogOptions::new("users")
    };
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let changelog = Changelog::open(&lab.database, TOPIC, &options).await;
        let changelog = changelog.expect("a changelog");
        let mut runner = Runner::new(changelog, BusSource::new(&lab.bus, TOPIC));
        running.spawn(async move { runner.catch_up().await.expect("it catches up").events });
    }
    let events: u64 = running.join_all().await.into_iter().sum();
    assert_eq!(events, 40, "each event in one transaction");
    let found = lab.documents("users").await;
    let payloads: Vec<i64> = found
        .iter()
        .map(|one| {
            one.get_i64("payload")
                .or(one.get_i32("payload").map(i64::from))
        })
        .map(|number| number.expect("a number"))
        .collect();
    assert_eq!(payloads, [35, 36, 37, 38, 39]);
}
