//! prombus beside SQLite: a topic as a table, handlers whose writes and position commit together, dedupe marks, and an
//! outbox that services in any language write to.

pub mod changelog;
mod database;
pub mod dedupe;
pub mod error;
mod names;
pub mod outbox;
mod positions;
mod transactional;

pub use changelog::{Changelog, ChangelogOptions};
pub use database::{BUSY_TIMEOUT_MS, open, open_existing};
pub use dedupe::SqliteDedupe;
pub use outbox::{Drainer, DrainerOptions, Outbox};
#[cfg(feature = "client")]
pub use prombus_connect::ClientSource;
pub use prombus_connect::{
    Applied, BATCH, BusSource, Event, MAX_NAME_BYTES, Position, Projection, Runner, Source,
    SourcePage, TransactionalOptions,
};
/// SQLite itself, of the version that this crate uses.
pub use rusqlite;
pub use transactional::Transactional;

/// The program in the page about this crate, compiled so that it cannot rot.
#[cfg(doctest)]
#[doc = include_str!("../../docs/sqlite.md")]
struct Page;
