//! Options with their names on the wire. What is not said stays `None` or empty: the defaults are the bus's.

mod filter;
mod position;
mod publish;
mod subscribe;

pub(crate) use position::{PositionParts, word};
pub use publish::{AlsoPublish, PublishOptions};
pub use subscribe::SubscribeOptions;

#[cfg(test)]
mod tests;
