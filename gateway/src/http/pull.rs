//! `POST /pull`: consuming without a socket. The leases outlive the request, so they are held by a member that the
//! gateway keeps for each group that is pulled; it takes events only during pulls.

mod consumer;
mod consumers;

pub(super) use consumer::{ConsumerGuard, PullConsumer};
pub(crate) use consumers::PullConsumers;

use super::call::Call;
use super::message::Response;
use super::reply;
use crate::api_error::ApiError;
use crate::auth::Action;
use crate::cloudevents::{self, Extension, Format};
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

pub(super) async fn pull(mut call: Call) -> Result<Response, ApiError> {
    let body = call.json().await?;
    let wanted = Pull::parse(&body)?;
    call.allow(Action::Subscribe, &wanted.topic, Some(&wanted.group))?;
    let max = wanted.max.unwrap_or(DEFAULT_EVENTS).min(MAX_EVENTS);
    if max == 0 {
        return Err(ApiError::new(Code::BadFrame, "max: must be at least 1"));
    }
    let wait_ms = wanted.wait_ms.unwrap_or(0).clamp(MIN_WAIT_MS, MAX_WAIT_MS);
    let gateway = call.gateway();
    let start = wanted.start.unwrap_or_default();
    let consumer = gateway
        .pull_consumers
        .join(
            gateway,
            &wanted.topic,
            &wanted.group,
            start,
            wanted.ack_timeout_ms,
        )
        .await?;
    let is_upcast = wanted.upcast.unwrap_or(false);
    if is_upcast {
        gateway.bus.load_schemas(&wanted.topic).await?;
    }
    // Only what may be delivered is leased, so that no lease runs while its event waits here.
    let max = call.connection.wait_to_deliver(max).await;
    let began_ms = gateway.options.clock.monotonic_ms();
    let mut deliveries = tokio::select! {
        deliveries = take(&consumer, max, wait_ms) => deliveries,
        () = gateway.drained() => Vec::new(),
    };
    consumer.delivered(gateway, &deliveries, began_ms);
    call.connection.return_deliveries(max - deliveries.len());
    if is_upcast {
        for delivery in &mut deliveries {
            delivery.event = gateway.bus.upcast(delivery.event.clone());
        }
    }
    let mut out = Vec::new();
    if !Format::accepted(&call.parts.headers).is_records() {
        let events = deliveries.iter();
        let events = events.map(|delivery| (&delivery.event, lease_extensions(delivery)));
        cloudevents::write_batch(&mut out, events);
        return Ok(cloudevents::batch_reply(out));
    }
    let events = deliveries.iter().map(|delivery| {
        let context = Context {
            attempt: delivery.context.attempt,
            max_attempts: delivery.context.max_attempts,
            ack_deadline_ms: delivery.context.ack_deadline_ms,
            shadow: delivery.context.shadow,
        };
        (delivery.event.json_bytes(), context)
    });
    write_pulled(&mut out, &wanted.topic, &wanted.group, events);
    Ok(reply::json_text(out))
}

/// What a consumer of CloudEvents has to know of its lease. The id of the record is what it acknowledges.
fn lease_extensions(delivery: &Delivery) -> Vec<Extension> {
    let context = &delivery.context;
    let number = |name, number: u64| Extension {
        name,
        json: number.to_string(),
    };
    vec![
        Extension {
            name: "prombusid",
            json: serde_json::Value::from(&*delivery.event.id()).to_string(),
        },
        number("prombusattempt", context.attempt.into()),
        number("prombusmaxattempts", context.max_attempts.into()),
        number("prombusackdeadlinems", context.ack_deadline_ms),
    ]
}

async fn take(consumer: &PullConsumer, max: usize, wait_ms: u64) -> Vec<Delivery> {
    let _asking = consumer.ask(max);
    let mut taken = Vec::new();
    let mut bytes = 0;
    let mut wait = Duration::from_millis(wait_ms);
    while taken.len() < max && bytes < MAX_BYTES {
        let Ok(Some(delivery)) = timeout(wait, consumer.next()).await else {
            break;
        };
        bytes += delivery.event.stored_bytes();
        taken.push(delivery);
        wait = Duration::from_millis(LINGER_MS);
    }
    taken
}
