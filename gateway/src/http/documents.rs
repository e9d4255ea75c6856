//! What is served about the server itself: metrics and the OpenAPI document.

use super::call::Call;
use super::message::{Body, Response};
use super::reply;
use crate::api_error::ApiError;
use crate::auth::{Action, Coverage};
use crate::gateway::Gateway;
use crate::metrics::{CONTENT_TYPE, CopySample, GroupSample, StoreSample};
use hyper::header::HeaderValue;
use prombus::Pattern;
use prombus_api::{Code, openapi};

pub(super) async fn openapi(_: Call) -> Result<Response, ApiError> {
    Ok(reply::json_text(openapi::TEXT))
}

/// Metrics name every topic and group, so they are for those who may read or administer everything.
pub(super) async fn metrics(call: Call) -> Result<Response, ApiError> {
    let everything = Pattern::for_topics("**");
    let covers = |action| {
        let all = everything.as_ref().ok();
        all.is_some_and(|all| call.grant.policy.covers(action, all, None) == Coverage::All)
    };
    if !covers(Action::Subscribe) && !covers(Action::Admin) {
        let message = "token may not read metrics; it must allow subscribe or admin on all topics";
        return Err(ApiError::new(Code::Forbidden, message));
    }
    let gateway = call.gateway();
    sample(gateway).await;
    let text = gateway.metrics.render();
    let content_type = HeaderValue::from_static(CONTENT_TYPE);
    Ok(reply::typed(content_type, Body::from(text)))
}

/// Samples the counts of the bus and the store.
async fn sample(gateway: &Gateway) {
    let status = gateway.bus.store().status();
    gateway.metrics.sample_store(StoreSample {
        bytes: status.bytes,
        syncs: status.syncs,
        sync_micros: status.sync_micros,
        damage: status.damage_count,
    });
    gateway
        .metrics
        .sample_copy(status.copy.map(|copy| CopySample {
            applied: copy.applied,
            first: copy.first,
            last: copy.last,
            log_bytes: copy.log_bytes,
            snapshot: copy.snapshot,
            snapshot_at_ms: copy.snapshot_at_ms,
            bytes_since_snapshot: copy.bytes_since_snapshot,
            round_trip_micros: copy.round_trip_micros,
        }));
    // They are published by the bus itself, so no other code has counted them.
    for (topic, count) in gateway.bus.take_scheduled_counts() {
        gateway.metrics.topic(&topic).published.add(count);
    }
    let unwritten = gateway.bus.unwritten_groups();
    gateway.metrics.sample_group_writes(unwritten.failures);
    let running = gateway.bus.running_groups() as u64;
    gateway.metrics.sample_running_groups(running);
    let memory = gateway.bus.delivery_memory();
    let (used, limit) = (memory.used_bytes() as u64, memory.limit_bytes() as u64);
    gateway.metrics.sample_delivery_memory(used, limit);
    let Ok(samples) = gateway.bus.group_metrics().await else {
        return;
    };
    let (ephemeral, durable): (Vec<_>, Vec<_>) =
        samples.iter().partition(|sample| sample.is_ephemeral);
    for sample in ephemeral {
        let (topic, group) = (&sample.topic, &sample.group);
        gateway
            .metrics
            .sample_ephemeral(topic, group, group_sample(sample));
    }
    let durable = durable
        .into_iter()
        .map(|sample| (&sample.topic, &sample.group, group_sample(sample)));
    gateway.metrics.sample_groups(durable);
}

fn group_sample(sample: &prombus::GroupMetrics) -> GroupSample {
    GroupSample {
        redelivered: sample.counts.redelivered,
        dead_lettered: sample.counts.dead_lettered,
        lag: sample.lag,
        oldest_unacked_ms: sample.oldest_unacked_ms,
        inflight: sample.counts.in_flight,
        partitions_held: sample.partitions_held.into(),
        partitions_unassigned: sample.partitions_unassigned.into(),
    }
}
