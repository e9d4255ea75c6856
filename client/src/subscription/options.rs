//! What a subscriber may ask for, and how it goes over the wire.

use prombus_api::options::SubscribeOptions as WireOptions;
use prombus_interface::{FieldFilter, StartAt};

/// What a subscriber may ask for. What is `None` is as the group has it, or the server's default for a new group.
pub type SubscribeOptions = prombus_interface::SubscribeOptions<FieldFilter, ()>;

/// Options as they go over the wire, from `start`.
pub(crate) fn to_wire(options: &SubscribeOptions, start: StartAt) -> WireOptions {
    WireOptions {
        start: Some(start),
        batch_size: Some(options.batch_size),
        max_in_flight: Some(options.max_in_flight),
        ack_timeout_ms: options.ack_timeout_ms,
        max_attempts: options.max_attempts,
        manual_ack: None,
        filter: options.filter.clone(),
        topics: options.topics.clone(),
        ordering: options.ordering,
        upcast: options.upcast.then_some(true),
        partitioned: options.partitioned,
    }
}
