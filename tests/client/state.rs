//! Tables that are loaded and followed through the client: every change is in the table or follows, once.

use super::*;
use prombus_client::{Follow, FollowError};

fn keyed(key: &str) -> PublishOptions<'_> {
    PublishOptions {
        key: Some(key),
        ..*PLAIN
    }
}

/// Reads until position `last` has been read.
async fn follow_to(follow: &mut Follow, last: u64) -> Vec<u64> {
    let mut seqs = Vec::new();
    while follow.next_seq() <= last {
        let page = within(follow.next_page()).await.unwrap().unwrap();
        seqs.extend(page.events.iter().map(|event| event.seq()));
    }
    seqs
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_is_followed_in_order_and_at_its_tail() {
    on_both(|server| async move {
        let client = server.client().await;
        for number in 0..2_500 {
            drop(client.publish("t", &number, &PLAIN));
        }
        within(client.publish("t", &2_500, &PLAIN)).await.unwrap();
        let mut follow = within(client.follow("t", 2)).await.unwrap();
        assert!(!follow.is_caught_up());
        let seqs = follow_to(&mut follow, 2_501).await;
        assert_eq!(seqs, (2..=2_501).collect::<Vec<_>>());
        assert!(within(follow.read_on()).await.unwrap().is_none());
        assert!(follow.is_caught_up());
        // At the tail it waits, and letting go of the future loses nothing.
        let pause = Duration::from_millis(50);
        assert!(
            tokio::time::timeout(pause, follow.next_page())
                .await
                .is_err()
        );
        let publishing = client.clone();
        let publishing = tokio::spawn(async move {
            for number in 0..300 {
                within(publishing.publish("t", &number, &PLAIN))
                    .await
                    .unwrap();
            }
        });
        let seqs = follow_to(&mut follow, 2_801).await;
        assert_eq!(seqs, (2_502..=2_801).collect::<Vec<_>>());
        within(publishing).await.unwrap();
        for (from_seq, code) in [(0, "bad_request"), (2_803, "topic_replaced")] {
            let error = within(client.follow("t", from_seq)).await.unwrap_err();
            assert_eq!(error.code(), code);
        }
        let error = within(client.follow("none", 1)).await.unwrap_err();
        assert_eq!(error.code(), "unknown_topic");
        // Nothing of the waiting is left behind.
        within(async {
            while !client.groups("t").await.unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        let waiting = tokio::spawn(async move { follow.next_page().await });
        tokio::time::sleep(pause).await;
        within(client.close()).await.unwrap();
        assert!(within(waiting).await.unwrap().unwrap().is_none());
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_changes_while_it_is_loaded_is_followed_without_gap_or_repeat() {
    on_both(|server| async move {
        const KEYS: usize = 2_200;
        let client = server.client().await;
        for number in 0..KEYS {
            drop(client.publish("t", &number, &keyed(&format!("k{number:05}"))));
        }
        within(client.publish("t", &0, &keyed("a"))).await.unwrap();
        let mut loading = within(client.load_state("t")).await.unwrap();
        let position = loading.position();
        assert_eq!(position, KEYS as u64 + 1);
        let mut table = BTreeMap::new();
        let mut round = 0;
        while let Some(events) = within(loading.next_page()).await.unwrap() {
            for event in events {
                let key = event.key().unwrap().to_owned();
                assert!(table.insert(key, event.seq()).is_none());
            }
            // One key behind those that were read, one among them.
            round += 1;
            for key in ["k02199", "k00000"] {
                within(client.publish("t", &round, &keyed(key)))
                    .await
                    .unwrap();
            }
        }
        assert!(round >= 3, "it came in {round} pages");
        assert!(table["k02199"] > position, "it was read too early");
        let mut follow = loading.follow();
        let last = position + 2 * round;
        while follow.next_seq() <= last {
            let page = within(follow.next_page()).await.unwrap().unwrap();
            for event in page.events {
                let key = event.key().unwrap().to_owned();
                let before = table.insert(key, event.seq()).unwrap();
                assert!(before < event.seq(), "{event:?} came again");
            }
        }
        let mut latest = within(client.latest_by_key("t", &["k00000", "k02199"]))
            .await
            .unwrap();
        let last_of_key = latest.pop().unwrap();
        assert_eq!(table["k02199"], last_of_key.seq());
        assert_eq!(table["k00000"], latest.pop().unwrap().seq());
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_was_made_again_is_not_followed_any_further() {
    on_both(|server| async move {
        let client = server.client().await;
        for number in 0..5 {
            within(client.publish("t", &number, &PLAIN)).await.unwrap();
        }
        let mut follow = within(client.follow("t", 1)).await.unwrap();
        follow_to(&mut follow, 5).await;
        within(client.delete_topic("t")).await.unwrap();
        within(client.publish("t", &0, &PLAIN)).await.unwrap();
        let error = within(follow.next_page()).await.unwrap_err();
        assert!(matches!(error, FollowError::TopicReplaced(_)), "{error}");
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_of_the_server_does_not_end_a_follower() {
    let folder = tempfile::tempdir().unwrap();
    let server = Running::on_file(folder.path()).await;
    let address = server.address;
    let client = server.client().await;
    within(client.publish("t", &1, &PLAIN)).await.unwrap();
    let mut follow = within(client.follow("t", 1)).await.unwrap();
    follow_to(&mut follow, 1).await;
    let waiting = tokio::spawn(async move {
        let page = follow.next_page().await;
        page.map(|page| page.unwrap().events[0].seq())
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    server.stop().await;
    let store = Arc::new(FileStore::open(folder.path()).unwrap().0);
    let server = Running::start(store, Authenticator::off(), &address.to_string()).await;
    within(client.publish("t", &2, &PLAIN)).await.unwrap();
    assert_eq!(within(waiting).await.unwrap().unwrap(), 2);
    server.stop().await;
}
