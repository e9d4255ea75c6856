//! `/topics`: what there is and how it is kept.

use super::call::Call;
use super::message::Response;
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use prombus::{Durability, TopicConfig, TopicInfo};
use prombus_api::http::{
    Age, Body as _, Durability as WireDurability, PageQuery, SnapshotReply,
    TopicConfig as WireConfig, TopicInfo as WireInfo, TopicList,
};

/// All topics that the caller may do something with.
pub(super) async fn list(call: Call) -> Result<Response, ApiError> {
    let wanted = PageQuery::parse(&call.query()?)?;
    if wanted.limit.is_some() {
        return super::pages::topics(&call, &wanted).await;
    }
    super::pages::check_topic_order(&wanted)?;
    let topics = call.gateway().bus.topics();
    let visible = topics.iter().filter(|info| call.may_see(&info.name));
    Ok(reply::json(&TopicList {
        topics: visible.map(wire_info).collect(),
    }))
}

pub(super) async fn get(call: Call) -> Result<Response, ApiError> {
    if !call.may_see(&call.topic) {
        return Err(super::call::forbidden(Action::Subscribe, &call.topic, None));
    }
    described(&call)
}

/// Makes a topic, or sets how it is kept. An empty body makes it with the defaults of every topic.
pub(super) async fn put(mut call: Call) -> Result<Response, ApiError> {
    call.allow(Action::Admin, &call.topic, None)?;
    let body = call.json().await?;
    let wanted = if body.trim_ascii().is_empty() {
        WireConfig::default()
    } else {
        WireConfig::parse(&body)?
    };
    let bus = &call.gateway().bus;
    // Snapshots are published there in the caller's name.
    if let Some(topic) = &wanted.snapshot_topic {
        call.allow(Action::Publish, topic, None)?;
    }
    let present = bus.topic(&call.topic).ok();
    let schema = match &wanted.schema {
        Some(mode) => Some(super::schemas::parse_mode(mode)?),
        // Older clients do not know it, and would take it away.
        None => present
            .as_ref()
            .and_then(|info| TopicConfig::of(info).schema),
    };
    let mut config = TopicConfig {
        schema,
        ..bus_config(wanted)
    };
    let is_forced = call.query()?.flag("force")?.unwrap_or(false);
    match present {
        Some(info) => {
            config.partitions = config.partitions.or(TopicConfig::of(&info).partitions);
            if is_forced {
                bus.repartition_topic(&call.topic, &config).await?
            } else {
                bus.configure_topic(&call.topic, &config).await?
            }
        }
        None => bus.create_topic(&call.topic, &config).await?,
    }
    described(&call)
}

pub(super) async fn delete(call: Call) -> Result<Response, ApiError> {
    call.allow(Action::Admin, &call.topic, None)?;
    let gateway = call.gateway();
    gateway.bus.delete_topic(&call.topic).await?;
    gateway.metrics.forget_topic(&call.topic);
    Ok(reply::nothing())
}

/// Forgets all events of a topic; positions go on.
pub(super) async fn purge(call: Call) -> Result<Response, ApiError> {
    call.allow(Action::Admin, &call.topic, None)?;
    call.gateway().bus.purge_topic(&call.topic).await?;
    described(&call)
}

/// Brings the snapshot of a topic up to date now.
pub(super) async fn snapshot(call: Call) -> Result<Response, ApiError> {
    call.allow(Action::Admin, &call.topic, None)?;
    let seq = call.gateway().bus.snapshot(&call.topic).await?;
    let topic = call.topic.to_string();
    Ok(reply::json(&SnapshotReply { topic, seq }))
}

fn described(call: &Call) -> Result<Response, ApiError> {
    let info = call.gateway().bus.topic(&call.topic)?;
    Ok(reply::json(&wire_info(&info)))
}

pub(super) fn wire_info(info: &TopicInfo) -> WireInfo {
    WireInfo {
        topic: info.name.to_string(),
        first_seq: info.first_seq,
        tail_seq: info.tail_seq,
        events: info.events,
        bytes: info.bytes,
        config: wire_config(TopicConfig::of(info)),
    }
}

fn wire_config(config: TopicConfig) -> WireConfig {
    let age = |ms| Age { ms };
    WireConfig {
        durability: match config.durability {
            Durability::Fsync => WireDurability::Fsync,
            Durability::Os => WireDurability::Os,
        },
        retention: config.retention_ms.map(age),
        max_bytes: config.max_bytes,
        max_events: config.max_events,
        compaction: config.compaction,
        snapshot_topic: config.snapshot_topic,
        snapshot_interval: config.snapshot_interval_ms.map(age),
        partitions: config.partitions,
        schema: config.schema.map(|mode| mode.to_string()),
    }
}

fn bus_config(config: WireConfig) -> TopicConfig {
    TopicConfig {
        durability: match config.durability {
            WireDurability::Fsync => Durability::Fsync,
            WireDurability::Os => Durability::Os,
        },
        retention_ms: config.retention.map(|age| age.ms),
        max_bytes: config.max_bytes,
        max_events: config.max_events,
        compaction: config.compaction,
        snapshot_topic: config.snapshot_topic,
        snapshot_interval_ms: config.snapshot_interval.map(|age| age.ms),
        partitions: config.partitions,
        schema: None,
    }
}
