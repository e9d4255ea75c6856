//! What goes over HTTP: topics, groups, stored events, keys and dead letters, as on a bus in process.

use super::*;
use prombus_client::{GroupChange, ListQuery, Redrive, TopicConfig, WhichLetters};

const CONSUMER: &str = "billing";

fn keyed(key: &str) -> PublishOptions<'_> {
    PublishOptions {
        key: Some(key),
        ..*PLAIN
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_are_made_changed_and_removed() {
    on_both(|server| async move {
        let client = server.client().await;
        let config = TopicConfig {
            compaction: true,
            max_events: Some(5),
            ..TopicConfig::default()
        };
        within(client.configure_topic("orders", &config))
            .await
            .unwrap();
        let info = within(client.topic("orders")).await.unwrap();
        assert_eq!((info.config, info.tail_seq), (config, 0));
        within(client.publish("orders", &1, &PLAIN)).await.unwrap();
        within(client.purge_topic("orders")).await.unwrap();
        let info = within(client.topics()).await.unwrap().remove(0);
        assert_eq!((info.events, info.tail_seq), (0, 1));
        within(client.delete_topic("orders")).await.unwrap();
        let gone = within(client.topic("orders")).await.unwrap_err();
        assert_eq!(gone.code(), "unknown_topic");
        for odd in ["", "a/b", "victim#old", "a?b", "ü"] {
            let error = within(client.delete_topic(odd)).await.unwrap_err();
            assert_eq!(error.code(), "bad_request", "{odd}");
        }
        server.stop().await;
        let error = within(client.topics()).await.unwrap_err();
        assert_eq!(error.code(), "unreachable");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_are_explained_moved_changed_and_removed() {
    on_both(|server| async move {
        let client = server.client().await;
        for number in 0..5 {
            within(client.publish("t", &number, &PLAIN)).await.unwrap();
        }
        let subscription = within(client.subscribe("t", CONSUMER, earliest()))
            .await
            .unwrap();
        let seen = within(client.seek_dry_run("t", CONSUMER, StartAt::Seq(4))).await;
        assert_eq!(seen.unwrap().effect.cursor, 3);
        assert_eq!(within(client.lag("t", CONSUMER)).await.unwrap().lag, 5);
        let moved = within(client.seek("t", CONSUMER, StartAt::Seq(4))).await;
        assert_eq!(moved.unwrap().effect.skipped, 3);
        assert_eq!(within(client.cursors("t")).await.unwrap()[0].last_seq, 3);
        let undone = within(client.undo_seek("t", CONSUMER)).await;
        assert_eq!(undone.unwrap().effect.cursor, 0);
        let twice = within(client.undo_seek("t", CONSUMER)).await.unwrap_err();
        assert_eq!(twice.code(), "group_mismatch");
        within(client.seek("t", CONSUMER, StartAt::Seq(4)))
            .await
            .unwrap();
        let paused = within(client.pause_group("t", CONSUMER)).await.unwrap();
        assert!(paused.paused);
        let resumed = within(client.resume_group("t", CONSUMER)).await.unwrap();
        assert!(!resumed.paused);
        let unknown = within(client.pause_group("t", "nobody")).await.unwrap_err();
        assert_eq!(unknown.code(), "unknown_group");
        let explained = within(client.explain("t", CONSUMER)).await.unwrap();
        assert_eq!((explained.group.lag, explained.group.tail), (2, 5));
        let change = GroupChange {
            topic: "t".to_owned(),
            group: CONSUMER.to_owned(),
            max_attempts: Some(7),
            ordering: None,
            filter: None,
        };
        let changed = within(client.configure_group(&change)).await.unwrap();
        assert_eq!(changed.max_attempts, 7);
        assert_eq!(within(client.groups("t")).await.unwrap().len(), 1);
        drop(subscription);
        within(client.remove_group("t", CONSUMER)).await.unwrap();
        let gone = within(client.group("t", CONSUMER)).await.unwrap_err();
        assert_eq!(gone.code(), "unknown_group");
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_events_and_keys_are_read() {
    on_both(|server| async move {
        let client = server.client().await;
        for number in 0..6 {
            let key = format!("k{}", number % 3);
            let published = client.publish("t", &number, &keyed(&key));
            within(published).await.unwrap();
        }
        let page = within(client.replay("t", StartAt::Seq(2), 3))
            .await
            .unwrap();
        let seqs: Vec<u64> = page.events.iter().map(|event| event.seq()).collect();
        assert_eq!((seqs, page.next_seq), (vec![2, 3, 4], Some(5)));
        assert_eq!(page.events[0].value::<u64>().unwrap(), 1);
        assert_eq!(page.events[0].key(), Some("k1"));
        let latest = within(client.latest("t", "k1")).await.unwrap();
        assert_eq!(latest.map(|event| event.seq()), Some(5));
        assert!(within(client.latest("t", "none")).await.unwrap().is_none());
        let query = ListQuery {
            prefix: Some("k".to_owned()),
            limit: Some(2),
            ..ListQuery::default()
        };
        let table = within(client.list("t", &query)).await.unwrap();
        assert_eq!((table.total, table.items.len()), (3, 2));
        let mut loading = within(client.load_state("t")).await.unwrap();
        assert_eq!(loading.position(), 6);
        let mut keys = Vec::new();
        while let Some(events) = within(loading.next_page()).await.unwrap() {
            keys.extend(events.iter().map(|event| event.key().map(str::to_owned)));
        }
        let expected = ["k0", "k1", "k2"].map(|key| Some(key.to_owned()));
        assert_eq!(keys, expected);
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_letters_are_read_redriven_and_removed() {
    on_both(|server| async move {
        let client = server.client().await;
        within(client.publish("t", &1, &PLAIN)).await.unwrap();
        let options = SubscribeOptions {
            max_attempts: Some(1),
            ..earliest()
        };
        let subscription = within(client.subscribe("t", CONSUMER, options))
            .await
            .unwrap();
        let delivery = within(subscription.next()).await.unwrap();
        delivery.nack("it is broken");
        let mut letters = Vec::new();
        for _ in 0..600 {
            match within(client.dead_letters("t", StartAt::Earliest, 10)).await {
                Ok(page) if !page.events.is_empty() => {
                    letters = page.events;
                    break;
                }
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        assert_eq!(letters.len(), 1);
        assert!(letters[0].payload().contains("it is broken"));
        let mut redrive = Redrive {
            topic: "t".into(),
            ids: None,
            dry_run: true,
            rate: None,
            payload: None,
            force: false,
            to_all: false,
        };
        let tried = within(client.redrive(&redrive)).await.unwrap();
        assert_eq!((tried.dry_run, tried.matched), (true, 1));
        redrive.dry_run = false;
        assert_eq!(within(client.redrive(&redrive)).await.unwrap().redriven, 1);
        let again = within(subscription.next()).await.unwrap();
        assert_eq!(again.event.payload(), "1");
        again.ack();
        let removed = within(client.remove_dead_letters("t", WhichLetters::All)).await;
        assert_eq!(removed.unwrap().removed, 1);
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_show_the_token() {
    let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
    let auth = Authenticator::token(&Secret::new("open-sesame-open-sesame")).unwrap();
    let server = Running::start(store, auth, "127.0.0.1:0").await;
    let options = ClientOptions {
        token: "open-sesame-open-sesame".into(),
        ..ClientOptions::default()
    };
    let url = format!("ws://{}", server.address);
    let client = within(Client::connect(&url, options)).await.unwrap();
    assert!(within(client.topics()).await.unwrap().is_empty());
    server.stop().await;
}
