//! The log is away, loses answers, or is full.

use crate::support::{eventually, make_topic, node, payloads, publish, seq, try_node};
use prombus_replicated::OpenError;
use prombus_replicated::simulated::{Fault, SimulatedLog};
use prombus_store::{CommitError, Store};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn an_outage_fails_commits_and_leaves_reads_alone() {
    let log = SimulatedLog::new(1);
    let node = node(&log).await;
    make_topic(&node).await;
    publish(&node, "1").await.expect("a commit");
    log.set_away(true);
    let refused = publish(&node, "2").await;
    assert!(
        matches!(refused, Err(CommitError::Unknown { .. })),
        "{refused:?}"
    );
    let failed = node.status().failed.expect("not ready");
    assert!(
        failed.contains("has not acknowledged a commit for"),
        "{failed}"
    );
    // Nothing is taken in any more, so nobody waits.
    let began = tokio::time::Instant::now();
    let refused = publish(&node, "3").await;
    assert!(
        matches!(refused, Err(CommitError::Unavailable { .. })),
        "{refused:?}"
    );
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(payloads(&node).await, ["1"]);
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(node.status().failed.is_some());

    log.set_away(false);
    eventually("it is ready", || node.status().failed.is_none()).await;
    publish(&node, "4").await.expect("a commit");
    // What was sent has happened by now, once; what was refused has not.
    assert_eq!(payloads(&node).await, ["1", "2", "4"]);
}

#[tokio::test(start_paused = true)]
async fn an_idle_node_notices_an_outage_too() {
    let log = SimulatedLog::new(1);
    let node = node(&log).await;
    log.set_away(true);
    eventually("it is not ready", || node.status().failed.is_some()).await;
    log.set_away(false);
    eventually("it is ready", || node.status().failed.is_none()).await;
    make_topic(&node).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_does_not_open_without_the_log() {
    let log = SimulatedLog::new(1);
    log.set_away(true);
    let error = try_node(&log).await.err().expect("no log");
    assert!(matches!(error, OpenError::Unavailable(_)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_to_a_message_it_counts_once() {
    for fault in [
        Fault::LostAnswer,
        Fault::LostMessage,
        Fault::Twice,
        Fault::Late,
    ] {
        let log = SimulatedLog::new(1);
        let node = node(&log).await;
        make_topic(&node).await;
        log.plan([fault, Fault::None, fault, fault, Fault::None]);
        for number in 1..=9 {
            let receipt = publish(&node, &number.to_string()).await;
            assert_eq!(seq(&receipt.expect("a commit")), number, "{fault:?}");
        }
        let expected: Vec<String> = (1..=9).map(|number| number.to_string()).collect();
        assert_eq!(payloads(&node).await, expected, "{fault:?}");
        let another = crate::support::node(&log).await;
        assert_eq!(payloads(&another).await, expected, "{fault:?}");
        assert_eq!(
            another.replication().digest,
            node.replication().digest,
            "{fault:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_log_says_so_and_takes_commits_when_it_has_room() {
    let log = SimulatedLog::new(1);
    let node = node(&log).await;
    make_topic(&node).await;
    log.plan([Fault::Full, Fault::Full]);
    for _ in 0..2 {
        let refused = publish(&node, "1").await.expect_err("it is full");
        assert!(refused.to_string().contains("full"), "{refused}");
        let failed = node.status().failed.expect("not ready");
        assert!(failed.contains("full"), "{failed}");
    }
    publish(&node, "2").await.expect("there is room");
    assert_eq!(node.status().failed, None);
    assert_eq!(payloads(&node).await, ["2"]);
}

#[tokio::test(start_paused = true)]
async fn closing_in_an_outage_does_not_wait_for_ever() {
    let log = SimulatedLog::new(1);
    let node = node(&log).await;
    make_topic(&node).await;
    log.set_away(true);
    let under_way = publish(&node, "1");
    let (refused, closed) = tokio::join!(under_way, node.close());
    refused.expect_err("no acknowledgement");
    closed.expect("it closes");
    assert_eq!(publish(&node, "2").await, Err(CommitError::Closed));
}
