//! `POST /publish/:topic`: the body is the payload, with NDJSON a payload on each line, or CloudEvents.

use super::bulk;
use super::call::Call;
use super::cloudevents;
use super::message::Response;
use super::reply;
use crate::also_publish::{self, Versions};
use crate::api_error::ApiError;
use crate::auth::Action;
use crate::cloudevents::mode_of;
use crate::gateway::Gateway;
use crate::to_bus::{to_bus_publish_options, to_bus_schedule};
use hyper::{HeaderMap, header};
use prombus::error::PublishError;
use prombus::{Durability, Published, check_topic};
use prombus_api::Code;
use prombus_api::http::{
    Body, Envelope, PublishReply, ScheduleReply, is_event_header, publish_query,
};
use prombus_api::options::PublishOptions as WireOptions;
use std::borrow::Cow;
use std::sync::Arc;

const IDEMPOTENCY_KEY: &str = "idempotency-key";

pub(super) async fn publish(mut call: Call) -> Result<Response, ApiError> {
    call.allow(Action::Publish, &call.topic, None)?;
    if is_ndjson(&call.parts.headers) {
        return bulk::publish(call).await;
    }
    if let Some(mode) = mode_of(&call.parts.headers)? {
        let topic = call.topic.clone();
        return cloudevents::publish_events(call, mode, Some(topic)).await;
    }
    let is_envelope = call.query()?.flag("envelope")?.unwrap_or(false);
    let limits = &call.gateway().options.limits;
    let limit = if is_envelope {
        limits.max_message_bytes
    } else {
        limits.max_payload_bytes
    };
    let body = call.whole_body(limit).await?;
    let query = call.query()?;
    let options = WireOptions {
        headers: event_headers(&call.parts.headers)?,
        ..publish_query(&query)?
    };
    let options = with_idempotency_key(options, &call.parts.headers)?;
    let options = with_if_match(options, &call.parts.headers)?;
    if is_envelope {
        let envelope = Envelope::parse(&body)?;
        let options = envelope.options.or(&options);
        return publish_one(&call, envelope.payload, &options).await;
    }
    let payload = std::str::from_utf8(&body)
        .map_err(|_| ApiError::new(Code::BadJson, "payload is not UTF-8"))?;
    publish_one(&call, payload, &options).await
}

async fn publish_one(
    call: &Call,
    payload: &str,
    options: &WireOptions<'_>,
) -> Result<Response, ApiError> {
    let gateway = call.gateway();
    if !options.also_publish.is_empty() {
        return publish_versions(call, payload, options).await;
    }
    call.connection.publish(&call.topic, 1)?;
    if options.is_scheduled() {
        return schedule(call, &call.topic, payload, options).await;
    }
    let published = store_one(gateway, &call.topic, payload, options).await?;
    if !published.duplicate {
        gateway.metrics.topic(&call.topic).published.increment();
    }
    Ok(reply::json(&published_reply(
        gateway,
        &call.topic,
        &published,
    )))
}

/// Stores an event.
pub(super) async fn store_one(
    gateway: &Gateway,
    topic: &str,
    payload: &str,
    options: &WireOptions<'_>,
) -> Result<Published, PublishError> {
    #[cfg(feature = "otlp")]
    let span = gateway
        .options
        .spans
        .as_ref()
        .and_then(|spans| spans.publishing(topic, &options.headers, gateway.now_ms()));
    let bus_options = to_bus_publish_options(options);
    let published = gateway.bus.publish_text(topic, payload, &bus_options).await;
    #[cfg(feature = "otlp")]
    match (span, &published) {
        (Some(span), Ok(published)) => {
            span.published(published.id.as_str(), published.seq, gateway.now_ms());
        }
        (Some(span), Err(error)) => span.failed(error, gateway.now_ms()),
        (None, _) => {}
    }
    published
}

/// Stores an event with its other versions.
async fn publish_versions(
    call: &Call,
    payload: &str,
    options: &WireOptions<'_>,
) -> Result<Response, ApiError> {
    let mut topics = Vec::with_capacity(options.also_publish.len());
    for also in &options.also_publish {
        check_topic(&also.topic).map_err(PublishError::from)?;
        call.allow(Action::Publish, &also.topic, None)?;
        topics.push(Arc::from(&*also.topic));
    }
    also_publish::check(options)?;
    let topic: Arc<str> = Arc::from(&*call.topic);
    for topic in [&topic].into_iter().chain(&topics) {
        call.connection.publish(topic, 1)?;
    }
    let gateway = call.gateway();
    let versions = Versions::new(gateway, (topic, payload), options, topics);
    let stored = versions.publish(gateway).await?;
    let replies = stored
        .iter()
        .map(|(topic, published)| published_reply(gateway, topic, published));
    let mut replies = replies.collect::<Vec<PublishReply>>().into_iter();
    let first = replies.next().ok_or(PublishError::Closed)?;
    Ok(reply::json(&PublishReply {
        published: replies.collect(),
        ..first
    }))
}

/// Stores an event that is to be published later.
pub(super) async fn schedule(
    call: &Call,
    topic: &str,
    payload: &str,
    options: &WireOptions<'_>,
) -> Result<Response, ApiError> {
    let (event, when) = (to_bus_publish_options(options), to_bus_schedule(options));
    let bus = &call.gateway().bus;
    let scheduled = bus.schedule(topic, payload, &event, &when).await?;
    Ok(reply::json(&ScheduleReply {
        id: scheduled.id.to_string(),
        scheduled: true,
        due: scheduled.due,
        topic: topic.to_owned(),
        duplicate: scheduled.duplicate,
    }))
}

/// The headers of a request that become headers of the event. One that is sent twice is one with commas between, as
/// everywhere in HTTP.
pub(super) fn event_headers(headers: &HeaderMap) -> Result<Vec<(String, String)>, ApiError> {
    let mut found = Vec::new();
    for name in headers.keys().filter(|name| is_event_header(name.as_str())) {
        let values = headers.get_all(name).iter().map(|value| {
            std::str::from_utf8(value.as_bytes())
                .map_err(|_| ApiError::new(Code::BadFrame, format!("header {name}: must be UTF-8")))
        });
        let values: Vec<&str> = values.collect::<Result<_, ApiError>>()?;
        found.push((name.as_str().to_owned(), values.join(", ")));
    }
    Ok(found)
}

/// Whether the header that names the event is there.
pub(super) fn has_idempotency_key(headers: &HeaderMap) -> bool {
    headers.contains_key(IDEMPOTENCY_KEY)
}

fn with_idempotency_key<'a>(
    mut options: WireOptions<'a>,
    headers: &'a HeaderMap,
) -> Result<WireOptions<'a>, ApiError> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(options);
    };
    let bad = |reason: &str| ApiError::new(Code::BadFrame, format!("Idempotency-Key: {reason}"));
    let key = key.to_str().map_err(|_| bad("must be printable ASCII"))?;
    if options.id.as_deref().is_some_and(|id| id != key) {
        return Err(bad("the query has another id"));
    }
    options.id = Some(Cow::Borrowed(key));
    Ok(options)
}

/// Whether the request names the state that it is to be behind.
pub(super) fn has_if_match(headers: &HeaderMap) -> bool {
    headers.contains_key(header::IF_MATCH)
}

/// The header `If-Match` says which event of the key is expected to be the last one: by the entity tag of `/snap`, or by
/// its position alone.
pub(super) fn with_if_match<'a>(
    mut options: WireOptions<'a>,
    headers: &HeaderMap,
) -> Result<WireOptions<'a>, ApiError> {
    let Some(tag) = headers.get(header::IF_MATCH) else {
        return Ok(options);
    };
    let bad = |reason: &str| ApiError::new(Code::BadFrame, format!("If-Match: {reason}"));
    if options.key.is_none() {
        return Err(bad("the event has no key"));
    }
    let tag = tag.to_str().unwrap_or_default().trim();
    let tag = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
    // The tag of a state has the event's time behind the position.
    let seq = tag.and_then(|tag| match tag.split_once('-') {
        Some((seq, ts)) => ts.parse::<u64>().ok().and(seq.parse().ok()),
        None => tag.parse().ok(),
    });
    let seq: u64 =
        seq.ok_or_else(|| bad("expected one entity tag of /snap, or a seq in quotes"))?;
    if options
        .expect_key_seq
        .is_some_and(|expected| expected != seq)
    {
        return Err(bad("the query has another expect_key_seq"));
    }
    options.expect_key_seq = Some(seq);
    Ok(options)
}

fn is_ndjson(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let essence = content_type.and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| {
        let is = |name: &str| essence.trim().eq_ignore_ascii_case(name);
        is("application/x-ndjson") || is("application/ndjson")
    })
}

pub(super) fn published_reply(
    gateway: &Gateway,
    topic: &str,
    published: &Published,
) -> PublishReply {
    PublishReply {
        id: published.id.to_string(),
        seq: published.seq,
        ts: published.ts,
        duplicate: published.duplicate,
        durability: durability(gateway, topic),
        topic: topic.to_owned(),
        published: Vec::new(),
    }
}

/// What the reply promises: the topic's durability, or that there is none.
fn durability(gateway: &Gateway, topic: &str) -> String {
    let store = gateway.bus.store();
    if store.status().url == "memory:" {
        return "memory".to_owned();
    }
    let durability = store.topic(topic).map(|info| info.options.durability);
    match durability.unwrap_or_default() {
        Durability::Fsync => "fsync".to_owned(),
        Durability::Os => "os".to_owned(),
    }
}
