//! `POST /ack`, `/nack` and `/modack`: what becomes of events that were pulled.

use super::call::Call;
use super::pull::{Became, Puller, Using};
use super::reply;
use crate::auth::Action;
use crate::denied::Denied;
use crate::said::as_said;
use axum::response::Response;
use prombus::Step;
use prombus::error::{SettleError, StepError};
use prombus_api::Code;
use prombus_api::frames::{Ack, Ids, Modack, Nack};
use prombus_api::http::{Body as _, FailedId, PublishedEvent, SettleReply};
use std::collections::BTreeMap;

/// The most events that one request settles.
const MAX_IDS: usize = 10_000;

pub(super) async fn ack(mut call: Call) -> Result<Response, Denied> {
    let body = call.json().await?;
    let ack = Ack::parse(&body)?;
    if !ack.publish.is_empty() {
        return step(&call, &ack).await;
    }
    let puller = puller(&call, &ack.topic, &ack.group, &ack.ids).await?;
    let ids = texts(&ack.ids);
    let results = puller.control().ack_ids(&ack.topic, &ids).await;
    settled(&puller, &ack.ids, results, Became::Acked)
}

/// Acknowledges events and publishes others in one step: all of it happens or nothing.
async fn step(call: &Call, ack: &Ack<'_>) -> Result<Response, Denied> {
    let gateway = call.gateway();
    let mut batch = gateway.bus.batch();
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for publish in &ack.publish {
        call.allow(Action::Publish, &publish.topic, None)?;
        batch.add(&publish.topic, publish.payload, &as_said(&publish.options));
        *counts.entry(&publish.topic).or_default() += 1;
    }
    let puller = puller(call, &ack.topic, &ack.group, &ack.ids).await?;
    for (topic, count) in counts {
        call.connection.publish(topic, count)?;
    }
    let ids = ack.ids.as_slice();
    let step = Step {
        ids: ids.iter().map(|id| (**id).to_owned()).collect(),
        batch,
    };
    let control = puller.control();
    let mut answers = control.ack_ids_and_publish(&ack.topic, vec![step]).await;
    let published = answers.pop().unwrap_or(Err(StepError::Gone))?;
    for id in ids {
        puller.became(id, Became::AckedOnce);
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

pub(super) async fn nack(mut call: Call) -> Result<Response, Denied> {
    let body = call.json().await?;
    let nack = Nack::parse(&body)?;
    let puller = puller(&call, &nack.topic, &nack.group, &nack.ids).await?;
    let ids = texts(&nack.ids);
    let reason = nack.reason.as_deref().unwrap_or("nack");
    let results = puller
        .control()
        .nack_ids(&nack.topic, &ids, reason, nack.delay_ms)
        .await;
    settled(&puller, &nack.ids, results, Became::Nacked)
}

pub(super) async fn modack(mut call: Call) -> Result<Response, Denied> {
    let body = call.json().await?;
    let modack = Modack::parse(&body)?;
    let puller = puller(&call, &modack.topic, &modack.group, &modack.ids).await?;
    let ids = texts(&modack.ids);
    let extend_ms = modack.extend_ms;
    let results = puller
        .control()
        .extend_ids(&modack.topic, &ids, extend_ms)
        .await;
    settled(
        &puller,
        &modack.ids,
        results,
        Became::Extended { extend_ms },
    )
}

async fn puller(call: &Call, topic: &str, group: &str, ids: &Ids<'_>) -> Result<Using, Denied> {
    call.allow(Action::Subscribe, topic, Some(group))?;
    if ids.as_slice().len() > MAX_IDS {
        let why = format!("ids: at most {MAX_IDS} at a time");
        return Err(Denied::new(Code::TooLarge, why));
    }
    call.known(topic)?;
    let gateway = call.gateway();
    gateway.pullers.of_existing(gateway, topic, group).await
}

fn texts<'a>(ids: &'a Ids<'_>) -> Vec<&'a str> {
    ids.as_slice().iter().map(|id| &**id).collect()
}

/// For a single id the reply is the error itself; for several each has its own.
fn settled(
    puller: &Puller,
    ids: &Ids<'_>,
    results: Vec<Result<(), SettleError>>,
    became: Became,
) -> Result<Response, Denied> {
    let mut reply = SettleReply::default();
    for (id, result) in ids.as_slice().iter().zip(results) {
        match result {
            Ok(()) => {
                puller.became(id, became);
                reply.settled += 1;
            }
            Err(error) => {
                let denied = Denied::from(error);
                if matches!(ids, Ids::One(_)) {
                    return Err(denied);
                }
                let failed = FailedId::new(&**id, denied.code, denied.message);
                reply.failed.push(failed);
            }
        }
    }
    Ok(reply::json(&reply))
}
