//! What a program sees of a bus, in process or remote: names and patterns; options of publishing and subscribing with
//! their limits; the state of a group; typed topics; and the workers that hand deliveries to a handler, extend leases
//! meanwhile and settle. `prombus::Bus` and `prombus_client::Client` both build on this, so that the same rules hold on
//! either.

mod ahead;
mod consumer;
mod dedupe;
mod delivered;
mod event_fields;
mod exactly_once;
mod field_filter;
mod group;
mod handler;
mod invalid_field;
pub mod names;
mod pattern;
mod publish;
#[cfg(feature = "schema")]
pub mod schemas;
mod settle;
mod subscribe;
mod typed;

pub use ahead::{Ahead, MAX_AHEAD_KEYS};
pub use consumer::Consumer;
pub use dedupe::{DEFAULT_DEDUPE_TTL_MS, Dedupe, DedupeError, DedupeStore};
pub use delivered::{Delivered, Lease, Subscribed};
pub use event_fields::EventFields;
pub use exactly_once::{EffectCounts, ExactlyOnce};
pub use field_filter::FieldFilter;
pub use group::{
    Cursor, Explanation, GroupCounts, GroupInfo, Lag, LaneInfo, MemberInfo, Ordering, Reason,
    SeekEffect, StartAt,
};
pub use handler::{CatchPanic, handle, panic_text};
pub use invalid_field::{InvalidField, quoted};
pub use names::{InvalidGroup, InvalidTopic};
pub use pattern::{InvalidPattern, Pattern};
pub use prombus_store::Id;
pub use publish::{PublishOptions, Schedule};
pub use settle::{Nack, Retry, SettleOp};
pub use subscribe::SubscribeOptions;
pub use typed::{
    DeliveryOf, Endpoint, SubscribeOptionsOf, Topic, TypedSubscription, subscribe_exactly_once,
    subscribe_with,
};
