//! `POST /ack`, `/nack` and `/modack`: what becomes of events that were pulled.

use super::call::Call;
use super::pull::{ConsumerGuard, PullConsumer};
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use crate::batch_spans::BatchSpans;
use crate::gateway::Gateway;
use crate::in_flight::Outcome;
use crate::to_bus::to_bus_publish_options;
use axum::response::Response;
use prombus::AckPublish;
use prombus::error::{AckPublishError, SettleError};
use prombus_api::Code;
use prombus_api::frames::{Ack, Ids, Modack, Nack};
use prombus_api::http::{Body as _, FailedId, PublishedEvent, SettleReply};
use std::collections::BTreeMap;

/// The most events that one request settles.
const MAX_IDS: usize = 10_000;

pub(super) async fn ack(mut call: Call) -> Result<Response, ApiError> {
    let body = call.json().await?;
    let ack = Ack::parse(&body)?;
    if !ack.publish.is_empty() {
        return step(&call, &ack).await;
    }
    let consumer = consumer(&call, &ack.topic, &ack.group, &ack.ids).await?;
    let ids = texts(&ack.ids);
    let results = consumer.control().ack_ids(&ack.topic, &ids).await;
    settled(call.gateway(), &consumer, &ack.ids, results, Outcome::Acked)
}

/// Acknowledges events and publishes others atomically: all of it happens or nothing.
async fn step(call: &Call, ack: &Ack<'_>) -> Result<Response, ApiError> {
    let gateway = call.gateway();
    let mut batch = gateway.bus.batch();
    let mut spans = BatchSpans::default();
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for publish in &ack.publish {
        call.allow(Action::Publish, &publish.topic, None)?;
        batch.add(
            &publish.topic,
            publish.payload,
            &to_bus_publish_options(&publish.options),
        );
        spans.add(gateway, &publish.topic, &publish.options.headers);
        *counts.entry(&publish.topic).or_default() += 1;
    }
    let consumer = consumer(call, &ack.topic, &ack.group, &ack.ids).await?;
    for (topic, count) in counts {
        call.connection.publish(topic, count)?;
    }
    let ids = ack.ids.as_slice();
    let step = AckPublish {
        ids: ids.iter().map(|id| (**id).to_owned()).collect(),
        batch,
    };
    let control = consumer.control();
    let mut answers = control.ack_ids_and_publish(&ack.topic, vec![step]).await;
    let published = answers.pop().unwrap_or(Err(AckPublishError::Gone));
    spans.end_atomic(gateway, &published);
    let published = published?;
    for id in ids {
        consumer.ack_published(gateway, &ack.topic, id);
    }
    let mut reply = SettleReply {
        settled: ids.len() as u64,
        ..SettleReply::default()
    };
    for (publish, published) in ack.publish.iter().zip(published) {
        if !published.duplicate {
            gateway.metrics.topic(&publish.topic).published.increment();
        }
        reply.published.push(PublishedEvent {
            topic: publish.topic.to_string(),
            id: published.id.to_string(),
            seq: published.seq,
            duplicate: published.duplicate,
        });
    }
    Ok(reply::json(&reply))
}

pub(super) async fn nack(mut call: Call) -> Result<Response, ApiError> {
    let body = call.json().await?;
    let nack = Nack::parse(&body)?;
    let consumer = consumer(&call, &nack.topic, &nack.group, &nack.ids).await?;
    let ids = texts(&nack.ids);
    let reason = nack.reason.as_deref().unwrap_or("nack");
    let results = consumer
        .control()
        .nack_ids(&nack.topic, &ids, reason, nack.delay_ms)
        .await;
    settled(
        call.gateway(),
        &consumer,
        &nack.ids,
        results,
        Outcome::Nacked,
    )
}

pub(super) async fn modack(mut call: Call) -> Result<Response, ApiError> {
    let body = call.json().await?;
    let modack = Modack::parse(&body)?;
    let consumer = consumer(&call, &modack.topic, &modack.group, &modack.ids).await?;
    let ids = texts(&modack.ids);
    let extend_ms = modack.extend_ms;
    let results = consumer
        .control()
        .extend_ids(&modack.topic, &ids, extend_ms)
        .await;
    let outcome = Outcome::Extended { extend_ms };
    settled(call.gateway(), &consumer, &modack.ids, results, outcome)
}

async fn consumer(
    call: &Call,
    topic: &str,
    group: &str,
    ids: &Ids<'_>,
) -> Result<ConsumerGuard, ApiError> {
    call.allow(Action::Subscribe, topic, Some(group))?;
    if ids.as_slice().len() > MAX_IDS {
        let message = format!("ids: at most {MAX_IDS} at a time");
        return Err(ApiError::new(Code::TooLarge, message));
    }
    call.known(topic)?;
    let gateway = call.gateway();
    gateway
        .pull_consumers
        .of_existing(gateway, topic, group)
        .await
}

fn texts<'a>(ids: &'a Ids<'_>) -> Vec<&'a str> {
    ids.as_slice().iter().map(|id| &**id).collect()
}

/// For a single id the reply is the error itself; for several each has its own.
fn settled(
    gateway: &Gateway,
    consumer: &PullConsumer,
    ids: &Ids<'_>,
    results: Vec<Result<(), SettleError>>,
    outcome: Outcome,
) -> Result<Response, ApiError> {
    let (mut reply, now) = (SettleReply::default(), gateway.now());
    for (id, result) in ids.as_slice().iter().zip(results) {
        match result {
            Ok(()) => {
                consumer.settled(id, outcome, now);
                reply.settled += 1;
            }
            Err(error) => {
                let error = ApiError::from(error);
                if matches!(ids, Ids::One(_)) {
                    return Err(error);
                }
                let failed = FailedId::new(&**id, error.code, error.message);
                reply.failed.push(failed);
            }
        }
    }
    Ok(reply::json(&reply))
}
