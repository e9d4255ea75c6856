//! `POST /pull`: consuming without a socket. The leases outlive the request, so they are held by a member that the
//! gateway keeps for each group that is pulled; it takes events only while somebody asks for them.

mod puller;
mod pullers;

pub(super) use puller::{Became, Puller, Using};
pub(crate) use pullers::Pullers;

use super::call::{Call, start_at};
use super::reply;
use crate::auth::Action;
use crate::denied::Denied;
use axum::response::Response;
use prombus::Delivery;
use prombus_api::Code;
use prombus_api::http::{Body as _, Context, Pull, write_pulled};
use std::time::Duration;
use tokio::time::timeout;

/// How many events a pull gets where it does not say.
const DEFAULT_EVENTS: usize = 100;
/// The most events of one pull.
const MAX_EVENTS: usize = 10_000;
/// About how many bytes of events one pull gets; the others go to the next.
const MAX_BYTES: usize = 8 << 20;
/// The longest that a pull waits for its first event.
const MAX_WAIT_MS: u64 = 60_000;
/// What a pull waits that does not want to: events that are there have to come from the group's owner.
const MIN_WAIT_MS: u64 = 100;
/// How long a pull that has some events waits for the next.
const LINGER_MS: u64 = 5;

pub(super) async fn pull(mut call: Call) -> Result<Response, Denied> {
    let body = call.json().await?;
    let wanted = Pull::parse(&body)?;
    call.allow(Action::Subscribe, &wanted.topic, Some(&wanted.group))?;
    let max = wanted.max.unwrap_or(DEFAULT_EVENTS).min(MAX_EVENTS);
    if max == 0 {
        return Err(Denied::new(Code::BadFrame, "max: it has to be at least 1"));
    }
    let wait_ms = wanted.wait_ms.unwrap_or(0).clamp(MIN_WAIT_MS, MAX_WAIT_MS);
    let gateway = call.gateway();
    let start = wanted.start.map(start_at).unwrap_or_default();
    let puller = gateway
        .pullers
        .join(
            gateway,
            &wanted.topic,
            &wanted.group,
            start,
            wanted.ack_timeout_ms,
        )
        .await?;
    // Only what may be delivered is leased, so that no lease runs while its event waits here.
    let max = call.connection.deliver_in_time(max).await;
    let began_ms = gateway.options.clock.monotonic_ms();
    let deliveries = tokio::select! {
        deliveries = take(&puller, max, wait_ms) => deliveries,
        () = gateway.told_to_stop() => Vec::new(),
    };
    puller.delivered(&deliveries, began_ms);
    call.connection.not_delivered(max - deliveries.len());
    let events = deliveries.iter().map(|delivery| {
        let context = Context {
            attempt: delivery.context.attempt,
            max_attempts: delivery.context.max_attempts,
            ack_deadline_ms: delivery.context.ack_deadline_ms,
        };
        (delivery.event.json_bytes(), context)
    });
    let mut out = Vec::new();
    write_pulled(&mut out, &wanted.topic, &wanted.group, events);
    Ok(reply::json_text(out))
}

async fn take(puller: &Puller, max: usize, wait_ms: u64) -> Vec<Delivery> {
    let _asking = puller.ask(max);
    let mut taken = Vec::new();
    let mut bytes = 0;
    let mut wait = Duration::from_millis(wait_ms);
    while taken.len() < max && bytes < MAX_BYTES {
        let Ok(Some(delivery)) = timeout(wait, puller.next()).await else {
            break;
        };
        bytes += delivery.event.stored_bytes();
        taken.push(delivery);
        wait = Duration::from_millis(LINGER_MS);
    }
    taken
}
