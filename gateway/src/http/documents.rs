//! What is served about the server itself: metrics and the OpenAPI document.

use super::call::Call;
use super::reply;
use crate::auth::{Action, Coverage};
use crate::denied::Denied;
use crate::gateway::Gateway;
use crate::metrics::{CONTENT_TYPE, GroupSample, StoreSample};
use axum::body::Body;
use axum::http::HeaderValue;
use axum::response::Response;
use prombus::{GroupInfo, Pattern};
use prombus_api::{Code, openapi};

/// Groups that were made for one subscription and are gone with it are not worth a series.
const EPHEMERAL: &str = "ephemeral:";

pub(super) async fn openapi(_: Call) -> Result<Response, Denied> {
    Ok(reply::json(&openapi::document()))
}

/// Metrics name every topic and group, so they are for those who may read or administer everything.
pub(super) async fn metrics(call: Call) -> Result<Response, Denied> {
    let everything = Pattern::for_topics("**");
    let covers = |action| {
        let all = everything.as_ref().ok();
        all.is_some_and(|all| call.grant.policy.covers(action, all, None) == Coverage::All)
    };
    if !covers(Action::Subscribe) && !covers(Action::Admin) {
        let why = "metrics need a token that may read or administer all topics";
        return Err(Denied::new(Code::Forbidden, why));
    }
    let gateway = call.gateway();
    sample(gateway).await;
    let text = gateway.metrics.render();
    let content_type = HeaderValue::from_static(CONTENT_TYPE);
    Ok(reply::typed(content_type, Body::from(text)))
}

/// Takes over what the bus and the store know themselves. A group that cannot be asked keeps its last figures.
async fn sample(gateway: &Gateway) {
    let status = gateway.bus.store().status();
    gateway.metrics.sample_store(StoreSample {
        bytes: status.bytes,
        syncs: status.syncs,
        sync_micros: status.sync_micros,
        damage: status.damage_count,
    });
    let unwritten = gateway.bus.unwritten_groups();
    gateway.metrics.sample_group_writes(unwritten.failures);
    let mut samples = Vec::new();
    for topic in gateway.bus.topics() {
        for info in gateway.bus.groups(&topic.name).await.unwrap_or_default() {
            if !info.group.starts_with(EPHEMERAL) {
                let sample = group_sample(gateway, &info).await;
                samples.push((info.topic, info.group, sample));
            }
        }
    }
    let samples = samples
        .iter()
        .map(|(topic, group, sample)| (&**topic, &**group, *sample));
    gateway.metrics.sample_groups(samples);
}

async fn group_sample(gateway: &Gateway, info: &GroupInfo) -> GroupSample {
    let age_ms = match info.lag {
        0 => Ok(0),
        _ => {
            let lag = gateway.bus.lag(&info.topic, &info.group).await;
            lag.map(|lag| lag.lag_ms)
        }
    };
    GroupSample {
        redelivered: info.counts.redelivered,
        dead_lettered: info.counts.dead_lettered,
        lag: info.lag,
        oldest_unacked_ms: age_ms.unwrap_or(0),
    }
}
