//! What a program sees of a bus, in process or from afar: what a publisher and a subscriber may ask for, with its limits;
//! typed topics; and what becomes of a delivery, from the handler that it is given to over the lease that is extended
//! meanwhile to the mark that keeps its effect from happening twice. `prombus::Bus` and `prombus_client::Client` both
//! build on this, so that the same rules hold on either.

mod ahead;
mod consumer;
mod dedupe;
mod delivered;
mod event_fields;
mod exactly_once;
mod handler;
mod invalid_field;
mod publish;
mod settle;
mod subscribe;
mod typed;

pub use ahead::{Ahead, MAX_AHEAD_KEYS};
pub use consumer::Consumer;
pub use dedupe::{DEFAULT_DEDUPE_TTL_MS, Dedupe, DedupeError, DedupeStore};
pub use delivered::{Delivered, Lease, Subscribed};
pub use event_fields::EventFields;
pub use exactly_once::{EffectCounts, ExactlyOnce};
pub use handler::{CatchPanic, handle, panic_text};
pub use invalid_field::{InvalidField, quoted};
pub use prombus_store::Id;
pub use publish::{PublishOptions, Schedule};
pub use settle::{Nack, Retry, SettleOp};
pub use subscribe::SubscribeOptions;
pub use typed::{
    DeliveryOf, Endpoint, SubscribeOptionsOf, Topic, TypedSubscription, subscribe_exactly_once,
    subscribe_with,
};
