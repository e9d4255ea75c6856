//! Groups: durable consumers of a topic. A pure state machine decides, one owner task per (topic, group) does.
//!
//! ```text
//!   Subscription ──── Seat ────▶ inbox ───▶ Owner ───▶ GroupState        decisions, no I/O
//!        ▲                                    │  │
//!        └──── Subscriber (mailbox, credit) ◀─┘  └──▶ Store: read, commit the group's record
//! ```

mod backoff;
mod blocked_keys;
pub(crate) mod command;
mod compact;
pub(crate) mod credit;
pub(crate) mod directory;
pub(crate) mod explain;
mod history;
pub(crate) mod inbox;
mod lanes;
pub(crate) mod membership;
mod owner;
pub(crate) mod ownership;
pub(crate) mod packed_status;
pub(crate) mod ranges;
pub(crate) mod record;
pub(crate) mod registry;
pub(crate) mod relay;
pub(crate) mod settings;
pub(crate) mod start_at;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod subscriber;
mod timers;
mod unsettled;
pub(crate) mod unwritten;

pub use history::Attempt;
pub use ownership::{NodeInfo, NodeProbe};
pub use relay::{LinkReceiver, LinkSender, NodeDialer, NodeLink};
pub use settings::GroupConfig;
pub use subscriber::{Assignment, Ended};
pub use unwritten::UnwrittenGroups;
