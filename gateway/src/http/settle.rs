//! `POST /ack`, `/nack` and `/modack`: what becomes of events that were pulled.

use super::call::Call;
use super::pull::{Became, Puller};
use super::reply;
use crate::auth::Action;
use crate::denied::Denied;
use axum::response::Response;
use prombus::error::SettleError;
use prombus_api::Code;
use prombus_api::frames::{Ack, Ids, Modack, Nack};
use prombus_api::http::{Body as _, FailedId, SettleReply};
use std::sync::Arc;

/// The most events that one request settles.
const MAX_IDS: usize = 10_000;

pub(super) async fn ack(mut call: Call) -> Result<Response, Denied> {
    let body = call.json().await?;
    let ack = Ack::parse(&body)?;
    if !ack.publish.is_empty() {
        let why = "publish: acknowledging and publishing in one step is not supported yet";
        return Err(Denied::new(Code::BadFrame, why));
    }
    let puller = puller(&call, &ack.topic, &ack.group, &ack.ids).await?;
    let ids = texts(&ack.ids);
    let results = puller.control().ack_ids(&ack.topic, &ids).await;
    settled(&puller, &ack.ids, results, Became::Acked)
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

async fn puller(
    call: &Call,
    topic: &str,
    group: &str,
    ids: &Ids<'_>,
) -> Result<Arc<Puller>, Denied> {
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
