//! `POST /publish`: events, to one topic or several, that are stored as a whole or not at all.

use super::call::Call;
use super::message::Response;
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use crate::batch_spans::BatchSpans;
use crate::gateway::Gateway;
use crate::to_bus::{check_no_own_commit, to_bus_publish_options};
use prombus::Published;
use prombus_api::Code;
use prombus_api::frames::Publish;
use prombus_api::http::{Body as _, PublishAtomic, PublishAtomicReply, PublishedEvent};
use std::collections::BTreeMap;

/// The most events that are published together.
const MAX_ATOMIC_EVENTS: usize = 10_000;

pub(super) async fn publish(mut call: Call) -> Result<Response, ApiError> {
    let body = call.json().await?;
    let events = PublishAtomic::parse(&body)?.publish;
    if events.is_empty() {
        return Err(ApiError::new(Code::BadFrame, "publish: must not be empty"));
    }
    if events.len() > MAX_ATOMIC_EVENTS {
        let message = format!("publish: at most {MAX_ATOMIC_EVENTS} events at a time");
        return Err(ApiError::new(Code::TooLarge, message));
    }
    let gateway = call.gateway();
    let mut batch = gateway.bus.batch();
    let mut spans = BatchSpans::default();
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for (at, event) in events.iter().enumerate() {
        call.allow(Action::Publish, &event.topic, None)
            .and_then(|()| check_no_own_commit(&event.options))
            .map_err(|error| at_place(at, error))?;
        let options = to_bus_publish_options(&event.options);
        batch.add(&event.topic, event.payload, &options);
        spans.add(gateway, &event.topic, &event.options.headers);
        *counts.entry(&event.topic).or_default() += 1;
    }
    for (topic, count) in counts {
        call.connection.publish(topic, count)?;
    }
    let stored = gateway.bus.publish_atomic(batch).await;
    spans.end_atomic(gateway, &stored);
    let stored = stored.map_err(|error| at_place(error.at, error.error.into()))?;
    let reply = PublishAtomicReply {
        published: count_published(gateway, &events, stored),
    };
    Ok(reply::json(&reply))
}

/// Counts what was stored of a batch, where a duplicate was stored before, and says where each event is.
pub(super) fn count_published(
    gateway: &Gateway,
    events: &[Publish<'_>],
    stored: Vec<Published>,
) -> Vec<PublishedEvent> {
    let placed = events.iter().zip(stored).map(|(event, published)| {
        if !published.duplicate {
            gateway.metrics.topic(&event.topic).published.increment();
        }
        PublishedEvent {
            topic: event.topic.to_string(),
            id: published.id.to_string(),
            seq: published.seq,
            duplicate: published.duplicate,
        }
    });
    placed.collect()
}

/// Says which event is to blame.
fn at_place(at: usize, mut error: ApiError) -> ApiError {
    error.message = format!("publish[{at}]: {}", error.message);
    error
}
