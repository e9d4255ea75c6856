//! CloudEvents in requests and replies: `POST /cloudevents`, the same bodies at `POST /publish/:topic`, and what every
//! route that gives events out shares.

use super::call::Call;
use super::events::event_by_id;
use super::message::Response;
use super::publish::{
    event_headers, has_idempotency_key, has_if_match, published_reply, schedule, store_one,
    with_if_match,
};
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use crate::batch_spans::BatchSpans;
use crate::cloudevents::{CloudEvent, Mode, SOURCE_HEADER, in_batch, is_tracing, mode_of};
use crate::to_bus::{check_no_own_commit, to_bus_publish_options};
use prombus::{EventFields, Published};
use prombus_api::Code;
use prombus_api::http::{BatchReply, publish_query};
use prombus_api::options::PublishOptions as WireOptions;
use std::collections::BTreeMap;

/// How much larger than its payload one event in JSON may be.
const ATTRIBUTES_BYTES: usize = 64 << 10;

/// An event with the topic it goes to.
struct Addressed<'a> {
    topic: String,
    payload: String,
    options: WireOptions<'a>,
}

/// `POST /cloudevents`: the query names the topic, else it is the type of each event.
pub(super) async fn publish(call: Call) -> Result<Response, ApiError> {
    let Some(mode) = mode_of(&call.parts.headers)? else {
        let message = "expected a CloudEvent: the header ce-specversion, or the content type \
                       application/cloudevents+json or application/cloudevents-batch+json";
        return Err(ApiError::new(Code::BadFrame, message));
    };
    let topic = call.query()?.get("topic").map(str::to_owned);
    publish_events(call, mode, topic).await
}

/// Publishes the events of a request, to one topic or each to that of its type. A batch is stored as a whole or not at
/// all, because clients look at the status alone.
pub(super) async fn publish_events(
    mut call: Call,
    mode: Mode,
    topic: Option<String>,
) -> Result<Response, ApiError> {
    let limits = &call.gateway().options.limits;
    let limit = match mode {
        Mode::Batched => limits.max_message_bytes,
        Mode::Binary | Mode::Structured => limits.max_payload_bytes + ATTRIBUTES_BYTES,
    };
    let body = call.whole_body(limit).await?;
    let events = CloudEvent::read(mode, &call.parts.headers, &body)?;
    let query = call.query()?;
    let mut shared = publish_query(&query)?;
    shared.headers = event_headers(&call.parts.headers)?;
    shared.headers.retain(|(name, _)| !is_tracing(name));
    if shared.id.is_some()
        || shared.key.is_some()
        || shared.ts.is_some()
        || has_idempotency_key(&call.parts.headers)
    {
        let message =
            "id, key, ts and Idempotency-Key: not allowed with CloudEvents, which have their own";
        return Err(ApiError::new(Code::BadFrame, message));
    }
    let mut addressed = Vec::with_capacity(events.len());
    for (at, event) in events.into_iter().enumerate() {
        let event = Addressed::new(event, topic.as_deref(), &shared);
        let allowed = call.allow(Action::Publish, &event.topic, None);
        allowed.map_err(|error| match mode {
            Mode::Batched => in_batch(at, error),
            Mode::Binary | Mode::Structured => error,
        })?;
        addressed.push(event);
    }
    match (mode, addressed.pop()) {
        (Mode::Binary | Mode::Structured, Some(event)) => one(&call, event).await,
        (_, last) => {
            addressed.extend(last);
            batch(&call, &shared, addressed).await
        }
    }
}

async fn one(call: &Call, event: Addressed<'_>) -> Result<Response, ApiError> {
    let Addressed {
        topic,
        payload,
        options,
    } = event;
    let options = with_if_match(options, &call.parts.headers)?;
    call.connection.publish(&topic, 1)?;
    if options.is_scheduled() {
        return schedule(call, &topic, &payload, &options).await;
    }
    let published = store_one(call.gateway(), &topic, &payload, &options).await?;
    check_source(call, &topic, &options, &published).await?;
    Ok(reply::json(&counted(call, &topic, &published)))
}

async fn batch(
    call: &Call,
    shared: &WireOptions<'_>,
    events: Vec<Addressed<'_>>,
) -> Result<Response, ApiError> {
    check_no_own_commit(shared)?;
    if shared.expect_seq.is_some()
        || shared.expect_key_seq.is_some()
        || has_if_match(&call.parts.headers)
    {
        let message = "expect_seq, expect_key_seq and If-Match: not allowed with a batch";
        return Err(ApiError::new(Code::BadFrame, message));
    }
    let mut by_topic: BTreeMap<&str, u32> = BTreeMap::new();
    for event in &events {
        *by_topic.entry(&event.topic).or_default() += 1;
    }
    for (topic, count) in by_topic {
        call.connection.publish(topic, count)?;
    }
    let gateway = call.gateway();
    let mut batch = gateway.bus.batch();
    let mut spans = BatchSpans::default();
    for event in &events {
        let options = to_bus_publish_options(&event.options);
        batch.add(&event.topic, &event.payload, &options);
        spans.add(gateway, &event.topic, &event.options.headers);
    }
    let stored = gateway.bus.publish_atomic(batch).await;
    spans.end_atomic(gateway, &stored);
    let stored = stored.map_err(|error| in_batch(error.at, error.error.into()))?;
    let mut reply = BatchReply::default();
    let mut conflict = None;
    for (at, (event, published)) in events.iter().zip(&stored).enumerate() {
        let checked = check_source(call, &event.topic, &event.options, published).await;
        if let Err(error) = checked {
            conflict.get_or_insert(in_batch(at, error));
        }
        reply.events.push(counted(call, &event.topic, published));
    }
    match conflict {
        Some(error) => Err(error),
        None => Ok(reply::json(&reply)),
    }
}

/// CloudEvents are told apart by source and id together, the events of a topic by their ids alone. So an event that
/// counts as published already may be another one, of another source, and must not be lost silently.
async fn check_source(
    call: &Call,
    topic: &str,
    options: &WireOptions<'_>,
    published: &Published,
) -> Result<(), ApiError> {
    if !published.duplicate {
        return Ok(());
    }
    let (store, id) = (call.gateway().bus.store(), published.id.to_string());
    let Some(stored) = event_by_id(&**store, &topic.into(), &id).await? else {
        return Ok(());
    };
    let stored = EventFields::of(&stored).headers.remove(SOURCE_HEADER);
    let mut own = options.headers.iter();
    let own = own.find(|(name, _)| name == SOURCE_HEADER);
    if stored.as_ref() == own.map(|(_, source)| source) {
        return Ok(());
    }
    let message = format!(
        "topic {topic} has an event {id:?} of another source; ids are unique within a topic"
    );
    Err(ApiError::new(Code::IdConflict, message))
}

/// Counts a stored event in the metrics, and gives its part of the reply.
fn counted(call: &Call, topic: &str, published: &Published) -> prombus_api::http::PublishReply {
    let gateway = call.gateway();
    if !published.duplicate {
        gateway.metrics.topic(topic).published.increment();
    }
    published_reply(gateway, topic, published)
}

impl<'a> Addressed<'a> {
    fn new(event: CloudEvent, topic: Option<&str>, shared: &WireOptions<'a>) -> Self {
        let CloudEvent {
            event_type,
            payload,
            options,
        } = event;
        let mut headers = options.headers;
        headers.extend(shared.headers.iter().cloned());
        Self {
            topic: topic.map_or(event_type, str::to_owned),
            payload,
            options: WireOptions {
                id: options.id,
                ts: options.ts,
                key: options.key,
                headers,
                ..shared.clone()
            },
        }
    }
}
