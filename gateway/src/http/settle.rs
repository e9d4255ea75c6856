//! `POST /ack`, `/nack` and `/modack`: what becomes of events that were pulled.

use super::call::Call;
use super::message::Response;
use super::publish_atomic::count_published;
use super::pull::ConsumerGuard;
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use crate::batch_spans::BatchSpans;
use crate::to_bus::to_bus_publish_options;
use prombus::error::AckPublishError;
use prombus::{AckPublish, SettleOp};
use prombus_api::Code;
use prombus_api::frames::{Ack, Ids, Modack, Nack};
use prombus_api::http::{Body as _, FailedId, SettleReply};
use std::collections::BTreeMap;

/// The most events that one request settles.
const MAX_IDS: usize = 10_000;

pub(super) async fn ack(mut call: Call) -> Result<Response, ApiError> {
    let body = call.json().await?;
    let ack = Ack::parse(&body)?;
    if !ack.publish.is_empty() {
        return step(&call, &ack).await;
    }
    settle(&call, (&ack.topic, &ack.group), &ack.ids, SettleOp::Ack).await
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
    let reply = SettleReply {
        settled: ids.len() as u64,
        published: count_published(gateway, &ack.publish, published),
        ..SettleReply::default()
    };
    Ok(reply::json(&reply))
}

pub(super) async fn nack(mut call: Call) -> Result<Response, ApiError> {
    let body = call.json().await?;
    let nack = Nack::parse(&body)?;
    let op = SettleOp::nack(nack.reason.as_deref().unwrap_or("nack"), nack.delay_ms);
    settle(&call, (&nack.topic, &nack.group), &nack.ids, op).await
}

pub(super) async fn modack(mut call: Call) -> Result<Response, ApiError> {
    let body = call.json().await?;
    let modack = Modack::parse(&body)?;
    let extend_ms = modack.extend_ms;
    let op = SettleOp::Extend { extend_ms };
    settle(&call, (&modack.topic, &modack.group), &modack.ids, op).await
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

/// Settles events. For a single id the reply is the error itself; for several each has its own.
async fn settle(
    call: &Call,
    (topic, group): (&str, &str),
    ids: &Ids<'_>,
    op: SettleOp,
) -> Result<Response, ApiError> {
    let consumer = consumer(call, topic, group, ids).await?;
    let owned = ids.as_slice().iter().map(|id| (**id).to_owned()).collect();
    let results = consumer.control().settle_ids(topic, owned, op.clone());
    let results = results.await;
    let (mut reply, now) = (SettleReply::default(), call.gateway().now());
    for (id, result) in ids.as_slice().iter().zip(results) {
        match result {
            Ok(()) => {
                consumer.settled(id, &op, now);
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
