//! Nodes whose wall clocks are hours apart: the time of events never goes back, and every copy has the same.

use crate::support::{TOPIC, make_topic, node_at, publish, records};
use prombus_replicated::simulated::SimulatedLog;
use prombus_store::{ManualClock, ReadFrom, ReadLimit, Store};
use std::sync::Arc;

const NOW_MS: u64 = 1_700_000_000_000;
const HOUR_MS: u64 = 3_600_000;

#[tokio::test(start_paused = true)]
async fn clocks_that_are_hours_apart_leave_one_order_and_equal_copies() {
    let log = SimulatedLog::new(7);
    let clocks =
        [NOW_MS, NOW_MS + HOUR_MS, NOW_MS - HOUR_MS].map(|ms| Arc::new(ManualClock::at(ms)));
    let mut nodes = Vec::new();
    for clock in &clocks {
        nodes.push(node_at(&log, clock.clone()).await);
    }
    make_topic(&nodes[0]).await;
    for round in 0..6 {
        for node in &nodes {
            publish(node, &round.to_string()).await.expect("stored");
        }
        if round == 3 {
            // Whoever looks after it sets it right.
            clocks[1].step(-(HOUR_MS as i64));
        }
    }
    nodes[1].barrier().await.expect("it hears the log");
    let expected = records(&nodes[1]).await;
    assert_eq!(expected.len(), 18);
    for node in &nodes {
        node.barrier().await.expect("it hears the log");
        assert_eq!(records(node).await, expected);
    }
    let limit = ReadLimit {
        events: 100,
        bytes: 1 << 20,
    };
    let page = nodes[2].read(&TOPIC.into(), ReadFrom::Seq(1), limit).await;
    let page = page.expect("a page");
    let times: Vec<u64> = page.events.iter().map(|event| event.ts()).collect();
    assert!(times.is_sorted(), "{times:?}");
    assert!(times.iter().all(|ts| *ts <= NOW_MS + HOUR_MS), "{times:?}");
}
