//! Dedupe marks beside the events: [`prombus_interface::DedupeStore`] in the bus's own store.

mod embedded;

pub use embedded::EmbeddedDedupe;
