//! `GET /status` and `GET /access`: the server in short, and what the caller may do.

use super::call::Call;
use super::message::Response;
use super::reply;
use crate::api_error::ApiError;
use crate::auth::{Action, Coverage};
use prombus::{Pattern, ProjectorInfo, check_group};
use prombus_api::Code;
use prombus_api::http::{
    Access, Allowed, ProjectorSummary, ServerStatus, SharedLogSummary, StoreSummary,
};

/// All topics there are or will be.
const EVERYTHING: &str = "**";

pub(super) async fn status(call: Call) -> Result<Response, ApiError> {
    let gateway = call.gateway();
    let sees_everything = sees_everything(&call);
    let projectors = if sees_everything {
        gateway.bus.projectors()
    } else {
        Vec::new()
    };
    Ok(reply::json(&ServerStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now_ms: gateway.now_ms(),
        started_ms: gateway.started_ms,
        requires_token: !gateway.auth.is_off(),
        max_payload_bytes: gateway.options.limits.max_payload_bytes as u64,
        access: access_to(&call, EVERYTHING, None)?,
        store: sees_everything.then(|| store(&call)),
        projectors: projectors.into_iter().map(projector).collect(),
    }))
}

pub(super) async fn access(call: Call) -> Result<Response, ApiError> {
    let query = call.query()?;
    let (topic, group) = (query.get("topic"), query.get("group"));
    if let Some(group) = group {
        check_group(group).map_err(|error| ApiError::new(Code::BadGroup, error.to_string()))?;
    }
    let access = access_to(&call, topic.unwrap_or(EVERYTHING), group)?;
    Ok(reply::json(&access))
}

/// Whether the caller may read or administer all topics, and so may know what happens in all of them.
pub(super) fn sees_everything(call: &Call) -> bool {
    let Ok(everything) = Pattern::for_topics(EVERYTHING) else {
        return false;
    };
    let policy = &call.grant.policy;
    let covers = |action| policy.covers(action, &everything, None) == Coverage::All;
    covers(Action::Subscribe) || covers(Action::Admin)
}

/// Rejects callers that may not know what happens in all topics.
pub(super) fn allow_everything(call: &Call, what: &str) -> Result<(), ApiError> {
    if sees_everything(call) {
        Ok(())
    } else {
        let why = format!("{what} needs a token that may read or administer all topics");
        Err(ApiError::new(Code::Forbidden, why))
    }
}

fn access_to(call: &Call, topics: &str, group: Option<&str>) -> Result<Access, ApiError> {
    let pattern = Pattern::for_topics(topics)
        .map_err(|error| ApiError::new(Code::BadTopic, error.to_string()))?;
    let grant = &call.grant;
    let allowed = |action| match grant.policy.covers(action, &pattern, group) {
        Coverage::All => Allowed::All,
        Coverage::Part => Allowed::Part,
        Coverage::Nothing => Allowed::Nothing,
    };
    Ok(Access {
        subject: grant.subject.as_deref().map(str::to_owned),
        expires_ms: grant.expires_at_ms,
        publish: allowed(Action::Publish),
        subscribe: allowed(Action::Subscribe),
        admin: allowed(Action::Admin),
    })
}

fn projector(info: ProjectorInfo) -> ProjectorSummary {
    let status = info.status;
    ProjectorSummary {
        name: info.name.to_string(),
        input: info.input.to_string(),
        output: info.output.to_string(),
        position: status.position,
        lag: status.lag,
        emitted: status.emitted,
        rejected: status.rejected,
        last_rejection: status.last_rejection.as_deref().map(str::to_owned),
        standby: status.is_standby,
        error: status.last_error.as_deref().map(str::to_owned),
    }
}

fn store(call: &Call) -> StoreSummary {
    let store = call.gateway().bus.store();
    let status = store.status();
    StoreSummary {
        url: status.url,
        durability: status.durability,
        bytes: status.bytes,
        topics: call.gateway().bus.topics().len() as u64,
        damage: status.damage_count,
        failed: status.failed.map(|cause| cause.to_string()),
        shared_log: status.copy.map(|copy| SharedLogSummary {
            first: copy.first,
            last: copy.last,
            applied: copy.applied,
            bytes: copy.log_bytes,
            snapshot: copy.snapshot,
            snapshot_ms: copy.snapshot_at_ms,
            bytes_since_snapshot: copy.bytes_since_snapshot,
        }),
    }
}
