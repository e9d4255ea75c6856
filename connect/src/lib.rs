//! What the connectors to services' own databases share: the events of a topic in order, projections that keep their
//! position beside what they write, the columns that payloads become, and the drainer of outboxes. A connector adds the
//! statements of its database.

mod column;
pub mod error;
mod event;
mod fields;
mod names;
pub mod outbox;
mod position;
mod projection;
mod runner;
mod shape;
mod source;
mod transactional;

pub use column::{Column, ColumnSource, ColumnType, Compare, FieldPath, VersionGuard};
pub use event::Event;
pub use fields::Fields;
pub use names::{MAX_NAME_BYTES, check_name};
pub use position::{Position, PositionOwner};
pub use projection::{Applied, Attempts, BATCH, Projection, ProjectionError, TaskLost};
pub use runner::Runner;
pub use shape::{Part, Shape};
#[cfg(feature = "client")]
pub use source::ClientSource;
pub use source::{BusSource, Source, SourcePage};
pub use transactional::{TransactionPlan, TransactionalOptions, handler_panicked};
