//! What becomes of a delivery, whether it comes from a bus in process or over the network: the handler that it is given
//! to, the lease that is extended meanwhile, and the mark that keeps its effect from happening twice. `prombus::Bus` and
//! `prombus_client::Client` both build on this, so that a handler meets the same rules on either.

mod ahead;
mod consumer;
mod dedupe;
mod delivered;
mod event_fields;
mod exactly_once;
mod handler;
mod settle;
mod typed;

pub use ahead::{Ahead, MAX_AHEAD_KEYS};
pub use consumer::Consumer;
pub use dedupe::{DEFAULT_DEDUPE_TTL_MS, Dedupe, DedupeError, DedupeStore};
pub use delivered::{Delivered, Lease, Subscribed};
pub use event_fields::EventFields;
pub use exactly_once::{EffectCounts, ExactlyOnce, MANUAL_ACK_REASON};
pub use handler::{CatchPanic, handle, panic_text};
pub use prombus_store::Id;
pub use settle::{Nack, Retry, SettleOp};
pub use typed::{
    DeliveryOf, Endpoint, Topic, TypedSubscription, subscribe_exactly_once, subscribe_with,
};
