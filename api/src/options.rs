//! Options with their names on the wire. What is not said stays `None` or empty: the defaults are the bus's.

mod filter;
mod position;
mod publish;
mod subscribe;

pub use filter::Filter;
pub use position::Position;
pub(crate) use position::PositionParts;
pub use publish::{AlsoPublish, PublishOptions};
pub use subscribe::{Ordering, SubscribeOptions};

#[cfg(test)]
mod tests;
