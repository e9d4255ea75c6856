//! `POST /pull`: consuming without a socket.

use crate::frames::{DeliveryContext, write_context};
use crate::options::PositionParts;
use crate::record::Record;
use crate::scan::object;
use crate::write::{write_list, write_number, write_text};
use prombus_interface::StartAt;
use prombus_interface::schemas::{Group, Topic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

object! {
    /// The body of `POST /pull`: what is wanted; `from` and its fields place a new group.
    #[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
    pub struct Pull {
        /// The topic.
        #[schemars(with = "Topic")]
        pub topic: String,
        /// The group.
        #[schemars(with = "Group")]
        pub group: String,
        /// The most events.
        #[schemars(range(min = 1, max = 10_000))]
        pub max: Option<usize>,
        /// How long to wait for the first.
        pub wait_ms: Option<u64>,
        /// How long the leases are.
        pub ack_timeout_ms: Option<u64> as "ackTimeoutMs",
        /// Where a new group begins: `from` with `ts`, `afterId` or `seq`.
        #[schemars(flatten, with = "PositionParts")]
        pub start: Option<StartAt>,
        /// Events of earlier versions of their topic's schema come as ones of the latest.
        pub upcast: Option<bool>,
    }
}

/// The reply of `POST /pull`: leased events.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Pulled {
    /// The topic.
    #[schemars(with = "Topic")]
    pub topic: String,
    /// The group.
    #[schemars(with = "Group")]
    pub group: String,
    /// How many events are here.
    pub count: u64,
    /// The events with their leases.
    pub events: Vec<Delivery>,
}

/// An event with its lease, as in an EVENT frame.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// The record.
    // As it is stored; `Record::parse` takes it apart.
    #[schemars(with = "Record")]
    pub event: Box<RawValue>,
    /// The circumstances.
    pub ctx: Context,
}

/// The circumstances of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Context {
    /// The number of this delivery of the event, from 1.
    pub attempt: u32,
    /// After how many failed deliveries it is a dead letter.
    #[serde(rename = "maxAttempts", default)]
    pub max_attempts: u32,
    /// How long the lease is.
    pub ack_deadline_ms: u64,
    /// The group is a shadow, which is fed what another group gets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shadow: bool,
}

/// Appends a [`Pulled`] around stored records.
pub fn write_pulled<'a>(
    out: &mut Vec<u8>,
    topic: &str,
    group: &str,
    events: impl IntoIterator<Item = (&'a [u8], Context), IntoIter: ExactSizeIterator>,
) {
    let events = events.into_iter();
    out.extend_from_slice(b"{\"topic\":");
    write_text(out, topic);
    out.extend_from_slice(b",\"group\":");
    write_text(out, group);
    out.extend_from_slice(b",\"count\":");
    write_number(out, events.len() as u64);
    out.extend_from_slice(b",\"events\":");
    write_list(out, events, |out, (event, context)| {
        out.extend_from_slice(b"{\"event\":");
        out.extend_from_slice(event);
        out.extend_from_slice(b",\"ctx\":");
        let context = DeliveryContext {
            attempt: context.attempt,
            max_attempts: context.max_attempts,
            ack_deadline_ms: context.ack_deadline_ms,
            shadow: context.shadow,
        };
        write_context(out, context);
        out.push(b'}');
    });
    out.push(b'}');
}
