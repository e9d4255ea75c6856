//! Commits that are larger than one message of the log.

use crate::support::{event, make_topic, node, payloads, records, seq};
use prombus_replicated::message::Message;
use prombus_replicated::simulated::{Fault, SimulatedLog};
use prombus_store::Store;

const MAX_MESSAGE_BYTES: usize = 1000;

fn large(letter: &str) -> String {
    format!("\"{}\"", letter.repeat(5000))
}

#[tokio::test(start_paused = true)]
async fn a_large_commit_goes_in_parts_and_takes_effect_with_the_last() {
    let log = SimulatedLog::with_max_message_bytes(1, MAX_MESSAGE_BYTES);
    let node = node(&log).await;
    make_topic(&node).await;
    node.commit(event(Some("a"), &large("a")))
        .await
        .expect("a commit");
    let entries = log.entries();
    assert!(entries.len() > 5);
    assert!(
        entries
            .iter()
            .all(|entry| entry.message.len() <= MAX_MESSAGE_BYTES)
    );
    for cut in 2..entries.len() {
        let shorter = SimulatedLog::new(1);
        let first = entries[..cut].iter();
        first.for_each(|entry| shorter.inject(entry.message.clone()));
        let late = crate::support::node(&shorter).await;
        assert_eq!(payloads(&late).await, [""; 0], "{cut} messages");
    }
}

#[tokio::test(start_paused = true)]
async fn parts_survive_lost_answers_and_mix_with_other_nodes() {
    let log = SimulatedLog::with_max_message_bytes(1, MAX_MESSAGE_BYTES);
    let (one, other) = (node(&log).await, node(&log).await);
    make_topic(&one).await;
    other.barrier().await.expect("caught up");
    log.set_delay(std::time::Duration::from_millis(1));
    use Fault::{Late, LostAnswer, LostMessage, None, Twice};
    log.plan([
        None,
        LostAnswer,
        None,
        Twice,
        LostMessage,
        Late,
        None,
        LostAnswer,
    ]);
    let (a, b) = (large("a"), large("b"));
    let (first, second) = tokio::join!(
        one.commit(event(Some("a"), &a)),
        other.commit(event(Some("b"), &b))
    );
    let mut seqs = [
        seq(&first.expect("a commit")),
        seq(&second.expect("a commit")),
    ];
    seqs.sort_unstable();
    assert_eq!(seqs, [1, 2]);
    for node in [&one, &other] {
        node.barrier().await.expect("caught up");
    }
    assert_eq!(records(&one).await, records(&other).await);
    assert_eq!(one.replication().digest, other.replication().digest);
    let third = node(&log).await;
    assert_eq!(records(&one).await, records(&third).await);
}

#[tokio::test(start_paused = true)]
async fn parts_of_a_node_that_died_stay_without_effect() {
    let log = SimulatedLog::with_max_message_bytes(1, MAX_MESSAGE_BYTES);
    let dying = node(&log).await;
    make_topic(&dying).await;
    log.set_delay(std::time::Duration::from_millis(10));
    let commit = dying.commit(event(None, &large("a")));
    tokio::select! {
        _ = commit => panic!("it needs longer"),
        () = tokio::time::sleep(std::time::Duration::from_millis(35)) => {}
    }
    dying.abort();
    let parts = log.entries().len() - 1;
    assert!((1..5).contains(&parts), "{parts} parts are stored");
    let node = node(&log).await;
    let receipt = node.commit(event(None, "1")).await.expect("a commit");
    assert_eq!(seq(&receipt), 1);
    assert_eq!(payloads(&node).await, ["1"]);
    let last = log.entries().pop().expect("a message");
    assert!(Message::decode(&last.message).is_ok());
}
