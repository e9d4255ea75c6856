//! The task that reads the server's figures at fixed intervals.

use super::{Counts, GroupReading, HISTORY_INTERVAL_MS, Reading, SLOT_SAMPLES, TopicReading};
use crate::gateway::Gateway;
use crate::limits::Limit;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

/// With more groups than this they are read once a slot, because reading copies something of each.
const GROUPS_READ_EACH_TIME: usize = 2_000;

/// Takes samples until the server stops.
pub(crate) async fn record(gateway: Arc<Gateway>) {
    let mut ticks = tokio::time::interval(Duration::from_millis(HISTORY_INTERVAL_MS));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut group_count = 0;
    for turn in 0_u64.. {
        tokio::select! {
            biased;
            () = gateway.drained() => return,
            _ = ticks.tick() => {}
        }
        let mut groups = None;
        if group_count <= GROUPS_READ_EACH_TIME || turn.is_multiple_of(SLOT_SAMPLES) {
            // Groups that cannot be read now stay as they were.
            groups = read_groups(&gateway).await;
            group_count = groups.as_ref().map_or(group_count, Vec::len);
        }
        gateway.history.take(read(&gateway, groups));
    }
}

fn read(gateway: &Gateway, groups: Option<Vec<GroupReading>>) -> Reading {
    let store = gateway.bus.store();
    let topics = gateway.bus.topics().into_iter().map(|info| TopicReading {
        topic: info.name,
        incarnation: info.incarnation,
        tail_seq: info.tail_seq,
    });
    let limited = Limit::ALL.map(|limit| gateway.metrics.rate_limited(limit).get());
    Reading {
        now_ms: gateway.now_ms(),
        topics: topics.collect(),
        groups,
        rate_limited: limited.iter().sum(),
        connections: u64::try_from(gateway.metrics.connections.get()).unwrap_or(0),
        store_bytes: store.status().bytes,
        syncs: store.sync_times(),
    }
}

async fn read_groups(gateway: &Gateway) -> Option<Vec<GroupReading>> {
    let samples = gateway.bus.group_metrics().await.ok()?;
    let readings = samples.into_iter().map(|sample| GroupReading {
        topic: sample.topic,
        group: sample.group,
        is_ephemeral: sample.is_ephemeral,
        counts: Counts {
            delivered: sample.counts.delivered,
            acked: sample.counts.acked,
            nacked: sample.counts.nacked,
            redelivered: sample.counts.redelivered,
            dead_lettered: sample.counts.dead_lettered,
        },
        lag: sample.lag,
    });
    Some(readings.collect())
}
