//! prombus beside MongoDB: a topic as a collection, handlers whose writes and position commit together, dedupe marks, an
//! outbox that services in any language write to, changefeeds that turn a collection's changes into events, and the
//! readable copy of a bus in the collections `events` and `cursors`.

pub mod changefeed;
pub mod changelog;
mod commands;
pub mod dedupe;
pub mod error;
mod json;
pub mod mirror;
pub mod outbox;
mod positions;
mod server;
mod transactional;

pub use changefeed::{Changefeed, ChangefeedOptions, FeedBus};
pub use changelog::{Changelog, ChangelogOptions};
pub use dedupe::MongoDedupe;
pub use mirror::{Mirror, MirrorOptions};
/// The driver itself, of the version that this crate uses.
pub use mongodb;
pub use outbox::{Drainer, DrainerOptions, Outbox};
#[cfg(feature = "client")]
pub use prombus_connect::ClientSource;
pub use prombus_connect::{
    Applied, BATCH, BusSource, Event, Position, Projection, Runner, Source, SourcePage,
    TransactionalOptions,
};
pub use server::{SELECTION_TIMEOUT_MS, has_transactions, open};
pub use transactional::{Handler, HandlerError, Transactional};

/// The program in the page about this crate, compiled so that it cannot rot.
#[cfg(doctest)]
#[doc = include_str!("../../docs/mongo.md")]
struct Page;
